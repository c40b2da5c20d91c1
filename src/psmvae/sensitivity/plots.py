"""Plots of sensitivity analyses; matplotlib is imported when one is drawn.

The functions of arrays draw; those of results name the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psmvae.graphics import palette
from psmvae.graphics.axes import SIZE, frame, key, names, note, numbers, titles
from psmvae.graphics.labels import PLAIN, isolated
from psmvae.graphics.palette import FG, IMPUTED, MUTED, OBSERVED
from psmvae.sensitivity import wording

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from psmvae.sensitivity.compare import AssumptionComparison
    from psmvae.sensitivity.tipping import TippingPoint

Floats = NDArray[np.float64]


def draw_curve(
    ax: Axes,
    delta: Any,
    estimate: Any,
    low: Any,
    high: Any,
    *,
    null: float,
    points: Sequence[float],
    xlabel: str,
    ylabel: str,
    interval: str,
    neutral: float | None = None,
) -> None:
    """Draw an estimate and its interval over δ, and where the conclusion turns."""
    ax.fill_between(delta, low, high, color=OBSERVED, alpha=0.2, lw=0, label=interval)
    ax.plot(delta, estimate, color=OBSERVED, lw=2, label="pooled estimate")
    ax.axhline(null, color=MUTED, lw=1)
    if neutral is not None:
        ax.axvline(neutral, color=MUTED, lw=1, ls=(0, (1, 2)), label="imputation model")
    # a conclusion may turn outside the grid
    shown = [*np.ravel(delta).tolist(), *points]
    first, last = min(shown), max(shown)
    for k, point in enumerate(points):
        label = None if k else "conclusion turns"
        ax.axvline(point, color=IMPUTED, lw=1.5, ls=(0, (4, 2)), label=label)
        left = point > (first + last) / 2
        note(
            ax, point, 1.0, f"δ = {wording.number(point)}", xycoords=("data", "axes fraction"),
            xytext=(-4 if left else 4, -3), textcoords="offset points", va="top",
            ha="right" if left else "left",
        )  # fmt: skip
    frame(ax, spines=("bottom", "left"))
    ax.set_xlim(first, last)
    numbers(ax, "x", count=5)
    numbers(ax, "y")
    titles(ax, x=xlabel, y=ylabel)
    key(ax, columns=2)


def draw_map(
    ax: Axes,
    x: Floats,
    y: Floats,
    estimate: Floats,
    margin: Floats,
    *,
    null: float,
    label: str,
    xlabel: str,
    ylabel: str,
    neutral: float | None = None,
) -> None:
    """Draw an estimate over the δ of two groups, with the line where the conclusion turns.

    The first axis of `estimate` and `margin` is that of `x`.
    """
    reach = float(np.abs(estimate - null).max()) or 1.0
    mesh = ax.pcolormesh(
        x, y, estimate.T, cmap=palette.differences(), shading="nearest",
        vmin=null - reach, vmax=null + reach,
    )  # fmt: skip
    bar: Any = ax.figure.colorbar(mesh, ax=ax, aspect=25)
    bar.outline.set_visible(False)
    frame(bar.ax, spines=())
    numbers(bar.ax, "y", count=5)
    bar.set_label(label, fontsize=SIZE, **PLAIN)
    if margin.min() < 0 < margin.max():
        ax.contour(x, y, margin.T, levels=[0.0], colors=FG, linewidths=1.6)
    frame(ax)
    if neutral is not None and x[0] <= neutral <= x[-1] and y[0] <= neutral <= y[-1]:
        ax.plot(neutral, neutral, "o", color=FG, ms=6, mew=0)
        note(ax, neutral, neutral, "no shift", xytext=(6, 6), textcoords="offset points")
    numbers(ax, "x", count=5)
    numbers(ax, "y", count=5)
    titles(ax, x=xlabel, y=ylabel)
    turns = bool((margin <= 0).any())
    ax.set_title(
        "conclusion " + ("turns at the line" if turns else "does not turn"),
        fontsize=SIZE, loc="center", **PLAIN,
    )  # fmt: skip


def draw_intervals(
    ax: Axes,
    labels: Sequence[str],
    estimate: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    null: float,
    xlabel: str,
    reference: int | None = None,
) -> None:
    """Draw a forest plot: a row with an estimate and its interval for each label."""
    row = range(len(labels))
    ax.axvline(null, color=MUTED, lw=1)
    if reference is not None:
        ax.axvline(estimate[reference], color=OBSERVED, lw=1, ls=(0, (1, 2)))
    ax.hlines(row, low, high, color=OBSERVED, lw=2.2)
    ax.plot(estimate, row, "o", color=OBSERVED, ms=6.5, mew=0, ls="none")
    frame(ax, grid="x")
    names(ax, labels, length=30)
    numbers(ax, "x")
    titles(ax, x=xlabel)


def draw_tipping_curve(result: TippingPoint, ax: Axes) -> None:
    """Draw a tipping point analysis with one δ."""
    estimate, low, high = (result.results[k] for k in ("estimate", "conf_low", "conf_high"))
    draw_curve(
        ax, result.axes[0], estimate, low, high, null=result.null, points=result.points,
        neutral=result.neutral, interval=f"{wording.percent(1 - result.alpha)} interval",
        xlabel=delta_label(result.operation, result.column), ylabel=isolated(result.term, 40),
    )  # fmt: skip


def draw_tipping_map(result: TippingPoint, ax: Axes) -> None:
    """Draw a tipping point analysis with a δ for each of two groups."""
    one, other = result.groups
    x, y = result.axes
    draw_map(
        ax, x, y, result.results["estimate"], result.margin, null=result.null,
        neutral=result.neutral, label=isolated(result.term, 40),
        xlabel=f"{delta_label(result.operation, result.column)}, {result.by} = {one}",
        ylabel=f"δ, {result.by} = {other}",
    )  # fmt: skip


def draw_forest(result: AssumptionComparison, axes: Any) -> None:
    """Draw the estimates of each term under every assumption, a panel for each term."""
    for panel, (ax, term) in enumerate(zip(axes, result.terms, strict=True)):
        rows = [each[term] for each in result.results]
        estimate, low, high = (
            [getattr(row, part) for row in rows] for part in ("estimate", "conf_low", "conf_high")
        )
        draw_intervals(
            ax, result.assumptions, estimate, low, high, null=result.null,
            reference=result.reference,
            xlabel=f"{term} with {wording.percent(1 - result.alpha)} interval",
        )  # fmt: skip
        if panel:
            ax.tick_params(axis="y", labelleft=False)


def delta_label(operation: str, column: str) -> str:
    """Return what is done with δ, as the name of an axis."""
    texts = {
        "add": f"δ, added to imputed values of {column}",
        "multiply": f"δ, factor of imputed values of {column}",
    }
    return texts.get(operation, f"δ, factor of the {operation} of {column}")
