"""What the mask of a table alone tells: rates, patterns and flux."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psmvae.describe.variables import Bools, Floats, Variable

Columns = dict[str, list[Any]]


def rates(variables: Sequence[Variable], missing: Bools) -> Columns:
    """Return the number and the fraction of missing cells of each column."""
    n_missing = missing.sum(0)
    return {
        "column": [one.name for one in variables],
        "kind": [one.kind for one in variables],
        "n_missing": n_missing.tolist(),
        "fraction": (n_missing / len(missing)).tolist(),
    }


class Patterns(NamedTuple):
    """The distinct rows of a mask ``(pattern, column)``, the pattern of each row, and counts."""

    missing: Bools
    of_row: NDArray[np.intp]
    counts: NDArray[np.intp]


def distinct_patterns(missing: Bools) -> Patterns:
    """Return the distinct rows of a mask."""
    packed = np.ascontiguousarray(np.packbits(missing, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, of_row, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    return Patterns(missing[first], of_row.ravel(), counts)


def patterns(names: Sequence[str], missing: Bools) -> Columns:
    """Return the distinct patterns, most frequent first; of equals, fewer missing cells first."""
    distinct, _, counts = distinct_patterns(missing)
    n_missing = distinct.sum(1)
    # the mask breaks ties, so that the order depends on the table alone
    order = np.lexsort((*distinct.T[::-1], n_missing, -counts))
    distinct, counts, n_missing = distinct[order], counts[order], n_missing[order]
    return {
        "pattern": ["".join(row) for row in np.where(distinct, "0", "1").tolist()],
        "n": counts.tolist(),
        "fraction": (counts / len(missing)).tolist(),
        "n_missing": n_missing.tolist(),
        "missing": [", ".join(names[j] for j in np.flatnonzero(row).tolist()) for row in distinct],
    }


def flux(names: Sequence[str], missing: Bools) -> Columns:
    """Return van Buuren's influx and outflux of each column.

    With r_ij = 1 if cell (i, j) is observed, the influx of column j is Σ_k Σ_i (1 − r_ij) r_ik
    divided by Σ_k Σ_i r_ik, and its outflux is Σ_k Σ_i r_ij (1 − r_ik) divided by Σ_k Σ_i
    (1 − r_ik).
    """
    observed = ~missing
    inward = missing.T.astype(np.float64) @ observed.sum(1)
    outward = observed.T.astype(np.float64) @ missing.sum(1)
    alone = len(names) == 1
    return {
        "column": list(names),
        "pobs": observed.mean(0).tolist(),
        "influx": _ratio(inward, observed.sum(), undefined=alone).tolist(),
        "outflux": _ratio(outward, missing.sum(), undefined=alone).tolist(),
    }


def _ratio(part: Floats, whole: Any, *, undefined: bool) -> Floats:
    """Return shares; NaN where nothing is shared, or there is no other column."""
    return np.full(part.shape, np.nan) if undefined or whole == 0 else part / float(whole)
