"""One thread of BLAS, for matrices that are too small for several."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_info, threadpool_limits


class _Limit:
    """The limit of the process while at least one thread needs it.

    If each thread set and restored it, the one that ends last would restore the limit of another.
    """

    def __init__(self) -> None:
        self._lock, self._users, self._n_threads = threading.Lock(), 0, 1
        self._limits: threadpool_limits | None = None

    @contextmanager
    def on(self) -> Iterator[int]:
        with self._lock:
            if self._users == 0:
                blas = [each for each in threadpool_info() if each["user_api"] == "blas"]
                self._n_threads = max((each["num_threads"] for each in blas), default=1)
                self._limits = threadpool_limits(1, "blas")
            self._users += 1
            n_threads = self._n_threads
        try:
            yield n_threads
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0 and self._limits is not None:
                    self._limits.restore_original_limits()


_LIMIT = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[int]:
    """Use one thread of BLAS in a block; the last thread that leaves such a block restores all.

    Gives the number of threads that BLAS may use outside of it, for threads of one's own.
    """
    with _LIMIT.on() as n_threads:
        yield n_threads
