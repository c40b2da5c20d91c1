"""What multiplies matrices: which library on a CPU, which units of a GPU."""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


class _Switch:
    """A setting of PyTorch, which is one for the process, and how many want another value."""

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], None], wanted: Any) -> None:
        self.read, self.write, self.wanted = read, write, wanted
        self.lock = threading.Lock()
        self.users = 0
        self.before: Any = None

    @contextmanager
    def on(self) -> Iterator[None]:
        """Change it; the last to leave restores it."""
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
    """What float32 products are rounded to; None where it was set in PyTorch's newer way."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return None


def _set_precision(value: str | None) -> None:
    # a user who chose in the newer way has chosen
    if value is not None and _precision() is not None:
        torch.set_float32_matmul_precision(value)


def _set_onednn(value: bool) -> None:
    torch.backends.mkldnn.enabled = value  # type: ignore[assignment]


_ONEDNN = _Switch(lambda: bool(torch.backends.mkldnn.enabled), _set_onednn, False)
_TF32 = _Switch(_precision, _set_precision, "high")


@contextmanager
def use_blas() -> Iterator[None]:
    """Have products done by BLAS rather than oneDNN, on an ARM processor under Linux.

    PyTorch gives them to oneDNN there, which takes up to a third longer for products of some
    thousand rows and a hundred columns, and most where one side is transposed, as in a backward
    pass. The setting is one for the process: the last to leave restores it.

    Examples
    --------
    >>> import torch
    >>> from psmvae.nn.matmul_backend import use_blas
    >>> with use_blas():
    ...     _ = torch.ones(2, 2) @ torch.ones(2, 2)
    """
    if platform.machine() != "aarch64":
        yield
        return
    with _ONEDNN.on():
        yield


@contextmanager
def allow_tf32(device: torch.device) -> Iterator[None]:
    """Have a GPU's products of float32 done by its tensor cores (TF32).

    Factors are then rounded to 10 bits, sums are not: well below the noise of a step's gradients.
    The setting is one for the process: the last to leave restores it. Where it was made in
    PyTorch's newer way, for each library, it is left as it is.

    Examples
    --------
    >>> import torch
    >>> from psmvae.nn.matmul_backend import allow_tf32
    >>> with allow_tf32(torch.device("cpu")):
    ...     pass
    """
    if device.type != "cuda":
        yield
        return
    with _TF32.on():
        yield
