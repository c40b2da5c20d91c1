"""The implementation of matrix products: the library on a CPU, the precision on a GPU."""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch


class _Switch:
    """A process-wide PyTorch setting that is changed while at least one user needs it."""

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], None], wanted: Any) -> None:
        self.read, self.write, self.wanted = read, write, wanted
        self.lock, self.users, self.before = threading.Lock(), 0, None

    @contextmanager
    def on(self) -> Iterator[None]:
        """Change the setting; the last user restores it."""
        with self.lock:
            if self.users == 0:
                self.before = self.read()
                self.write(self.wanted)
            self.users += 1
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if self.users == 0:
                    self.write(self.before)


def _precision() -> str | None:
    """Precision of float32 products, None if it was set through PyTorch's newer per-backend API."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return None


def _set_precision(value: str | None) -> None:
    # do not override a choice made through the newer API
    if value is not None and _precision() is not None:
        torch.set_float32_matmul_precision(value)


_ONEDNN = _Switch(
    lambda: bool(torch.backends.mkldnn.enabled),
    partial(setattr, torch.backends.mkldnn, "enabled"),
    wanted=False,
)
_TF32 = _Switch(_precision, _set_precision, "high")


def use_blas() -> AbstractContextManager[None]:
    """Use BLAS instead of oneDNN for matrix products on an ARM processor under Linux.

    oneDNN, PyTorch's default there, takes up to a third longer for the products of a training step,
    most for transposed factors as in a backward pass. No effect on other processors.
    """
    return _ONEDNN.on() if platform.machine() == "aarch64" else nullcontext()


def allow_tf32(device: torch.device) -> AbstractContextManager[None]:
    """Use TF32 tensor cores for float32 matrix products on a GPU.

    Factors are rounded to a mantissa of 10 bits and sums are not. The rounding error is far below
    the noise of stochastic gradients, so TF32 is used in training only.
    """
    return _TF32.on() if device.type == "cuda" else nullcontext()
