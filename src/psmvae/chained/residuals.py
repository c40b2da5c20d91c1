"""Residuals of donors: their local means are shrunk, and under a tilt they are smoothed.

A missing cell takes the residual of a row with a similar mean. A local mean of residuals other than
0 is a curve that the regression lacks, or chance. Chance would be the same in all imputations, so
that the variance between them would lack it. Local means are shrunk by their variance (James and
Stein): to 0 where it is that of chance.

A finite number of donors has no tails: draws with odds that rise with the value need values beyond
the largest residual. A residual e is then replaced by √(1 − h²) e + h z with z ~ N(0, 1), which
keeps the variance. h is chosen by the likelihood of each residual given the others: 1 where they
are near a Normal distribution, small where they have another shape.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Widths h that are compared. Where the smallest is best, residuals are not smoothed.
WIDTHS = np.array([0.2, 0.3, 0.45, 0.6, 0.8, 1.0])
# Residuals are counted in intervals of this length, up to this many standard deviations.
STEP, LARGEST = 0.25, 5.0

_CENTER = np.arange(-LARGEST, LARGEST + STEP / 2, STEP)
# density at each center of a residual at another, (width, at, of)
_KERNEL = np.stack(
    [
        np.exp(-0.5 * ((_CENTER[:, None] - np.sqrt(1 - h**2) * _CENTER) / h) ** 2)
        / (h * np.sqrt(2 * np.pi))
        for h in WIDTHS
    ]
)
# A residual that no other is near counts as this unlikely.
_FLOOR = 1e-12


def shrink_local_means(residual: Floats, n_near: int) -> Floats:
    """Shrink means of ``n_near`` neighbours in residuals ``(chain, row)`` of mean square 1.

    Rows are in the order of their means. The mean square stays 1.
    """
    n = residual.shape[1]
    n_parts = n // n_near
    # with fewer parts the variance of their means cannot be told from that of chance
    if n_parts < 3:
        return residual
    total = np.concatenate([np.zeros((len(residual), 1)), residual.cumsum(1)], 1)
    ends = np.linspace(0, n, n_parts + 1).astype(np.intp)
    variance = (np.diff(total[:, ends], axis=1) ** 2 / np.diff(ends)).sum(1) / (n_parts - 2)
    chance = np.minimum(1.0, 1 / np.maximum(variance, 1e-12))
    start = np.clip(np.arange(n) - n_near // 2, 0, n - n_near)
    local = (total[:, start + n_near] - total[:, start]) / n_near
    found = residual - chance[:, None] * local
    return np.asarray(found / np.sqrt(np.maximum((found**2).mean(1, keepdims=True), 1e-12)))


def smoothing_width(residual: Floats) -> Floats:
    """Return the width h of each chain's residuals ``(chain, row)``, of mean square 1."""
    n = residual.shape[1]
    if n < 2:
        return np.zeros(len(residual))
    at = np.rint((np.clip(residual, -LARGEST, LARGEST) + LARGEST) / STEP).astype(np.intp)
    count = np.stack([np.bincount(each, minlength=len(_CENTER)) for each in at])
    own = np.diagonal(_KERNEL, axis1=1, axis2=2)
    density = (count @ _KERNEL.mT - own[:, None]) / (n - 1)
    likelihood = (count * np.log(np.maximum(density, _FLOOR))).sum(-1)
    best = likelihood.argmax(0)
    return np.where(best == 0, 0.0, WIDTHS[best])
