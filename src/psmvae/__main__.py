"""The entry point of the command line, ``psmvae`` and ``python -m psmvae``."""

import gc
import sys

from psmvae._lazy import import_lazily

# New objects before a garbage collection. With Python's default of 700, a tenth of the time of
# imports is spent in collections that free nothing.
GC_THRESHOLD = 100_000


def main() -> int:
    """Run the command line; Ctrl-C while its modules are imported gives one line too."""
    gc.set_threshold(GC_THRESHOLD)
    try:
        # scikit-learn imports it, half a second, and imputation does not use it
        import_lazily("scipy.stats")
        from psmvae.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        return 130
    try:
        return run()
    finally:
        # the process ends: a last collection would look at every object of every module
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
