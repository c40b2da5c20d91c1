"""A limit of the numbers that a block of code may allocate in tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

# Functions that make a tensor from its size.
_FROM_SIZE = frozenset(
    (torch.zeros, torch.ones, torch.full, torch.empty, torch.rand, torch.randn, torch.arange)
)


class SizeLimit(TorchFunctionMode):
    """Raise ValueError before tensors of more than ``limit`` numbers in all are allocated.

    Counted are tensors that are made from a size and copies of tensors: all that outlast the
    construction of a model. Results of arithmetic are as large as its operands.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.n_allocated = 0

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Count what a function allocates, then call it."""
        del types
        kwargs = kwargs or {}
        if func in _FROM_SIZE:
            self._count(_size(args, kwargs))
        elif func is Tensor.clone:
            # a view may have more numbers than its memory, and its copy has all of them
            self._count(args[0].shape)
        return func(*args, **kwargs)

    def _count(self, size: Iterable[int]) -> None:
        self.n_allocated += math.prod(size)
        if self.n_allocated > self.limit:
            raise ValueError(
                f"the sizes of the model need {self.n_allocated:,} numbers or more, and its "
                f"tensors allow {self.limit:,}"
            )


def _size(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterable[int]:
    """Return the size among the arguments: one sequence, or several whole numbers."""
    if "size" in kwargs:
        return tuple(kwargs["size"])
    for each in args:
        if isinstance(each, tuple | list):
            return each
    return [each for each in args if isinstance(each, int)]
