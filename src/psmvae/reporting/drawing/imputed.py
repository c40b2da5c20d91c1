"""Pictures of what was imputed: observed values in blue, imputed ones in vermilion."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from psmvae.graphics import labels
from psmvae.graphics.axes import frame, key, names, numbers, percents, titles
from psmvae.graphics.palette import FG, IMPUTED, OBSERVED
from psmvae.reporting.schema import BarData, DensityData, ScatterData, StripData

if TYPE_CHECKING:
    from matplotlib.axes import Axes

T = TypeVar("T")

MAX_LEVELS = 12
"""Levels of a column that are drawn."""
# Heights at which neighbouring points of a strip are drawn, so that few cover each other.
_JITTER = np.array([0.0, 0.22, -0.22, 0.11, -0.11, 0.28, -0.28, 0.06, -0.17, 0.17])


def draw_densities(ax: Axes, data: DensityData, name: str) -> None:
    """Draw the density of observed values, and one of the imputed values of each imputation."""
    x = np.array(data["x"], dtype=float)
    for k, imputed in enumerate(data["imputed"]):
        ax.plot(x, imputed, color=IMPUTED, lw=0.9, label=None if k else "imputed")
    ax.plot(x, data["observed"], color=OBSERVED, lw=2.2, label="observed")
    frame(ax)
    ax.set_yticks([])
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(0, 1.05 * max(map(max, [data["observed"], *data["imputed"]])) or 1.0)
    numbers(ax, "x", count=5)
    titles(ax, x=labels.clean(name, 40))
    handles, _ = ax.get_legend_handles_labels()
    key(ax, handles[::-1])


def draw_bars(ax: Axes, data: BarData) -> None:
    """Draw the fractions of levels; lines show their range over imputations."""
    count = min(len(data["levels"]), MAX_LEVELS)
    row = np.arange(count)
    imputed = np.array(data["imputed"][:count], dtype=float)
    ax.barh(row - 0.2, data["observed"][:count], height=0.36, color=OBSERVED, label="observed")
    ax.barh(row + 0.2, imputed, height=0.36, color=IMPUTED, label="imputed")
    low, high = (np.array(data[end][:count], float) for end in ("imputed_low", "imputed_high"))
    if (high > low).any():
        ax.hlines(row + 0.2, low, high, color=FG, lw=1)
    frame(ax, grid="x")
    names(ax, data["levels"][:count])
    ax.set_xlim(0, 1.04 * max([*data["observed"][:count], *high.tolist(), 0.01]))
    percents(ax, "x")
    key(ax)


def draw_strip(
    ax: Axes, data: StripData, name: str, *, n_observed: int = 200, n_imputed: int = 200
) -> None:
    """Draw single values, at most so many of a row: observed ones above each imputation."""
    rows = [_thinned(data["observed"], n_observed)]
    rows += [_thinned(each, n_imputed) for each in data["imputed"]]
    for k, values in enumerate(rows):
        height = k + np.resize(_JITTER, len(values))
        ax.plot(values, height, "o", color=IMPUTED if k else OBSERVED, ms=3, mew=0, ls="none")
    frame(ax)
    names(ax, ["observed", *(f"imputed {k}" for k in range(1, len(rows)))])
    ax.margins(x=0.03)
    numbers(ax, "x", count=5)
    titles(ax, x=labels.clean(name, 40))


def draw_scatter(ax: Axes, data: ScatterData, *, n_points: int = 1000) -> None:
    """Draw two columns, at most so many points of each colour; vermilion: a value is imputed."""
    parts = (
        ("observed", data["observed"], OBSERVED, 3.0),
        ("imputed", data["imputed"], IMPUTED, 3.6),
    )
    for part, values, colour, size in parts:
        pairs = np.array(_thinned(values, n_points), dtype=float).reshape(-1, 2)
        ax.plot(pairs[:, 0], pairs[:, 1], "o", color=colour, ms=size, mew=0, ls="none", label=part)
    frame(ax, spines=("bottom", "left"))
    ax.margins(0.03)
    numbers(ax, "x")
    numbers(ax, "y")
    titles(ax, x=labels.clean(data["x"], 40), y=labels.clean(data["y"], 28))
    key(ax)


def _thinned(values: list[T], count: int) -> list[T]:
    """At most `count` values, from all over the list."""
    if len(values) <= count:
        return values
    return [values[k] for k in np.linspace(0, len(values) - 1, count).round().astype(int)]
