"""Columns of levels that are missing by another column, which levels explain in part."""

import numpy as np
import pytest

from psmvae.mechanism.column import Cells, fit_column
from psmvae.mechanism.question import Question


def cells_of(by, seed):
    """One categorical column with its exact probabilities given two others."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 500))
    logits = np.stack([1.5 * a, 1.5 * b, -a - b], axis=1)
    codes = (logits + rng.gumbel(size=logits.shape)).argmax(1).astype(float)
    rate = 0.6 * (a > np.median(a)) if by == "another column" else np.where(codes == 0, 0.6, 0.1)
    observed = rng.random(500) >= rate
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    if by == "own value":
        # those among observed cells
        probabilities = probabilities * np.array([0.4, 0.9, 0.9])
        probabilities /= probabilities.sum(1, keepdims=True)
    every = np.ones(500, dtype=bool)
    return Cells(
        values=codes[observed],
        observed=observed,
        prediction=probabilities,
        features=np.column_stack([a, b]),
        group=np.array([1, 2]),
        is_mask=np.zeros(2, dtype=bool),
        n_levels=3,
        ordered=False,
        are_logarithms=False,
        usable=every,
        missing_with=(),
    )


@pytest.mark.parametrize("seed", [2, 5, 7])
@pytest.mark.parametrize("by", ["another column", "own value"])
def test_the_explanation_that_was_simulated_is_chosen(by, seed):
    found = fit_column(cells_of(by, seed), Question(), seed=0)
    assert found.chosen == ("at random" if by == "another column" else by)
