"""Progress of training, reported to callbacks and kept in ``history_``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """State of training after an epoch.

    Parameters
    ----------
    epoch : int
        Epochs done, those of pre-training included.
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
        If training does not stop early. None while this is unknown.
    """

    epoch: int
    max_epochs: int
    validation_error: float | None
    best_validation_error: float | None
    seconds: float
    seconds_left: float | None
