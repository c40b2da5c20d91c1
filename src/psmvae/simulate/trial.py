"""A simulated randomised trial with two dropout mechanisms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

DROPOUT_REASONS = ("none", "administrative", "bad outcome")
OUTCOME = "week12"

# Columns that are missing after administrative dropout, which happens after week 4, and its share.
_LOST_ADMINISTRATIVELY, _ADMINISTRATIVE_SHARE = ("week8", "week12", "lab", "adherence"), 0.25
# Probability of dropout given the standardised outcome y: c · sigmoid(w (y - t)). With these
# numbers, about a third of the patients without administrative dropout, a quarter of all.
_CEILING, _SLOPE, _THRESHOLD = 0.95, 5.0, 0.4


@dataclass(frozen=True)
class Trial:
    """A trial with known true values.

    Parameters
    ----------
    complete : mapping of str to ndarray
        The true values of each column.
    m : ndarray of bool of shape (row, column)
        The mask, True where a cell is observed.
    dropout : ndarray of int of shape (row,)
        The dropout reason of each patient, an index into
        ``("none", "administrative", "bad outcome")``.

    Examples
    --------
    >>> trial = simulated_trial(5, rng=np.random.default_rng(0))
    >>> trial.dropout.tolist()
    [0, 2, 0, 0, 0]
    >>> trial.observed("week12").tolist()
    [True, False, True, True, True]
    """

    complete: Mapping[str, NDArray[Any]]
    m: NDArray[np.bool_]
    dropout: NDArray[np.int64]

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(self.complete)

    def observed(self, name: str) -> NDArray[np.bool_]:
        """Return the mask of one column.

        Parameters
        ----------
        name : str
            The column's name.

        Returns
        -------
        ndarray of bool of shape (row,)
            True where the column is observed.
        """
        return self.m[:, self.names.index(name)]


def simulated_trial(n: int = 1000, *, rng: np.random.Generator) -> Trial:
    """Simulate a randomised trial of `n` patients.

    A score from 0 to 100 (higher is worse) is measured at baseline and after 4, 8 and 12 weeks.
    Week 12 is the outcome. There are two dropout mechanisms:

    - *Administrative* dropout is completely at random: for a quarter of the patients, the visits
      after week 4, the lab value and the adherence are missing.
    - *Bad-outcome* dropout depends on the outcome itself: the worse it is, the more likely it is
      missing. Only the outcome is missing.

    The second mechanism is nonignorable: complete cases and methods that assume missingness at
    random underestimate the mean outcome.

    Parameters
    ----------
    n : int, default=1000
        Number of patients.
    rng : numpy.random.Generator
        The random generator.

    Returns
    -------
    Trial
        The true values, the mask and the dropout reasons.

    Raises
    ------
    ValueError
        If `n` is below 1.

    Examples
    --------
    >>> trial = simulated_trial(1000, rng=np.random.default_rng(0))
    >>> trial.names
    ('arm', 'age', 'sex', 'site', 'baseline', 'week4', 'week8', 'week12', 'lab', 'adherence')
    >>> observed, outcome = trial.observed("week12"), trial.complete["week12"]
    >>> bool(outcome[observed].mean() < outcome.mean() - 2)
    True
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n!r}")
    complete = _patients(n, rng)
    administrative = rng.random(n) < _ADMINISTRATIVE_SHARE
    bad = rng.random(n) < bad_outcome_probability(complete[OUTCOME])
    dropout = np.where(administrative, 1, np.where(bad, 2, 0)).astype(np.int64)

    lost = dict.fromkeys(_LOST_ADMINISTRATIVELY, dropout == 1)
    lost[OUTCOME] = dropout > 0
    m = ~np.column_stack([lost.get(name, np.zeros(n, dtype=np.bool_)) for name in complete])
    return Trial(complete=complete, m=m, dropout=dropout)


def bad_outcome_probability(outcome: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of bad-outcome dropout, of patients without administrative dropout.

    Parameters
    ----------
    outcome : ndarray of float
        Outcomes.

    Returns
    -------
    ndarray of float
        Probabilities, of the same shape.
    """
    # moments of the population and not of the sample, so that patients are independent
    y = (outcome - 44.0) / 14.0
    return np.asarray(_CEILING / (1.0 + np.exp(-_SLOPE * (y - _THRESHOLD))))


def _patients(n: int, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """The true values of all columns."""
    active = rng.random(n) < 0.5
    female = rng.random(n) < 0.55
    age = np.clip(np.rint(rng.normal(54.0, 12.0, n)), 18, 90).astype(np.int64)
    site = rng.choice(np.array(["Basel", "Ghent", "Lyon", "Turin"]), n, p=[0.4, 0.3, 0.2, 0.1])

    # each patient has a latent starting score and a latent improvement
    start = rng.normal(50.0, 9.0, n) + 0.15 * (age - 54)
    adherence = np.clip(100 * rng.beta(6.0, 1.8, n), 0.0, 100.0)
    gain = 2.0 + 0.1 * active * adherence + rng.normal(0.0, 6.0, n)
    score = {
        week: start - gain * progress + rng.normal(0.0, 3.0, n)
        for week, progress in (("baseline", 0.0), ("week4", 0.4), ("week8", 0.75), ("week12", 1.0))
    }
    # a late change that no earlier visit predicts: it makes the missing outcomes nonignorable
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
