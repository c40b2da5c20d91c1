"""What a user states about the mask of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Shape = Literal["auto", "straight", "ceiling", "smooth"]


@dataclass(frozen=True)
class Slope:
    """What is known of a straight γ: mean and standard deviation of its slope.

    The unit is that of the column, or of its predictor in `fit_column`.
    """

    mean: float
    sd: float


@dataclass(frozen=True)
class Question:
    """What the user says about a column.

    ``assumed`` is True where the user states that cells are missing because of their value.
    ``shadow`` are the numbers of the columns that do not influence the mask, given the value; the
    others enter its log odds. By default no column does.
    """

    assumed: bool = False
    shape: Shape = "auto"
    sign: Literal["high", "low"] | None = None
    slope: Slope | None = None
    shadow: frozenset[int] | None = None
