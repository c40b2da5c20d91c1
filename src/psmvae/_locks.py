"""A lock that a forked process can use."""

from __future__ import annotations

import os
import threading
from types import TracebackType


class ForkSafeLock:
    """A reentrant lock that is free in a forked process.

    A thread that held it in the parent does not exist in the child, which would wait for ever.
    """

    def __init__(self) -> None:
        self._replace()
        # Windows has no fork
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._replace)

    def _replace(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()
