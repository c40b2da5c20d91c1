"""Axes without ornament: faint grid lines, few ticks, names on the left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from psmvae.graphics import labels
from psmvae.graphics.labels import PLAIN
from psmvae.graphics.palette import GRID, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = 10.0
"""Font size of labels."""
SMALL = 9.0
"""Font size of numbers within a picture."""

Side = Literal["x", "y"]


def new_axes(**options: Any) -> Any:
    """Return the axes of a new figure of pyplot."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("a plot needs matplotlib: pip install 'psmvae[plot]'") from error
    return plt.subplots(layout="constrained", **options)[1]


def frame(ax: Axes, *, spines: Sequence[str] = ("bottom",), grid: Side | None = None) -> None:
    """Leave only some of the lines around axes, and draw faint grid lines across one of them."""
    for name, spine in ax.spines.items():
        spine.set(visible=name in spines, color=MUTED, linewidth=0.8)
    ax.tick_params(
        which="both", labelsize=SIZE, length=3, width=0.8, color=MUTED, direction="out", pad=2.5,
        bottom="bottom" in spines, left="left" in spines, top=False, right=False,
    )  # fmt: skip
    ax.minorticks_off()
    ax.grid(visible=False)
    ax.set_axisbelow(True)
    if grid is not None:
        # a grid line is a tick
        ax.tick_params(axis=grid, which="both", length=0)
        ax.grid(visible=True, axis=grid, color=GRID, linewidth=0.8, linestyle="-", alpha=1)


def numbers(ax: Axes, side: Side, *, count: int = 4, integer: bool = False) -> None:
    """Label an axis with few numbers."""
    _ticks(ax, side, labels.number, count, integer)


def percents(ax: Axes, side: Side, *, count: int = 4) -> None:
    """Label an axis of fractions in percent."""
    _ticks(ax, side, lambda value: f"{labels.number(round(100 * value, 8))} %", count, False)


def names(ax: Axes, texts: Sequence[Any], *, length: int = 20, size: float = SIZE) -> None:
    """Label rows 0, 1, ... from top to bottom with names on the left."""
    shown = [labels.clean(text, length) for text in texts]
    ax.set_yticks(range(len(shown)), shown, fontsize=size, **PLAIN)
    ax.tick_params(axis="y", length=0, labelsize=size, left=False)
    ax.set_ylim(max(len(shown), 1) - 0.5, -0.5)


def titles(ax: Axes, *, x: str | None = None, y: str | None = None) -> None:
    """Name the axes."""
    if x is not None:
        # beside names there is little room: the title ends where the axes end
        place: Literal["right", "center"] = "right" if _has_names(ax) else "center"
        ax.set_xlabel(x, fontsize=SIZE, labelpad=3, loc=place, **PLAIN)
    if y is not None:
        ax.set_ylabel(y, fontsize=SIZE, labelpad=3, **PLAIN)


def key(ax: Axes, handles: Sequence[Any] | None = None, *, columns: int = 4) -> None:
    """Place a legend above the axes, where it covers nothing."""
    options: dict[str, Any] = {} if handles is None else {"handles": handles}
    end = _has_names(ax)
    legend = ax.legend(
        frameon=False, loc="lower right" if end else "lower left",
        bbox_to_anchor=(1 if end else 0, 1), ncols=columns, borderaxespad=0.2,
        fontsize=SIZE, handlelength=1.2, handletextpad=0.5, columnspacing=1.2, borderpad=0.1,
        **options,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set(**PLAIN)


def intervals(ax: Axes, place: Any, low: Any, high: Any, *, along: Side, **options: Any) -> None:
    """Draw intervals along an axis as one line with gaps; `options` are those of plot."""
    gap = np.full(len(place), np.nan)
    ends = np.column_stack([low, high, gap]).ravel()
    places = np.column_stack([place, place, gap]).ravel()
    ax.plot(*((ends, places) if along == "x" else (places, ends)), **options)


def note(ax: Axes, x: float, y: float, text: str, **options: Any) -> Any:
    """Write a text at a place of the data, in small letters; `options` are those of annotate."""
    settings: dict[str, Any] = {"fontsize": SMALL, "annotation_clip": False, **PLAIN, **options}
    return ax.annotate(text, (x, y), **settings)


def _has_names(ax: Axes) -> bool:
    from matplotlib.ticker import FixedLocator

    return isinstance(ax.yaxis.get_major_locator(), FixedLocator) and len(ax.get_yticks()) > 0


def _ticks(ax: Axes, side: Side, text: Any, count: int, integer: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis = ax.xaxis if side == "x" else ax.yaxis
    axis.set_major_locator(MaxNLocator(count, steps=[1, 2, 2.5, 5, 10], integer=integer))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
