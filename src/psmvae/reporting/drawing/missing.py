"""Pictures of what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from psmvae.graphics import labels, palette
from psmvae.graphics.axes import SMALL, frame, key, names, note, numbers, titles
from psmvae.graphics.palette import BG, IMPUTED, INK, MUTED, OBSERVED
from psmvae.reporting.schema import ColumnRate, CorrelationData, PatternData, RowMapData

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Box = tuple[float, float, float, float]

# Height of the bars above the matrix of patterns, in rows of the matrix.
_BARS = 5.0
PATTERN_TOP = 0.8 + _BARS + 2.7
"""Rows above the matrix of patterns, for bars and counts."""


def draw_rates(ax: Axes, columns: Sequence[ColumnRate]) -> None:
    """Draw the missing fraction of each column as a bar, the highest on top."""
    rows = sorted(columns, key=lambda row: -row["fraction"])
    ax.barh(range(len(rows)), [row["fraction"] for row in rows], height=0.7, color=IMPUTED)
    names(ax, [row["name"] for row in rows])
    frame(ax, spines=())
    ax.tick_params(axis="x", labelbottom=False)
    highest = max((row["fraction"] for row in rows), default=0.0) or 1.0
    # room for the numbers at the ends of the bars
    ax.set_xlim(0, 1.22 * highest)
    for k, row in enumerate(rows):
        note(
            ax, row["fraction"], k, labels.percent(row["fraction"]),
            xytext=(3, 0), textcoords="offset points", va="center",
        )  # fmt: skip


def draw_patterns(ax: Axes, data: PatternData) -> None:
    """Draw the patterns as columns of a matrix, with bars of their frequencies above.

    A row is a column of the table, so that names of any number of columns can be read.
    """
    from matplotlib.colors import ListedColormap, to_rgba
    from matplotlib.patches import Patch

    rows = data["rows"]
    observed = np.array([row["observed"] for row in rows], dtype=float).reshape(len(rows), -1)
    height, width = len(data["columns"]), len(rows)
    soft = to_rgba(OBSERVED, 0.3)
    ax.pcolormesh(
        np.arange(width + 1) - 0.5, np.arange(height + 1) - 0.5, observed.T,
        cmap=ListedColormap([to_rgba(IMPUTED), soft]), vmin=0, vmax=1,
        edgecolors=BG, linewidth=1.0,
    )  # fmt: skip
    frame(ax, spines=())
    names(ax, data["columns"])
    counts = np.array([row["n"] for row in rows], dtype=float)
    heights = _BARS * counts / max(counts.max(initial=0), 1)
    ax.bar(range(width), -heights, bottom=-0.8, width=0.7, color=MUTED)
    # counts above narrow bars are turned
    turned = width > 7
    for k, row in enumerate(rows):
        note(
            ax, k, -0.8 - heights[k], f"{row['n']:,}", xytext=(0, 3), textcoords="offset points",
            ha="center", va="bottom", rotation=90 if turned else 0,
        )  # fmt: skip
    ax.set_xlim(-0.5, max(width, 4) - 0.5)
    ax.set_ylim(height - 0.5, -PATTERN_TOP)
    ax.set_xticks([])
    shown = f"{width} of {data['n_patterns']:,} patterns" if width < data["n_patterns"] else (
        f"{width} pattern" + "s" * (width != 1)
    )  # fmt: skip
    titles(ax, x=f"{shown}, most frequent first; numbers of rows")
    key(ax, [Patch(color=soft, label="observed"), Patch(color=IMPUTED, label="missing")])


def draw_correlation(ax: Axes, data: CorrelationData) -> None:
    """Draw the lower triangle of the correlations, with the names on the diagonal."""
    n = len(data["columns"])
    values = np.array(
        [[np.nan if each is None else each for each in row] for row in data["values"]], dtype=float
    ).reshape(n, n)
    hidden = np.triu(np.ones((n, n), dtype=bool)) | np.isnan(values)
    ax.pcolormesh(
        np.arange(n + 1) - 0.5, np.arange(n + 1) - 0.5, np.ma.array(values, mask=hidden),
        cmap=palette.differences(), vmin=-1, vmax=1, edgecolors=BG, linewidth=0.5,
    )  # fmt: skip
    frame(ax, spines=())
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_xlim(-0.5, n - 0.5)
    ax.set_ylim(n - 0.5, -0.5)
    size = SMALL if n <= 30 else 7.5
    for k, name in enumerate(data["columns"]):
        note(
            ax, k - 0.5, k, labels.clean(name, 18), xytext=(2, 0), textcoords="offset points",
            va="center", fontsize=size,
        )  # fmt: skip
    if n <= 12:
        for i, j in np.argwhere(~hidden):
            value = float(values[i, j])
            text = f"{value:.2f}".replace("-", "−").replace("0.", ".")
            text = "0" if text in (".00", "−.00") else text.removesuffix(".00")
            colour = {"color": INK} if abs(value) >= palette.STRONG_DIFFERENCE else {}
            note(ax, j, i, text, ha="center", va="center", **colour)
    titles(ax, x="correlation, from −1 (blue) to 1 (orange)")


def draw_flux(ax: Axes, columns: Sequence[ColumnRate]) -> None:
    """Draw outflux against influx, with names where they have room."""
    points = [
        (row["influx"], row["outflux"], row["name"])
        for row in columns
        if row["influx"] is not None and row["outflux"] is not None
    ]
    x, y = ([point[k] for point in points] for k in (0, 1))
    ax.plot([0, 1], [1, 0], color=MUTED, lw=0.8, ls=(0, (4, 3)))
    ax.plot(x, y, "o", color=OBSERVED, ms=5, mew=0, ls="none")
    frame(ax, spines=("bottom", "left"))
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.06)
    numbers(ax, "x", count=5)
    numbers(ax, "y", count=5)
    titles(ax, x="influx: other columns tell about it", y="outflux: it tells about others")
    for x0, y0, name in _with_room(ax, points):
        right = x0 < 0.7
        note(
            ax, x0, y0, name, xytext=(5 if right else -5, 0), textcoords="offset points",
            ha="left" if right else "right", va="center",
        )  # fmt: skip


def draw_row_map(ax: Axes, data: RowMapData, *, n_rows: int | None = None) -> None:
    """Draw the missing fraction of blocks of rows, from the first row to the last."""
    first = [float(each) for each in data["first_row"]]
    height = len(data["columns"])
    step = first[1] - first[0] if len(first) > 1 else 1.0
    end = float(n_rows) if n_rows is not None else first[-1] + step if first else 1.0
    fraction = np.array(data["fraction"], dtype=float).reshape(len(first), height).T
    ax.pcolormesh(
        [*first, max(end, first[-1] + 1e-9 if first else 1.0)], np.arange(height + 1) - 0.5,
        # any missing cell is seen
        np.where(fraction > 0, np.maximum(fraction, 0.11), 0), cmap=palette.rates(), vmin=0, vmax=1,
    )  # fmt: skip
    frame(ax)
    names(ax, data["columns"])
    ax.set_xlim(0, end)
    numbers(ax, "x", integer=True)
    titles(ax, x="row of the table; the stronger the colour, the more is missing")
    ax.hlines(np.arange(1, height) - 0.5, 0, end, color=BG, lw=1 if height <= 40 else 0.5)


def _with_room(
    ax: Axes, points: Sequence[tuple[float | None, float | None, str]]
) -> list[tuple[float, float, str]]:
    """Points whose names do not overlap those of points further from the corner (0, 1)."""
    kept: list[tuple[float, float, str]] = []
    boxes: list[_Box] = []
    box = ax.get_window_extent()
    known = [(x, y, name) for x, y, name in points if x is not None and y is not None]
    dots = [(x * box.width, y * box.height) for x, y, _ in known]
    dpi = ax.figure.dpi / 72
    for x, y, name in sorted(known, key=lambda point: point[1] - point[0]):
        text = labels.clean(name, 16)
        wide, high = labels.width(text, SMALL) * dpi, SMALL * dpi
        px, py = x * box.width, y * box.height
        left = px + 4 * dpi if x < 0.7 else px - 4 * dpi - wide
        place = (left, py - 0.55 * high, left + wide, py + 0.55 * high)
        covered = [(dx, dy, dx, dy) for dx, dy in dots if (dx, dy) != (px, py)]
        if not any(_overlap(place, other) for other in boxes + covered):
            kept.append((x, y, text))
            boxes.append(place)
    return kept


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
