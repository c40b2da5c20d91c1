"""Imports that leave global settings of the interpreter as they are."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec

from psmvae._locks import ForkSafeLock

# Libraries that are imported on first use, in part through scikit-learn, and that change global
# settings: rich draws a random number, PyTorch, scipy and others add filters of warnings, PyTorch's
# compiler sets an environment variable.
TORCH: tuple[str, ...] = ("torch",)
WITH_PROGRESS: tuple[str, ...] = (*TORCH, "rich.progress")
WITH_STATISTICS: tuple[str, ...] = (*WITH_PROGRESS, "scipy.stats")
FORESTS: tuple[str, ...] = ("sklearn.ensemble", "sklearn.linear_model")
WITH_CHAINS: tuple[str, ...] = (*WITH_STATISTICS, *FORESTS, "sklearn.impute")
_loaded: set[str] = set()
# Filters of warnings belong to the process: two threads that change and restore them would restore
# each other's.
_lock = ForkSafeLock()


@contextmanager
def unchanged_settings() -> Iterator[None]:
    """Restore `random`, the filters of `warnings` and the environment at the end of a block.

    For blocks that only import: what other threads draw meanwhile would be drawn again.
    """
    with _lock:
        state, filters, environment = random.getstate(), list(warnings.filters), dict(os.environ)
        try:
            yield
        finally:
            if random.getstate() != state:
                random.setstate(state)
            if list(warnings.filters) != filters:
                # in place: `warnings.catch_warnings` of a caller keeps this list
                warnings.filters[:] = filters  # type: ignore[index]
                _forget_shown()
            for name in os.environ.keys() - environment.keys():
                del os.environ[name]
            os.environ.update(environment)


@contextmanager
def quiet_warnings() -> Iterator[None]:
    """Restore the filters of warnings at the end of a block; one thread at a time."""
    with _lock, warnings.catch_warnings():
        yield


@contextmanager
def caught_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Record the warnings of a block; one thread at a time."""
    with _lock, warnings.catch_warnings(record=True) as caught:
        yield caught


@contextmanager
def recorded_warnings(category: type[Warning]) -> Iterator[list[warnings.WarningMessage]]:
    """Record the warnings of a block, those of a category always; one thread at a time."""
    with caught_warnings() as caught:
        warnings.simplefilter("always", category)
        yield caught


def load_libraries(names: tuple[str, ...]) -> None:
    """Import libraries with `unchanged_settings`; those that are not installed are left out."""
    new = [name for name in names if name not in _loaded]
    if not new:
        return
    with unchanged_settings():
        for name in new:
            if find_spec(name.partition(".")[0]) is not None:
                import_module(name)
    _loaded.update(new)


def _forget_shown() -> None:
    """Let `warnings` notice that its filters have changed."""
    notify = getattr(warnings, "_filters_mutated_lock_held", None) or getattr(
        warnings, "_filters_mutated", None
    )
    if notify is not None:
        notify()
