"""Kernel density estimates of observed and imputed values on a common grid.

Signatures
----------
``density_data(observed, imputed, *, whole=False) -> DensityData or None``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psmvae.reporting.data.columns import Floats, rounded
from psmvae.reporting.schema import DensityData

N_POINTS = 100
"""Points of the grid."""
MIN_VALUES = 3
"""Fewer values have no density."""
# The grid extends beyond the values by so many bandwidths.
_TAIL = 3.0
# Values beyond the quartiles by so many interquartile ranges are not on the grid.
_FAR = 10.0


def density_data(
    observed: Floats, imputed: Sequence[Floats], *, whole: bool = False
) -> DensityData | None:
    """Estimate densities by Gaussian kernels with the bandwidth of R's ``density``.

    Parameters
    ----------
    observed : ndarray
        Observed values.
    imputed : sequence of ndarray
        Imputed values of each imputation.
    whole : bool, default=False
        Whether values are whole numbers, which are smoothed by 0.4 at least.

    Returns
    -------
    DensityData or None
        None if fewer than three values are observed or all are equal. The densities of imputed
        values are left out if there are fewer than three. Bandwidths are Silverman's 0.9 min(s,
        IQR / 1.34) n^(-1/5), but not below the distance of the grid's points.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.integrate import trapezoid
    >>> made = density_data(np.array([1.0, 2.0, 3.0]), [])
    >>> f"{trapezoid(made['observed'], made['x']):.2f}"
    '1.00'
    """
    if len(observed) < MIN_VALUES or bool(np.all(observed == observed[0])):
        return None
    enough = all(len(values) >= MIN_VALUES for values in imputed)
    samples = [observed, *(imputed if enough else ())]
    # squares of very large or small values must not overflow or vanish
    scale = float(max(np.abs(values).max() for values in samples))
    samples = [values / scale for values in samples]
    least = 0.4 / scale if whole else 0.0
    widths = [max(_bandwidth(values), least) for values in samples]
    x = _grid(samples, widths)
    step = float(x[1] - x[0])
    curves = [
        _density(x, values, max(width, step)) for values, width in zip(samples, widths, strict=True)
    ]
    largest = 1e308  # rounded to a few digits it is still finite
    with np.errstate(over="ignore"):
        points = np.clip(x * scale, -largest, largest)
        curves = [np.minimum(curve / scale, largest) for curve in curves]
    return {
        "x": rounded(points),
        "observed": rounded(curves[0], 5),
        "imputed": [rounded(curve, 5) for curve in curves[1:]],
    }


def _bandwidth(values: Floats) -> float:
    """Return Silverman's rule of thumb."""
    low, high = np.quantile(values, (0.25, 0.75))
    spreads = [spread for spread in (values.std(ddof=1), (high - low) / 1.34) if spread > 0]
    return float(0.9 * min(spreads, default=0.0) * len(values) ** -0.2)


def _grid(samples: Sequence[Floats], widths: Sequence[float]) -> Floats:
    pooled, tail = np.concatenate(samples), _TAIL * max(widths)
    low, high = pooled.min() - tail, pooled.max() + tail
    first, third = np.quantile(pooled, (0.25, 0.75))
    if third > first:
        # a few outliers must not leave the rest between two points
        reach = _FAR * (third - first)
        low, high = max(low, first - reach), min(high, third + reach)
    return np.linspace(low, high, N_POINTS)


def _density(x: Floats, values: Floats, width: float) -> Floats:
    """Return Σ_i φ((x − x_i) / h) / (n h)."""
    kernel = np.exp(-0.5 * ((x[:, None] - values) / width) ** 2)
    return np.asarray(kernel.mean(1) / (width * np.sqrt(2 * np.pi)))
