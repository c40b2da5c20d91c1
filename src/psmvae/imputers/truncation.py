"""Draws of missing cells truncated to the bounds of their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psmvae.imputers.blocks import BlockSeed

if TYPE_CHECKING:
    from psmvae.kinds import Column

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Draw = Callable[[Floats, Bools, int, BlockSeed], NDArray[Any]]

# Draws of a row with a cell out of bounds are first replaced as a whole, so that its cells stay
# dependent, and then cell by cell, which accepts more of them. What remains is clipped.
ROW_ATTEMPTS, CELL_ATTEMPTS = 3, 5


def truncated_draws(
    draw: Draw, columns: Sequence[Column], x: Floats, m: Bools, n: int, seed: BlockSeed
) -> NDArray[Any]:
    """Return ``draw(x, m, n, seed)`` ``(row, draw, column)`` without missing cells out of bounds.

    Rows with a draw out of bounds are drawn again a few times. The bounds are those of
    `psmvae.kinds.bounds.model_bounds`. An imputer whose draws respect them costs nothing.
    """
    from psmvae.kinds.bounds import model_bounds

    low, high = np.array([model_bounds(column) for column in columns]).T
    drawn = draw(x, m, n, seed)

    def outside(values: NDArray[Any], missing: Bools) -> Bools:
        wrong: Bools = ((values < low) | (values > high)) & missing[:, None, :]
        return wrong

    bounded = np.isfinite(low) | np.isfinite(high)
    # only these rows can have a cell out of bounds
    rows = np.flatnonzero((~m & bounded).any(1))
    for attempt in range(1, ROW_ATTEMPTS + CELL_ATTEMPTS + 1):
        wrong = outside(drawn[rows], ~m[rows])
        again = wrong.any((1, 2))
        rows, wrong = rows[again], wrong[again]
        if not rows.size:
            return drawn
        seed = seed.again()
        fresh = draw(x[rows], m[rows], n, seed)
        fits = ~outside(fresh, ~m[rows])
        if attempt <= ROW_ATTEMPTS:
            # (row, draw): the whole draw of a row is replaced
            accepted = wrong.any(-1, keepdims=True) & fits.all(-1, keepdims=True)
        else:
            accepted = wrong & fits
        drawn[rows] = np.where(accepted, fresh, drawn[rows])
    clipped = np.clip(drawn[rows], low, high)
    drawn[rows] = np.where(outside(drawn[rows], ~m[rows]), clipped, drawn[rows])
    return drawn
