"""Plots of sensitivity analyses; matplotlib is imported when one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.sensitivity import wording

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from psmvae.sensitivity.compare import AssumptionComparison
    from psmvae.sensitivity.tipping import TippingPoint

_BLUE, _ORANGE, _GREY = "#1f6fb2", "#d97b29", "#8c8c8c"


def new_axes(**options: Any) -> Any:
    """Return the axes of a new figure of pyplot."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("a plot needs matplotlib: pip install 'psmvae[plot]'") from error
    return plt.subplots(layout="constrained", **options)[1]


def draw_tipping_curve(result: TippingPoint, ax: Axes) -> None:
    """Draw the estimate and its interval over δ, and where the conclusion turns."""
    delta = result.axes[0]
    low, high, estimate = (result.results[k] for k in ("conf_low", "conf_high", "estimate"))
    level = f"{100 * (1 - result.alpha):g}% interval"
    ax.fill_between(delta, low, high, color=_BLUE, alpha=0.2, lw=0, label=level)
    ax.plot(delta, estimate, color=_BLUE, lw=1.8, label="pooled estimate")
    ax.axhline(result.null, color="black", lw=1)
    ax.axvline(result.neutral, color=_GREY, lw=1, ls=":", label="imputation model")
    for k, point in enumerate(result.points):
        label = None if k else "conclusion turns"
        ax.axvline(point, color=_ORANGE, lw=1.5, ls="--", label=label)
        ax.annotate(
            f"δ = {wording.number(point)}",
            (point, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -4),
            textcoords="offset points",
            va="top",
            color=_ORANGE,
        )
    ax.set(xlabel=_delta_label(result), ylabel=result.term)
    # above the axes, where it covers neither the band nor the line of the null hypothesis
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0)
    ax.spines[["top", "right"]].set_visible(False)


def draw_tipping_map(result: TippingPoint, ax: Axes) -> None:
    """Draw the estimate over the δ of two groups, with the line where the conclusion turns."""
    x, y = result.axes
    estimate, margin = result.results["estimate"].T, result.margin.T
    reach = float(np.abs(estimate - result.null).max()) or 1.0
    mesh = ax.pcolormesh(
        x, y, estimate, cmap="RdBu_r", shading="nearest",
        vmin=result.null - reach, vmax=result.null + reach,
    )  # fmt: skip
    ax.figure.colorbar(mesh, ax=ax, label=result.term)
    if margin.min() < 0 < margin.max():
        lines = ax.contour(x, y, margin, levels=[0.0], colors="black", linewidths=1.5)
        ax.clabel(lines, fmt={0.0: f"p = {result.alpha:g}"}, fontsize=9)
    if x[0] <= result.neutral <= x[-1] and y[0] <= result.neutral <= y[-1]:
        start = (result.neutral, result.neutral)
        ax.plot(*start, "o", color="black", ms=6)
        ax.annotate("no shift", start, xytext=(6, 6), textcoords="offset points")
    one, other = result.groups
    ax.set(
        xlabel=f"{_delta_label(result)}, {result.by} = {one}",
        ylabel=f"δ, {result.by} = {other}",
        title="conclusion " + ("turns at the line" if (~result.holds).any() else "does not turn"),
    )


def draw_forest(result: AssumptionComparison, axes: Any) -> None:
    """Draw the estimates of each term under every assumption."""
    for panel, (ax, term) in enumerate(zip(axes, result.terms, strict=True)):
        rows = [each[term] for each in result.results]
        position = np.arange(len(rows))
        estimate = np.array([row.estimate for row in rows])
        errors = np.abs(
            [[row.conf_low for row in rows], [row.conf_high for row in rows]] - estimate
        )
        ax.errorbar(estimate, position, xerr=errors, fmt="s", color=_BLUE, ms=6, lw=1.6, capsize=0)
        ax.axvline(result.null, color="black", lw=1)
        ax.axvline(estimate[result.reference], color=_GREY, lw=1, ls=":")
        ax.set_yticks(position, result.assumptions if panel == 0 else [""] * len(rows))
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.set_xlabel(f"{term} with {100 * (1 - result.alpha):g}% interval")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)


def _delta_label(result: TippingPoint) -> str:
    texts = {
        "add": f"δ, added to imputed values of {result.column}",
        "multiply": f"δ, factor of imputed values of {result.column}",
    }
    return texts.get(result.operation, f"δ, factor of the {result.operation} of {result.column}")
