"""Warnings that name the line of the user's code."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


def warn_at_caller(warning: Warning) -> None:
    """Warn at the line that called the library, through scikit-learn or not."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_back is not None and _is_internal(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def _is_internal(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in ("psmvae", "sklearn")
