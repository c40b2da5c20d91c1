"""Pictures of what follows: pooled estimates, assumptions and tipping points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.graphics import labels
from psmvae.graphics.axes import frame, intervals, key, names, numbers, titles
from psmvae.graphics.palette import BG, MUTED, OBSERVED
from psmvae.reporting.data.texts import level
from psmvae.reporting.schema import AssumptionRow, EstimateRow, TippingData
from psmvae.sensitivity.plots import delta_label, draw_curve, draw_intervals, draw_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_estimates(ax: Axes, rows: Sequence[EstimateRow]) -> None:
    """Draw pooled estimates with 95 % intervals, above those of complete cases."""
    compared = any(row["complete_cases"] is not None for row in rows)
    shift = 0.16 if compared else 0.0
    place = np.arange(len(rows))
    other = [(k, row["complete_cases"]) for k, row in enumerate(rows) if row["complete_cases"]]
    if other:
        below = np.array([k for k, _ in other]) + shift
        values = np.array([each for _, each in other], dtype=float)
        intervals(ax, below, values[:, 1], values[:, 2], along="x", color=MUTED, lw=1.4)
        look: dict[str, Any] = {"mec": MUTED, "mfc": BG, "ms": 5.5, "mew": 1.3}
        ax.plot(values[:, 0], below, "o", ls="none", label="complete cases", **look)
    # None, of an analysis without standard errors, is NaN, which is not drawn
    low, high = (
        np.array([row[end] for row in rows], dtype=float) for end in ("conf_low", "conf_high")
    )
    intervals(ax, place - shift, low, high, along="x", color=OBSERVED, lw=2.2)
    ax.plot(
        [row["estimate"] for row in rows], place - shift, "o", color=OBSERVED, ms=6.5, mew=0,
        ls="none", label="pooled, 95 % interval",
    )  # fmt: skip
    ax.axvline(0, color=MUTED, lw=0.8, zorder=0.5)
    frame(ax, grid="x")
    names(ax, [row["term"] for row in rows])
    numbers(ax, "x")
    titles(ax, x="estimate")
    handles, _ = ax.get_legend_handles_labels()
    key(ax, handles[::-1])


def draw_assumptions(ax: Axes, rows: Sequence[AssumptionRow]) -> None:
    """Draw the estimates of one term under each assumption; there is at least one."""
    first = rows[0]
    estimate, low, high = (
        [row[part] for row in rows] for part in ("estimate", "conf_low", "conf_high")
    )
    draw_intervals(
        ax, [row["assumption"] for row in rows], estimate, low, high, null=first["null"],
        xlabel=f"{labels.isolated(first['term'], 28)} with {level(first['alpha'])} interval",
    )  # fmt: skip


def draw_tipping(ax: Axes, data: TippingData) -> None:
    """Draw the estimate over δ, or a map over the δ of two groups."""
    estimate, low, high, margin = (
        np.array(data[part], dtype=float)
        for part in ("estimate", "conf_low", "conf_high", "margin")
    )
    axes = [np.array(axis, dtype=float) for axis in data["axes"]]
    term = labels.isolated(data["term"], 28)
    delta = delta_label(data["operation"], labels.isolated(data["column"], 22))
    if len(axes) == 1:
        draw_curve(
            ax, axes[0], estimate[:, 0], low[:, 0], high[:, 0], null=data["null"],
            points=data["points"], neutral=data["neutral"],
            interval=f"{level(data['alpha'])} interval", xlabel=delta, ylabel=term,
        )  # fmt: skip
        return
    one, other = (labels.isolated(group, 16) for group in data["groups"])
    draw_map(
        ax, axes[0], axes[1], estimate, margin, null=data["null"], label=term,
        neutral=data["neutral"], xlabel=f"{delta}, {one}", ylabel=f"δ, {other}",
    )  # fmt: skip
