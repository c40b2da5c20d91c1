"""A simulated randomised trial in which patients drop out for two very different reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

KINDS_OF_DROPOUT = ("none", "administrative", "bad outcome")
OUTCOME = "week12"

# What a patient who leaves for administrative reasons after week 4 no longer contributes.
_LOST_ADMINISTRATIVELY = ("week8", "week12", "lab", "adherence")

_ADMINISTRATIVE_SHARE = 0.25
# Chance of leaving because of the outcome, by the standardised outcome y: c · sigmoid(w (y - t)).
# Steep and almost certain at the bad end; with these numbers about a third of those who did not
# leave for administrative reasons, a quarter of all.
_CEILING, _SLOPE, _THRESHOLD = 0.95, 5.0, 0.4


@dataclass(frozen=True)
class Trial:
    """A trial with known truth.

    Parameters
    ----------
    complete : mapping of str to ndarray
        Every column without holes.
    m : ndarray of bool, (row, column)
        True where the cell was observed.
    dropout : ndarray of int, (row,)
        Why the patient left: an index into ``("none", "administrative", "bad outcome")``.
    """

    complete: Mapping[str, NDArray[Any]]
    m: NDArray[np.bool_]
    dropout: NDArray[np.int64]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in order."""
        return tuple(self.complete)

    def observed(self, name: str) -> NDArray[np.bool_]:
        """In which rows the column was observed."""
        return self.m[:, self.names.index(name)]


def simulated_trial(n: int = 1000, *, rng: np.random.Generator) -> Trial:
    """Simulate a randomised trial of `n` patients.

    A score from 0 to 100, the higher the worse, is measured at baseline and after 4, 8 and 12
    weeks; week 12 is the outcome. Patients leave for one of two reasons. *Administrative*: a
    quarter, whatever their values, moves away after week 4 and loses the later visits, the lab
    value and the adherence. *Because the outcome was bad*: the worse the outcome, the likelier
    the patient stays away from the last visit, and only the outcome is lost. The second kind is
    nonignorable: given everything that was observed, the missing outcomes are still worse than
    the observed ones, so that complete cases and every method that assumes missingness at random
    are too optimistic.

    Parameters
    ----------
    n : int, default=1000
        Number of patients.
    rng : numpy.random.Generator
        The only source of randomness.

    Returns
    -------
    Trial
        The complete columns, which cells were observed and why each patient left.

    Examples
    --------
    >>> import numpy as np
    >>> trial = simulated_trial(1000, rng=np.random.default_rng(0))
    >>> trial.names
    ('arm', 'age', 'sex', 'site', 'baseline', 'week4', 'week8', 'week12', 'lab', 'adherence')
    >>> seen, outcome = trial.observed("week12"), trial.complete["week12"]
    >>> bool(outcome[seen].mean() < outcome.mean() - 2)
    True
    """
    if n < 1:
        message = f"n must be at least 1, got {n!r}"
        raise ValueError(message)
    complete = _patients(n, rng)
    administrative = rng.random(n) < _ADMINISTRATIVE_SHARE
    bad = rng.random(n) < _chance_to_leave(complete[OUTCOME])
    dropout = np.where(administrative, 1, np.where(bad, 2, 0)).astype(np.int64)

    names = list(complete)
    m = np.ones((n, len(names)), dtype=np.bool_)
    for name in _LOST_ADMINISTRATIVELY:
        m[dropout == 1, names.index(name)] = False
    m[dropout == 2, names.index(OUTCOME)] = False
    return Trial(complete=complete, m=m, dropout=dropout)


def _patients(n: int, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    active = rng.random(n) < 0.5
    female = rng.random(n) < 0.55
    age = np.clip(np.rint(rng.normal(54.0, 12.0, n)), 18, 90).astype(np.int64)
    site = rng.choice(np.array(["Basel", "Ghent", "Lyon", "Turin"]), n, p=[0.4, 0.3, 0.2, 0.1])

    # The scores follow one latent course a patient: where it starts, and how fast it gets better.
    start = rng.normal(50.0, 9.0, n) + 0.15 * (age - 54)
    adherence = np.clip(100 * rng.beta(6.0, 1.8, n), 0.0, 100.0)
    gain = 2.0 + 0.1 * active * adherence + rng.normal(0.0, 6.0, n)
    score = {
        week: start - gain * progress + rng.normal(0.0, 3.0, n)
        for week, progress in (("baseline", 0.0), ("week4", 0.4), ("week8", 0.75), ("week12", 1.0))
    }
    # A flare shortly before the end is seen in no earlier visit: what makes the outcome matter.
    score[OUTCOME] = score[OUTCOME] + rng.normal(0.0, 7.0, n)
    lab = np.exp(rng.normal(1.0, 0.25, n) + 0.015 * (start - 50) - 0.01 * (gain - 6))
    return {
        "arm": np.where(active, "active", "control"),
        "age": age,
        "sex": np.where(female, "female", "male"),
        "site": site,
        **{week: np.round(np.clip(values, 0.0, 100.0), 1) for week, values in score.items()},
        "lab": np.round(lab, 2),
        "adherence": np.round(adherence, 1),
    }


def _chance_to_leave(outcome: NDArray[np.float64]) -> NDArray[np.float64]:
    # The population's moments, not the sample's: a patient's fate hangs on no other patient.
    y = (outcome - 44.0) / 14.0
    return _CEILING / (1.0 + np.exp(-_SLOPE * (y - _THRESHOLD)))
