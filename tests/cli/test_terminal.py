"""The progress bar and interrupts, in a pseudo-terminal."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest


class InTerminal:
    """A command whose standard error is a terminal, and the text written to it."""

    def __init__(self, environment, arguments):
        self._screen, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "psmvae", *map(str, arguments)],
            env={**environment, "TERM": "xterm", "COLUMNS": "120"},
            stdout=subprocess.PIPE,
            stderr=terminal,
            stdin=subprocess.DEVNULL,
            # ignored in processes that a shell starts in the background
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        os.close(terminal)
        self.text = ""

    def read_until(self, pattern: str | None, seconds: float = 60.0) -> None:
        """Read until the pattern is found, or the command ends."""
        end = time.monotonic() + seconds
        while pattern is None or not re.search(pattern, self.text):
            assert time.monotonic() < end, f"not found: {pattern!r}\n{self.text}"
            if not select.select([self._screen], [], [], 0.1)[0]:
                continue
            try:
                piece = os.read(self._screen, 65536)
            except OSError:  # Linux raises this when the other end is closed
                piece = b""
            if not piece:
                assert pattern is None, f"ended before {pattern!r}\n{self.text}"
                return
            self.text += piece.decode()

    def end(self) -> int:
        """Wait for the end and return the exit code."""
        self.read_until(None)
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        os.close(self._screen)
        return code


@pytest.fixture
def in_terminal(environment):
    """Start a command in a terminal; it is killed when the test ends."""
    started = []

    def start(*arguments) -> InTerminal:
        started.append(InTerminal(environment, arguments))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.end()


def test_progress_bar_shows_epoch_validation_error_and_time_left(in_terminal, big_table, tmp_path):
    command = in_terminal(
        "impute",
        big_table,
        "-o",
        tmp_path / "filled.csv",
        "--epochs",
        4,
        "--draws",
        4,
        "--device",
        "cpu",
    )
    assert command.end() == 0
    assert re.search(r"epoch .*\d+/4", command.text)
    assert "validation error" in command.text
    assert "left" in command.text
    assert "400 rows" in command.text


def test_quiet_writes_nothing_to_a_terminal(in_terminal, big_table, tmp_path):
    command = in_terminal(
        "fit", big_table, "-o", tmp_path / "m.safetensors", "--method", "mean", "--quiet"
    )
    assert command.end() == 0
    assert command.text == ""


@pytest.mark.parametrize(
    ("command", "number"),
    [("impute", signal.SIGINT), pytest.param("fit", signal.SIGTERM, marks=pytest.mark.slow)],
)
def test_interrupt_during_fit_exits_with_its_signal_and_writes_no_file(
    in_terminal, big_table, tmp_path, command, number
):
    output = tmp_path / ("filled.csv" if command == "impute" else "m.safetensors")
    running = in_terminal(command, big_table, "-o", output, "--epochs", 100_000, "--device", "cpu")
    running.read_until(r"epoch .*\d+/\d+")
    running.process.send_signal(number)
    assert running.end() == 128 + number
    assert "error: interrupted" in running.text
    assert "Traceback" not in running.text
    assert list(tmp_path.iterdir()) == []


INTERRUPTED_AT_EXIT = """
import atexit, os, signal, sys
# called after what the command line has registered
atexit.register(os.kill, os.getpid(), signal.SIGINT)
from psmvae.cli.app import main
sys.exit(main(["--version"]))
"""


def test_an_interrupt_at_exit_is_ignored(environment):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT_EXIT],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr == ""


INTERRUPTED_AT_IMPORT = """
import runpy, signal, sys

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == "psmvae.cli.app":
            signal.raise_signal(signal.SIGINT)

# ignored in processes that a shell starts in the background
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
runpy.run_module("psmvae", run_name="__main__", alter_sys=True)
"""


def test_an_interrupt_at_start_is_one_line(environment):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT_IMPORT],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr == "error: interrupted\n"
