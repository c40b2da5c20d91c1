"""How much residuals of donors are smoothed, by the likelihood of each residual left out.

A finite number of donors has no tails: draws with odds that rise with the value need values beyond
the largest residual. A residual e is replaced by √(1 − h²) e + h z with z ~ N(0, 1), which keeps
the variance. Residuals near a Normal distribution choose h = 1, those of another shape a small h.
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
