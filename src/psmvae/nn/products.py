"""What multiplies matrices: which library on a CPU, which units of a GPU."""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class _Switch:
    """PyTorch's setting, which is one for the process, and how many want it off."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.before = True

    def enter(self) -> None:
        with self.lock:
            if self.users == 0:
                self.before = bool(torch.backends.mkldnn.enabled)
                torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
            self.users += 1

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                torch.backends.mkldnn.enabled = self.before  # type: ignore[assignment]


_SWITCH = _Switch()


@contextmanager
def by_blas() -> Iterator[None]:
    """Have products done by BLAS rather than oneDNN, on an ARM processor under Linux.

    PyTorch gives them to oneDNN there, which takes up to a third longer for products of some
    thousand rows and a hundred columns, and most where one side is transposed, as in a backward
    pass. The setting is one for the process: the last to leave restores it.

    Examples
    --------
    >>> import torch
    >>> from psmvae.nn.products import by_blas
    >>> with by_blas():
    ...     _ = torch.ones(2, 2) @ torch.ones(2, 2)
    """
    if platform.machine() != "aarch64":
        yield
        return
    _SWITCH.enter()
    try:
        yield
    finally:
        _SWITCH.leave()


@contextmanager
def by_tensor_cores(device: torch.device) -> Iterator[None]:
    """Have a GPU's products of float32 done by its tensor cores (TF32), several times as fast.

    Factors are then rounded to 10 bits, sums are not: well below the noise of a step's gradients.
    Nothing but training does this. The setting is one for the process.

    Examples
    --------
    >>> import torch
    >>> from psmvae.nn.products import by_tensor_cores
    >>> with by_tensor_cores(torch.device("cpu")):
    ...     pass
    """
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
