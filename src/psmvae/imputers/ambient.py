"""Independence of PyTorch's global settings.

Tensors are created with an explicit data type everywhere in the library. A default device and
autocast are local to a thread, so they are switched off while an imputer works.

A process that was forked has the memory of its parent but none of its threads. PyTorch would wait
for those of its thread pool for ever, so it uses one thread there, as in workers of its DataLoader.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class _Process:
    """Whether this process was forked since the last use of an imputer."""

    forked = False


def _after_fork() -> None:
    _Process.forked = True


# Windows has no fork
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def without_ambient_settings() -> Iterator[None]:
    """Switch off the caller's default device and autocast; nothing if PyTorch is not loaded."""
    if "torch" not in sys.modules:
        yield
        return
    # While another thread imports PyTorch, it is in `sys.modules` and not complete. This waits for
    # that thread; a use of PyTorch before its end would make the import fail.
    torch = import_module("torch")
    if _Process.forked:
        torch.set_num_threads(1)
        _Process.forked = False
    with ExitStack() as stack:
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        # torch.get_default_device fails in PyTorch 2.5 after set_default_device(None)
        if torch.empty(0, dtype=torch.uint8).device.type != "cpu":
            stack.enter_context(torch.device("cpu"))
        yield


def independent(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function without the caller's default device and autocast."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with without_ambient_settings():
            return function(*args, **kwargs)

    return run
