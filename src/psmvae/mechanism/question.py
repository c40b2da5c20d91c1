"""What is asked about the mask of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Shape = Literal["auto", "straight", "ceiling", "smooth"]


@dataclass(frozen=True)
class Slope:
    """What is known of a straight γ: mean and standard deviation of its slope.

    For one unit of the column in a question of the user, and of its predictor in `fit_column`.
    """

    mean: float
    sd: float


@dataclass(frozen=True)
class Question:
    """What the user says about a column.

    ``assumed`` is True where the user says that its value decides on its absence. ``shadow`` are
    the numbers of the columns that may not influence the mask directly; the others enter its log
    odds. All may not by default.
    """

    assumed: bool = False
    shape: Shape = "auto"
    sign: Literal["high", "low"] | None = None
    slope: Slope | None = None
    shadow: frozenset[int] | None = None
