"""The entry point of the command line, ``psmvae`` and ``python -m psmvae``."""

import sys


def main() -> int:
    """Run the command line; Ctrl-C while its modules are imported gives one line too."""
    try:
        from psmvae.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
