"""A process that has loaded the libraries once and runs each command in a fork of itself.

Loading torch and scikit-learn takes seconds, a command on a small table a fraction of one. Only
what others wrote is loaded beforehand: each command loads psmvae itself, and leaves no trace.
"""

import importlib
import json
import os
import runpy
import signal
import sys
from contextlib import suppress

LIBRARIES = (
    "matplotlib.pyplot",
    "narwhals.stable.v2",
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.feather",
    "pyarrow.parquet",
    "rich.progress",
    "rich.table",
    "safetensors.torch",
    "scipy.optimize",
    "sklearn.ensemble",
    "sklearn.metrics",
    "typer",
)
SECONDS = 120


def main() -> None:
    """Answer each line of standard input, an order as JSON, with the exit code of its command."""
    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(**json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def run(arguments: list[str], cwd: str, out: str, err: str) -> None:
    """Become ``python -m psmvae`` with these arguments, in this folder, with files as streams."""
    signal.alarm(SECONDS)
    os.chdir(cwd)
    for stream, path in enumerate((os.devnull, out, err)):
        os.dup2(os.open(path, os.O_RDWR), stream)
    sys.argv[1:] = arguments
    try:
        runpy.run_module("psmvae", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        # at once: to unload the libraries takes longer than the command
        os._exit(end.code)


if __name__ == "__main__":
    main()
