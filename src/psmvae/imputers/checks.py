"""Checks of parameters. Messages name the parameter, the expected values and the given one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from psmvae.table.libraries import is_pandas_frame

if TYPE_CHECKING:
    import torch


MAX_WHOLE_NUMBER = 2**31 - 1
"""Largest whole number of a parameter: what no machine can compute is refused at once."""


def whole_number(name: str, value: Any, *, low: int, high: int = MAX_WHOLE_NUMBER) -> int:
    """Check for an integer from ``low`` to ``high``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number >= {low}, got {value!r}.")
    number = int(value)
    if number < low:
        raise ValueError(f"{name} must be >= {low}, got {value!r}.")
    if number > high:
        raise ValueError(f"{name} must be <= {high}, got {value!r}.")
    return number


def number(
    name: str,
    value: Any,
    low: float,
    high: float = float("inf"),
    *,
    open_low: bool = False,
    open_high: bool = False,
    words: Sequence[str] = (),
) -> None:
    """Check for a number between ``low`` and ``high``, or one of a few strings."""
    if isinstance(value, str) and value in words:
        return
    open_high = open_high or high == float("inf")
    where = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
    or_word = "".join(f"{word!r} or " for word in words)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {or_word}a number in {where}, got {value!r}.")
    x = float(value)
    if not (low < x if open_low else low <= x) or not (x < high if open_high else x <= high):
        raise ValueError(f"{name} must be {or_word}in {where}, got {value!r}.")


def choice(name: str, value: Any, allowed: Collection[str]) -> str:
    """Check for one of a few strings."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {sorted(allowed)}, got {value!r}.")
    return value


def yes_or_no(name: str, value: Any) -> bool:
    """Check for a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def seed(name: str, value: Any) -> int:
    """Draw a seed from a random state."""
    try:
        return int(check_random_state(value).randint(2**31 - 1))
    except ValueError as error:
        allowed = "None, a whole number from 0 to 2**32 - 1 or a RandomState"
        raise ValueError(f"{name} must be {allowed}, got {value!r}.") from error


def predictors(value: Any) -> dict[str, list[str]]:
    """Return the predictors of each named column: of a mapping, or of a frame of 0 and 1."""
    if is_pandas_frame(value):
        names = [str(name) for name in value.columns]
        rows = value.to_numpy(dtype=bool)
        return {
            str(target): [name for name, used in zip(names, row, strict=True) if used]
            for target, row in zip(value.index, rows, strict=True)
        }
    if not isinstance(value, Mapping):
        raise TypeError(
            "predictors must map names of columns to lists of names, be a pandas frame of 0 and "
            f"1, or None, got {value!r}."
        )
    for name, given in value.items():
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise TypeError(f"predictors of {name!r} must be a list of names, got {given!r}.")
    return {name: list(given) for name, given in value.items()}


def shape(name: str, array: Any, sizes: tuple[int, ...]) -> None:
    """Check the shape of an array, which may come from a damaged file."""
    if tuple(array.shape) != sizes:
        raise ValueError(f"{name} must have shape {sizes}, got {tuple(array.shape)}.")


def rates(name: str, array: Any) -> None:
    """Check that numbers are between 0 and 1, which may come from a damaged file."""
    if array.dtype.kind != "f" or not ((array >= 0) & (array <= 1)).all():
        raise ValueError(f"{name} must be numbers between 0 and 1.")


def torch_device(value: Any) -> torch.device:
    """Return the torch device of a setting."""
    import torch

    if value == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not isinstance(value, str | torch.device):
        raise TypeError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:N', got {value!r}.")
    try:
        device = torch.device(value)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:N', got {value!r}.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={value!r} is not available: PyTorch finds no CUDA device.")
    return device
