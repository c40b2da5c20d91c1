"""Predictions of training cells as if the model had not been trained on them.

A model fits the cells that it was trained on better than others, although each is predicted with
itself hidden: its prediction has moved towards the value. A linear smoother with leverage h has a
residual of (1 - h) times the leave-one-out residual. The average leverage follows from the squared
errors of training cells and of cells that were held out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Residuals grow by at most this factor. With more, the likelihood of the masks is lower and the
# errors of imputations are the same (wine, with seeds that no result uses).
MAX_FACTOR = 1.5
# Held-out and training cells that are needed for the factor.
MIN_CELLS = 20
# Squared residuals are limited to this multiple of their mean: one outlier would decide.
MAX_SQUARE = 9.0


def leave_one_out(prediction: Floats, values: Floats, observed: Bools, held_out: Bools) -> Floats:
    """Return predictions of which those of training cells are moved away from the values.

    Parameters
    ----------
    prediction : ndarray of shape (n_rows,)
        Predictions of a model that does not see the cell.
    values : ndarray of shape (n_observed,)
        The observed values.
    observed, held_out : ndarray of bool of shape (n_rows,)
        Rows with an observed cell, and those whose cell the model was not trained on.

    Returns
    -------
    ndarray of shape (n_rows,)
        The predictions. Those of missing and of held-out cells are unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.tile([0.0, 1.0], 40)
    >>> held_out = np.arange(80) < 40
    >>> prediction = values + np.where(held_out, 0.5, 0.4)
    >>> moved = leave_one_out(prediction, values, np.ones(80, dtype=bool), held_out)
    >>> bool(np.allclose(moved, values + 0.5))
    True
    """
    training = observed & ~held_out
    residual = values - prediction[observed]
    inside, outside = residual[training[observed]], residual[held_out[observed]]
    if min(len(inside), len(outside)) < MIN_CELLS:
        return prediction
    scale = max(float(np.mean(inside**2)), 1e-300)
    inside_2, outside_2 = (np.minimum(each**2 / scale, MAX_SQUARE) for each in (inside, outside))
    # less one standard error: no overfitting where the difference may be chance
    mean = outside_2.mean()
    ratio = (mean - outside_2.std() / np.sqrt(len(outside_2))) / max(float(inside_2.mean()), 1e-300)
    factor = np.clip(np.sqrt(np.maximum(ratio, 0.0)), 1.0, MAX_FACTOR)
    moved = prediction.copy()
    moved[training] = values[training[observed]] - factor * inside
    return moved
