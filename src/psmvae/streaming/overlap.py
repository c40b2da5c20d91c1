"""Reading and writing in a second thread while values are computed; pyarrow does not hold it up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

Item = TypeVar("Item")


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Return the items of an iterator, of which the next one is being made."""
    end = object()
    with ThreadPoolExecutor(1) as thread:
        following: Future[Any] = thread.submit(next, items, end)
        while (item := following.result()) is not end:
            following = thread.submit(next, items, end)
            yield item


@contextmanager
def write_behind(write: Callable[[Any], None]) -> Iterator[Callable[[Any], None]]:
    """Yield a function that writes a table while the caller goes on; errors come one table later.

    All tables are written when the block ends.
    """
    with ThreadPoolExecutor(1) as thread:
        pending: list[Future[None]] = []

        def wait() -> None:
            while pending:
                pending.pop().result()

        def begin(table: Any) -> None:
            wait()
            pending.append(thread.submit(write, table))

        yield begin
        wait()
