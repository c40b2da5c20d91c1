"""Warnings about what an imputer could learn from its training table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from psmvae._caller import warn_at_caller
from psmvae.table.errors import Reported

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.imputers.deep import DeepImputer
    from psmvae.nn.columns import Columns

__all__ = [
    "CompleteColumnWarning",
    "DroppedPredictorsWarning",
    "FewRowsWarning",
    "ImproperDrawsWarning",
    "MaxTimeWarning",
    "MechanismTimeWarning",
    "NothingLearnedWarning",
    "UnusedSelfMaskWarning",
]

# A deep model needs at least so many rows, and so many observed cells for each column.
MIN_ROWS, MIN_CELLS = 50, 10


@dataclass(eq=False, repr=False)
class FewRowsWarning(Reported, UserWarning):
    """The table is too small for a deep imputer.

    Attributes
    ----------
    imputer : str
        The name of the imputer's class.
    n_rows, n_cells, n_columns : int
        Numbers of rows, observed cells and modelled columns.
    """

    imputer: str
    n_rows: int
    n_cells: int
    n_columns: int
    _problem = (
        "the table has {n_rows:,} rows and {n_cells:,} observed cells in {n_columns:,} columns, "
        "fewer than {imputer} can learn from"
    )
    _remedy = "compare with MICEImputer, or collect more rows"


@dataclass(eq=False, repr=False)
class ImproperDrawsWarning(Reported, UserWarning):
    """Multiple imputations do not include the uncertainty of the imputer's parameters.

    Attributes
    ----------
    imputer : str
        The name of the imputer's class.
    """

    imputer: str
    _problem = (
        "the imputations of this {imputer} do not include the uncertainty of its parameters, so "
        "that intervals by Rubin's rules are too narrow"
    )
    _remedy = "use an imputer with latent variables and draws='proper', or MICEImputer"


@dataclass(eq=False, repr=False)
class DroppedPredictorsWarning(Reported, UserWarning):
    """Predictors are constant or collinear among the rows with an imputed column observed.

    Attributes
    ----------
    predictors : str
        The predictors, and the columns that they do not predict.
    """

    predictors: str
    _problem = (
        "Predictors are left out of the draws because they are constant or collinear among the "
        "rows with the imputed column observed (see dropped_): {predictors}"
    )
    _remedy = "check whether these columns should predict it, or set predictors"


@dataclass(eq=False, repr=False)
class UnusedSelfMaskWarning(Reported, UserWarning):
    """The masks of columns say too little to fit the odds of going missing by value.

    Attributes
    ----------
    columns : str
        Names of the columns.
    """

    columns: str
    _problem = (
        "mask_model states that cells of {columns} are missing because of their value, but this is "
        "not used: a column needs two distinct observed values, 10 missing and 10 observed cells, "
        "and a mask that agrees with the stated sign. The cells are imputed as if missing at random"
    )
    _remedy = "use MultipleImputation.shift or tipping_point to vary the assumption"


@dataclass(eq=False, repr=False)
class CompleteColumnWarning(Reported, UserWarning):
    """A `SelfMask` names columns that have no missing cells in the training table.

    Attributes
    ----------
    columns : str
        Names of the columns.
    """

    columns: str
    _problem = (
        "mask_model states that cells of {columns} are missing because of their value, but no cell "
        "is missing there in the training table, so that nothing is corrected"
    )
    _remedy = "name columns with missing cells"


@dataclass(eq=False, repr=False)
class NothingLearnedWarning(Reported, UserWarning):
    """The validation error of a deep imputer is no lower than that of the column means.

    Attributes
    ----------
    error, error_of_mean : float
        Root mean squared errors, in standard deviations.
    """

    error: float
    error_of_mean: float
    _problem = (
        "the validation error is {error:.3f} standard deviations, no lower than that of the column "
        "means, {error_of_mean:.3f}: the columns do not predict each other, or the fit failed"
    )
    _remedy = "train longer (max_epochs, max_time), or compare with MICEImputer and MeanImputer"


@dataclass(eq=False, repr=False)
class MaxTimeWarning(Reported, UserWarning):
    """Training stopped at `max_time`, before the validation error stopped falling.

    Attributes
    ----------
    max_time : float
        Seconds that `fit` was allowed.
    n_epochs, max_epochs : int
        Epochs trained, and epochs at most.
    """

    max_time: float
    n_epochs: int
    max_epochs: int
    _problem = (
        "max_time ({max_time:g} s) stopped training after {n_epochs:,} of at most {max_epochs:,} "
        "epochs, and the best weights so far are used"
    )
    _remedy = "increase max_time, or fit on fewer rows"


@dataclass(eq=False, repr=False)
class MechanismTimeWarning(Reported, UserWarning):
    """`max_time` ended before explanations of the masks of all columns were compared.

    Attributes
    ----------
    columns : str
        Names of the columns without a comparison.
    """

    columns: str
    _problem = (
        "max_time left no time to compare explanations of the missing cells of {columns}, which "
        "are imputed as if missing at random"
    )
    _remedy = "increase max_time, or fit on fewer columns"


def warn_of_fit(imputer: DeepImputer, x: Tensor, m: Tensor, *, timed_out: bool) -> None:
    """Warn of a fit that is probably not good; x and m are in the model's column order."""
    n_rows, n_columns = m.shape
    n_cells, error = int(m.sum()), imputer.best_validation_error_
    found: list[Warning] = []
    if n_rows < MIN_ROWS or n_cells < MIN_CELLS * n_columns:
        found.append(FewRowsWarning(type(imputer).__name__, n_rows, n_cells, n_columns))
    if timed_out and imputer.max_time is not None:
        last = imputer.history_[-1]
        found.append(MaxTimeWarning(float(imputer.max_time), last.epoch, last.max_epochs))
    if error is not None:
        of_mean = error_of_mean(imputer.model_.inputs, x, m)
        if error >= of_mean:
            found.append(NothingLearnedWarning(error, of_mean))
    for warning in found:
        warn_at_caller(warning)


def error_of_mean(columns: Columns, x: Tensor, m: Tensor) -> float:
    """Return the root mean squared error of the columns' means on the observed cells.

    It is in the units of `best_validation_error_`; for levels it is that of their shares.
    """
    import torch

    with torch.no_grad():
        statistics = columns.statistics(x)
        parts = zip(columns.split(statistics, "statistics"), columns.slices(), strict=True)
        means = []
        for part, at in parts:
            weight = m[:, at].unsqueeze(-1)
            means.append(((part * weight).sum(0) / weight.sum(0)).flatten())
        error = columns.error(torch.cat(means).expand_as(statistics), x)
        return float(((error * m).sum() / m.sum()).sqrt())
