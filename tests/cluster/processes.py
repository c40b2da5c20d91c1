"""Worker processes of the Ray that this process has started, and what kills one of them."""

import os
import signal
import threading
import time
from pathlib import Path

from psmvae import MeanImputer, PSMVAEImputer

# names a file that a worker makes when its work begins
MARKER = "PSMVAE_TEST_MARKER"


def worker_processes(title):
    """Return the ids of the processes below this one whose title starts with ``title``."""
    parents, titles = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text()
            titles[int(folder.name)] = (folder / "cmdline").read_text().strip("\0")
        except OSError:
            continue
        parents[int(folder.name)] = int(status.rpartition(")")[2].split()[1])

    def is_below(process):
        while process in parents:
            process = parents[process]
            if process == os.getpid():
                return True
        return False

    return sorted(one for one, text in titles.items() if text.startswith(title) and is_below(one))


def mark():
    """Say that the work of this process has begun."""
    Path(os.environ[MARKER]).touch()


class MarkingImputer(PSMVAEImputer):
    """An imputer whose training says that it begins."""

    def _recipe(self):
        mark()
        return super()._recipe()


class SlowImputer(MeanImputer):
    """An imputer that takes a second for each block of rows, and says when it begins."""

    def _points(self, x, m):
        mark()
        time.sleep(1)
        return super()._points(x, m)


class Killer(threading.Thread):
    """Kill a worker process of this title while the work inside the block goes on."""

    def __init__(self, title, marker, delay=0.5, patience=200.0):
        super().__init__(daemon=True)
        self.title, self.marker, self.delay, self.patience = title, marker, delay, patience
        self.killed = 0

    def run(self):
        end = time.monotonic() + self.patience
        while not self.marker.exists():
            if time.monotonic() > end:
                return
            time.sleep(0.05)
        time.sleep(self.delay)
        self.killed = worker_processes(self.title)[-1]
        os.kill(self.killed, signal.SIGKILL)

    def __enter__(self):
        self.marker.unlink(missing_ok=True)
        self.start()
        return self

    def __exit__(self, *_):
        self.join()
