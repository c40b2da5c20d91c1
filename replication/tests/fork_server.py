"""A process that imports the libraries once and runs each command in a fork of itself.

Only third-party libraries are imported beforehand: each fork imports psmvae and psmvae_paper anew.
"""

import importlib
import json
import os
import runpy
import signal
import sys

LIBRARIES = (
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "narwhals.stable.v2",
    "pandas",
    "pyarrow.csv",
    "rich.progress",
    "scipy.optimize",
    "sklearn.ensemble",
    "sklearn.metrics",
    "torch",
    "typer",
)
# A command that runs longer is killed.
SECONDS = 120


def main() -> None:
    """Read requests as JSON lines; answer each with the exit code of its command."""
    for name in LIBRARIES:
        importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(**json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def run(arguments: list[str], cwd: str, out: str, err: str) -> None:
    """Run ``python -m psmvae_paper`` in this folder, with files as output streams."""
    signal.alarm(SECONDS)
    os.chdir(cwd)
    for stream, path in enumerate((os.devnull, out, err)):
        os.dup2(os.open(path, os.O_RDWR), stream)
    sys.argv[1:] = arguments
    try:
        runpy.run_module("psmvae_paper", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        # without unloading the libraries, which takes longer than most commands
        os._exit(end.code)


if __name__ == "__main__":
    main()
