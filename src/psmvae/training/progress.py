"""Progress of training, reported to callbacks and kept in ``history_``."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Progress"]


@dataclass(frozen=True)
class Progress:
    """State of training after an epoch.

    Parameters
    ----------
    phase : str
        "pre-training" or "training".
    epoch : int
        Epochs done, those of pre-training included.
    expected_epochs : int
        Epochs expected in all, from the course of the validation error.
    max_epochs : int
        Epochs at most, those of pre-training included.
    validation_error : float or None
        Error of the validation cells in standard deviations, averaged over members. None without
        validation cells.
    best_validation_error : float or None
        Lowest validation error so far.
    seconds : float
        Since `fit` was called.
    seconds_left : float or None
        Expected, from the course of the validation error and at most those of `max_time`. None
        while this is unknown.
    """

    phase: str
    epoch: int
    expected_epochs: int
    max_epochs: int
    validation_error: float | None
    best_validation_error: float | None
    seconds: float
    seconds_left: float | None
