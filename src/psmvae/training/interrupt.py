"""Ctrl-C during training."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deferred_keyboard_interrupt() -> Iterator[threading.Event]:
    """Record Ctrl-C instead of raising KeyboardInterrupt, so that no step is left half done.

    Only if Python's default handler is installed and this is the main thread. A program's own
    handler is not replaced.
    """
    pressed = threading.Event()
    replaces = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if replaces:
        signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield pressed
    finally:
        if replaces:
            signal.signal(signal.SIGINT, signal.default_int_handler)
