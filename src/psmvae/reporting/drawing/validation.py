"""Pictures of held-out cells, training and chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.graphics import labels
from psmvae.graphics.axes import frame, intervals, key, names, note, numbers, titles
from psmvae.graphics.palette import BG, GRID, IMPUTED, MUTED, OBSERVED, THIRD
from psmvae.multiple.convergence import HIGH_R_HAT
from psmvae.reporting.schema import ConvergenceData, Number, TrainingData, ValidationColumn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Symbol of each method: the imputer first, then the baselines.
_SYMBOLS: tuple[dict[str, Any], ...] = (
    {"marker": "o", "color": OBSERVED, "ms": 6.5, "mew": 0},
    {"marker": "o", "mec": MUTED, "mfc": "none", "ms": 5.5, "mew": 1.3},
    {"marker": "D", "mec": THIRD, "mfc": "none", "ms": 4.5, "mew": 1.3},
    {"marker": "^", "mec": IMPUTED, "mfc": "none", "ms": 5.5, "mew": 1.3},
    {"marker": "s", "mec": MUTED, "mfc": "none", "ms": 4.5, "mew": 1.3},
)


def draw_overimputation(ax: Axes, column: ValidationColumn) -> None:
    """Draw predictions of held-out cells against the truth, with 90 % intervals."""
    truth, point, low, high = (
        np.array(column[part], dtype=float) for part in ("truth", "point", "low", "high")
    )
    order = truth.argsort()
    truth, point, low, high = (each[order] for each in (truth, point, low, high))
    inside = (low <= truth) & (truth <= high)
    values = np.concatenate([truth, point]) if truth.size else np.array([0.0, 1.0])
    ends = float(values.min()), float(values.max())
    ax.plot(ends, ends, color=MUTED, lw=0.8)
    for chosen, colour, label in (
        (inside, OBSERVED, "interval contains the value"),
        (~inside, IMPUTED, "does not contain it"),
    ):
        intervals(
            ax, truth[chosen], low[chosen], high[chosen], along="y", color=colour, lw=0.9, alpha=0.5
        )
        ax.plot(
            truth[chosen], point[chosen], "o", color=colour, ms=3.4, mew=0, ls="none", label=label
        )
    frame(ax, spines=("bottom", "left"))
    ax.margins(0.03)
    numbers(ax, "x")
    numbers(ax, "y")
    titles(ax, x=f"{labels.clean(column['name'], 28)}, held out", y="imputed")
    key(ax)


def draw_pit(ax: Axes, counts: Sequence[int]) -> None:
    """Draw the histogram of the probability integral transform.

    The band has 95 % of the counts that a uniform distribution gives to one bin.
    """
    from scipy.stats import binom

    k, total = len(counts), sum(counts)
    low, high = binom.interval(0.95, total, 1 / k) if total else (0.0, 0.0)
    edges = np.linspace(0, 1, k + 1)
    ax.bar(edges[:-1], counts, width=0.94 / k, align="edge", color=OBSERVED, lw=0)
    ax.axhspan(low, high, facecolor=IMPUTED, alpha=0.22, lw=0, zorder=0.5)
    for limit in (low, high):
        ax.axhline(limit, color=IMPUTED, lw=1.2, ls=(0, (4, 2)))
    frame(ax)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.15 * max(*counts, high, 1))
    ax.set_yticks([])
    numbers(ax, "x", count=5)
    titles(ax, x="share of the draws below the held-out value")
    note(
        ax, 1, high, "expected, 95 %", ha="right", va="bottom", xytext=(0, 2),
        textcoords="offset points",
    )  # fmt: skip


def draw_errors(
    ax: Axes, rows: Sequence[tuple[str, Mapping[str, Number]]], methods: Sequence[str], *, unit: str
) -> None:
    """Draw the error of each method, one row for each column of the table."""
    for i, (_, errors) in enumerate(rows):
        known = [each for each in errors.values() if each is not None]
        if known:
            ax.plot([min(known), max(known)], [i, i], color=GRID, lw=2.5, zorder=1)
    # the imputer is drawn last, above the others
    for k in reversed(range(len(methods))):
        # None is NaN, which is not drawn
        error = np.array([errors.get(methods[k]) for _, errors in rows], dtype=float)
        look = _SYMBOLS[k % len(_SYMBOLS)]
        ax.plot(error, range(len(rows)), ls="none", label=labels.clean(methods[k]), **look)
    frame(ax, grid="x")
    names(ax, [name for name, _ in rows])
    largest = max(
        (each for _, errors in rows for each in errors.values() if each is not None), default=1.0
    )
    ax.set_xlim(0, 1.05 * largest or 1.0)
    numbers(ax, "x")
    titles(ax, x=unit)
    handles, _ = ax.get_legend_handles_labels()
    key(ax, handles[::-1], columns=3)


def draw_training(ax: Axes, data: TrainingData) -> None:
    """Draw the validation error over epochs, with its minimum."""
    error = np.array([np.nan if e is None else e for e in data["validation_error"]], dtype=float)
    epoch = np.array(data["epoch"], dtype=float)
    ax.plot(epoch, error, color=OBSERVED, lw=1.8)
    frame(ax, grid="y")
    if np.isfinite(error).any():
        best = int(np.nanargmin(error))
        ax.plot(epoch[best], error[best], "o", color=IMPUTED, ms=6, mew=0)
        right = epoch[best] > epoch.mean()
        note(
            ax, epoch[best], error[best], f"lowest: {labels.short(float(error[best]))}",
            xytext=(0, 7), textcoords="offset points", ha="right" if right else "left",
            va="bottom",
        )  # fmt: skip
    numbers(ax, "x", integer=True)
    numbers(ax, "y")
    titles(ax, x="epoch", y="validation error")


def draw_r_hat(ax: Axes, data: ConvergenceData) -> None:
    """Draw R-hat of the means and standard deviations of each column."""
    shown: list[float] = [1.0, HIGH_R_HAT]
    series: tuple[tuple[list[Number], str, dict[str, Any]], ...] = (
        (data["r_hat_mean"], "mean", {"color": OBSERVED, "ms": 6, "mew": 0}),
        (data["r_hat_sd"], "standard deviation", {"mec": MUTED, "mfc": BG, "ms": 5.5, "mew": 1.3}),
    )
    for values, label, look in series[::-1]:
        r_hat = np.array(values, dtype=float)
        ax.plot(r_hat, range(len(values)), "o", ls="none", label=label, **look)
        shown += r_hat[np.isfinite(r_hat)].tolist()
    frame(ax, grid="x")
    names(ax, data["columns"])
    ax.axvline(HIGH_R_HAT, color=IMPUTED, lw=1.2, ls=(0, (4, 3)))
    reach = max(shown) - min(shown)
    ax.set_xlim(min(shown) - 0.06 * reach, max(shown) + 0.06 * reach)
    numbers(ax, "x")
    titles(ax, x=f"split R̂; chains above {HIGH_R_HAT:g} have not converged")
    handles, _ = ax.get_legend_handles_labels()
    key(ax, handles[::-1])


def draw_trace(ax: Axes, chains: Sequence[Sequence[float]], name: str) -> None:
    """Draw the mean of the imputed cells of a column over iterations, a line for each chain."""
    looks = ((OBSERVED, "-"), (IMPUTED, "-"), (THIRD, "-"), (MUTED, "-"))
    for k, chain in enumerate(chains):
        colour, line = looks[k % len(looks)]
        ax.plot(range(1, len(chain) + 1), chain, color=colour, ls=line, lw=1)
    frame(ax, grid="y")
    numbers(ax, "x", count=5, integer=True)
    numbers(ax, "y", count=3)
    titles(ax, x=f"mean of {labels.isolated(name, 28)} by iteration")
