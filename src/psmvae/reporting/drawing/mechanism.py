"""Pictures of why values are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from psmvae.graphics import labels, palette
from psmvae.graphics.axes import (
    SMALL,
    frame,
    intervals,
    key,
    names,
    note,
    numbers,
    percents,
    titles,
)
from psmvae.graphics.palette import BG, IMPUTED, INK, MUTED, OBSERVED
from psmvae.reporting.schema import Histogram, MechanismColumn, OddsData, PredictorData, SetData

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LEVELS = 12
"""Levels of a column that are drawn."""


def draw_odds(ax: Axes, column: MechanismColumn) -> None:
    """Draw the probability of going missing by value, over the histogram of observed values."""
    if column["observed"]["levels"] is None:
        _numeric_odds(ax, column["odds"], column["observed"])
        titles(ax, x=labels.clean(column["name"], 40))
    else:
        _level_odds(ax, column["odds"], column["observed"])


def draw_predictors(ax: Axes, rows: Sequence[PredictorData]) -> None:
    """Draw the areas under the ROC curve of predictors of a mask, with their intervals."""
    known = [row for row in rows if row["auc"] is not None]
    together = [k for k, row in enumerate(known) if row["by"] == "all other columns"]
    single = [k for k in range(len(known)) if k not in together]
    for chosen, colour in ((single, OBSERVED), (together, IMPUTED)):
        auc, low, high = (
            # None is NaN, which is not drawn
            np.array([known[k][part] for k in chosen], dtype=float)
            for part in ("auc", "conf_low", "conf_high")
        )
        intervals(ax, chosen, low, high, along="x", color=colour, lw=2)
        ax.plot(auc, chosen, "o", color=colour, ms=6, mew=0, ls="none")
    frame(ax, grid="x")
    names(ax, [predictor_label(row) for row in known], length=26)
    limits = [row[end] for row in known for end in ("auc", "conf_low", "conf_high")]
    ax.set_xlim(min([0.5, *(each for each in limits if each is not None)]) - 0.01, 1.01)
    ax.axvline(0.5, color=MUTED, lw=0.8)
    numbers(ax, "x", count=5)
    titles(ax, x="area under the ROC curve")


def predictor_label(row: PredictorData) -> str:
    """Return the name of a predictor, and that it is a mask where it is one."""
    if row["by"] == "all other columns":
        return "all other columns"
    name = labels.clean(row["predictor"], 17)
    return f"{labels.isolated(name)} missing" if row["by"] == "mask" else name


def draw_sets(ax: Axes, sets: Sequence[SetData], columns: Sequence[str] | None = None) -> None:
    """Draw the missing rates of columns in each pattern set.

    By default the columns are the 25 whose rates differ most between sets.
    """
    shown = list(columns) if columns is not None else set_columns(sets)
    rates = np.array([[each["mask_rates"].get(name, 0.0) for each in sets] for name in shown])
    rates = rates.reshape(len(shown), len(sets))
    ax.pcolormesh(
        np.arange(len(sets) + 1) - 0.5, np.arange(len(shown) + 1) - 0.5,
        np.where(rates > 0, np.maximum(rates, 0.11), 0), cmap=palette.rates(), vmin=0, vmax=1,
        edgecolors=BG, linewidth=1.0,
    )  # fmt: skip
    for i, j in np.argwhere(rates >= 0.005) if len(sets) <= 10 else ():
        colour = {"color": INK} if rates[i, j] >= palette.STRONG_RATE else {}
        note(ax, j, i, f"{100 * rates[i, j]:.0f}", ha="center", va="center", **colour)
    frame(ax, spines=())
    names(ax, shown)
    texts = [f"{each['number']}" for each in sets]
    ax.set_xticks(range(len(sets)), texts)
    ax.tick_params(axis="x", bottom=False, top=False, labelbottom=False, labeltop=True, length=0)
    for j, each in enumerate(sets if len(sets) <= 10 else ()):
        note(
            ax, j, len(shown) - 0.5, labels.percent(each["fraction"]), xytext=(0, -4),
            textcoords="offset points", ha="center", va="top", color=MUTED,
        )  # fmt: skip
    ax.set_xlabel("share of the rows", fontsize=SMALL, labelpad=17, color=MUTED)
    ax.set_title("percent missing by set", fontsize=SMALL, loc="left", color=MUTED)


def set_columns(sets: Sequence[SetData], count: int = 25) -> list[str]:
    """Return the columns whose missing rates differ most between sets."""
    names_ = list(sets[0]["mask_rates"]) if sets else []
    ranges = {
        name: float(np.ptp([each["mask_rates"].get(name, 0.0) for each in sets])) for name in names_
    }
    chosen = set(sorted(names_, key=lambda name: -ranges[name])[:count])
    return [name for name in names_ if name in chosen]


def _numeric_odds(ax: Axes, odds: OddsData | None, observed: Histogram) -> None:
    edges = np.array(observed["edges"] or [0.0, 1.0], dtype=float)
    counts = np.array(observed["counts"], dtype=float)
    top = 1.0 if odds is None else _top(odds)
    # the histogram is context: a third of the height, and no axis of its own
    share = 1.0 if odds is None else 0.38
    heights = share * top * counts / max(counts.max(initial=0), 1)
    ax.stairs(heights, edges, fill=True, color=OBSERVED, alpha=0.22, lw=0, label="observed values")
    frame(ax, spines=("bottom",), grid=None if odds is None else "y")
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(0, top)
    numbers(ax, "x", count=5)
    if odds is None:
        ax.set_yticks([])
    else:
        value = np.array(odds["value"], dtype=float)
        ax.fill_between(value, odds["low"], odds["high"], color=IMPUTED, alpha=0.2, lw=0)
        ax.plot(value, odds["probability"], color=IMPUTED, lw=2, label="goes missing, 90 % band")
        percents(ax, "y")
    key(ax, columns=2)


def _level_odds(ax: Axes, odds: OddsData | None, observed: Histogram) -> None:
    levels = list(observed["levels"] or [])[:MAX_LEVELS]
    counts = np.array(observed["counts"][: len(levels)], dtype=float)
    frame(ax, grid="x")
    names(ax, levels)
    if odds is None:
        ax.barh(range(len(levels)), counts, height=0.7, color=OBSERVED, alpha=0.3)
        numbers(ax, "x", integer=True)
        titles(ax, x="observed cells")
        return
    place = {level: k for k, level in enumerate(levels)}
    top = _top(odds)
    lengths = top * 0.38 * counts / max(counts.max(initial=0), 1)
    ax.barh(
        range(len(levels)), lengths, height=0.8, color=OBSERVED, alpha=0.22,
        label="observed cells",
    )  # fmt: skip
    chosen = [k for k, value in enumerate(odds["value"]) if str(value) in place]
    rows = [place[str(odds["value"][k])] for k in chosen]
    p, low, high = ([odds[part][k] for k in chosen] for part in ("probability", "low", "high"))
    intervals(ax, rows, low, high, along="x", color=IMPUTED, lw=2)
    label = "goes missing, 90 % interval"
    ax.plot(p, rows, "o", color=IMPUTED, ms=6, mew=0, ls="none", label=label)
    ax.set_xlim(0, top)
    percents(ax, "x")
    key(ax, columns=2)


def _top(odds: OddsData) -> float:
    return min(1.0, 1.1 * max([*odds["high"], *odds["probability"], 0.01]))
