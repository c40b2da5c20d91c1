"""Warnings about what a deep imputer could learn from its training table."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.imputers.deep import DeepImputer
    from psmvae.nn.columns import Columns

# A deep model needs at least so many rows, and so many observed cells for each column.
MIN_ROWS, MIN_CELLS = 50, 10
# Largest validation error, relative to that of the mean, that counts as learned.
MAX_RELATIVE_ERROR = 1.0


class FewRowsWarning(UserWarning):
    """The table is too small for a deep imputer."""


class NothingLearnedWarning(UserWarning):
    """The validation error of a deep imputer is no lower than that of the column means."""


class MaxTimeWarning(UserWarning):
    """Training stopped at `max_time`, before the validation error stopped falling."""


def warn_of_fit(imputer: DeepImputer, x: Tensor, m: Tensor, *, timed_out: bool) -> None:
    """Warn of a fit that is probably not good; x and m are in the model's column order."""
    n_rows, n_columns = m.shape
    n_cells = int(m.sum())
    if n_rows < MIN_ROWS or n_cells < MIN_CELLS * n_columns:
        warn(
            f"the table has {n_rows:,} rows and {n_cells:,} observed cells in {n_columns:,} "
            f"columns, fewer than {type(imputer).__name__} can learn from; compare with "
            "MICEImputer, or collect more rows",
            FewRowsWarning,
        )
    if timed_out:
        last = imputer.history_[-1] if imputer.history_ else None
        most = f" of at most {last.max_epochs:,}" if last else ""
        warn(
            f"max_time={imputer.max_time:g} stopped training after {imputer.n_epochs_:,}{most} "
            "epochs, and the best weights so far are kept; increase max_time, or fit on fewer rows",
            MaxTimeWarning,
        )
    error = imputer.best_validation_error_
    if error is None:
        return
    of_mean = error_of_mean(imputer.model_.inputs, x, m)
    if error >= MAX_RELATIVE_ERROR * of_mean:
        warn(
            f"the validation error is {error:.3f} standard deviations, no lower than that of the "
            f"column means, {of_mean:.3f}: the columns do not predict each other, or the fit "
            "failed; train longer (max_epochs, max_time), compare with MICEImputer, or use "
            "MeanImputer",
            NothingLearnedWarning,
        )


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


def warn(message: str, category: type[UserWarning], **options: Any) -> None:
    """Warn at the line that called ``fit``."""
    warnings.warn(message, category, stacklevel=5, **options)
