"""The paper's figures, drawn from records: lines over an axis, and pictures filled in."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from psmvae.table.paths import atomic_path
from psmvae_paper.grid import Column, dataset_names, key_of, value_of
from psmvae_paper.methods import label_of
from psmvae_paper.tables import cells_to_show

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psmvae_paper.cell import Cell
    from psmvae_paper.experiment import Experiment
    from psmvae_paper.grid import Record

__all__ = ["draw", "has_figure"]

# Okabe and Ito's colours, told apart with every kind of colour vision; the yellow is left out, as
# it is too light for a line on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# Beside the colour, so that a print in grey is readable too.
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
# A line that lies on another lets it be seen.
_STYLES = ("-", "--", "-.")
_MISSING_PIXEL = (0.84, 0.15, 0.16)

_AXES = {
    "rate": "missing rate (%)",
    "n_rows": "rows",
    "n_columns": "columns",
    "pi": "π'",
    "steps": "epochs of training",
}
_ERROR = "RMSE (in ranges of the columns)"
_DPI = 130
# Pixels of white around each picture.
_GAP = 1


class _Line(NamedTuple):
    """A line: the mean, and the lowest and highest of the seeds, at each place."""

    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


def has_figure(experiment: Experiment) -> bool:
    """Whether an experiment is one that `draw` draws.

    Examples
    --------
    >>> from psmvae_paper import EXPERIMENTS
    >>> [name for name, one in EXPERIMENTS.items() if has_figure(one)][:4]
    ['curve', 'pi', 'rate', 'rows']
    """
    return experiment.axis is not None or experiment.measure == "inpaint"


def draw(
    experiment: Experiment, records: Sequence[Record], path: str | os.PathLike[str]
) -> list[str]:
    """Draw the figure of an experiment into a PNG file, whole or not at all.

    Parameters
    ----------
    experiment : Experiment
        One with an axis, or with pictures.
    records : sequence of dict
        All records there are.
    path : path
        A name that ends in ``.png``.

    Returns
    -------
    list of str
        What is lacking in it: a sentence a method that failed or has no records.

    Raises
    ------
    ValueError
        If the experiment has no figure, there are no records of it, or the path is no PNG file.
    """
    if not has_figure(experiment):
        message = f"experiment must be one with a figure, got {experiment.name!r}, which has tables"
        raise ValueError(message)
    if Path(path).suffix.lower() != ".png":
        message = f"path must end in .png, got {str(path)!r}"
        raise ValueError(message)
    cells = cells_to_show(experiment, records)
    found = {record["key"]: record for record in records}
    there = {cell: found[key_of(cell)] for cell in cells if key_of(cell) in found}
    good = {cell: record for cell, record in there.items() if not record.get("error")}
    if not good:
        message = f"records must hold some of {experiment.name} that did not fail; they hold none"
        raise ValueError(message)
    figure = _pictures(good) if experiment.measure == "inpaint" else _lines(experiment, good)
    # what is not set here would be a date
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=_DPI, metadata={"Software": None})
    return _lacking(cells, there, good)


def _lacking(
    cells: Iterable[Cell], there: Mapping[Cell, Record], good: Mapping[Cell, Record]
) -> list[str]:
    asked_for: dict[str, list[Cell]] = {}
    for cell in cells:
        asked_for.setdefault(cell.method, []).append(cell)
    told = []
    for method, own in asked_for.items():
        failed = sum(cell in there and cell not in good for cell in own)
        missing = sum(cell not in there for cell in own)
        parts = [f"{n} {what}" for n, what in ((failed, "failed"), (missing, "not run")) if n]
        if parts:
            told.append(f"{label_of(method)}: {' and '.join(parts)} of {len(own)} cells.")
    return told


def _new_figure(width: float, height: float) -> Figure:
    # No pyplot: its global state and its choice of a window system are not ours to touch.
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        message = "figures need matplotlib: pip install 'psmvae[plot]'"
        raise ImportError(message) from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _lines(experiment: Experiment, good: Mapping[Cell, Record]) -> Figure:
    axis = experiment.axis or ""
    panels = _panels(good, axis)
    found_names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    own = list(dict.fromkeys(label_of(c.method, c.settings) for c in experiment.cells()))
    # a method has its colour also where another has no records yet
    known = own if set(own) & set(found_names) else []
    names = list(dict.fromkeys([*known, *found_names]))
    n_columns = min(len(panels), 2)
    n_rows = -(-len(panels) // n_columns)
    figure = _new_figure(5.4 * n_columns + 0.6, 3.5 * n_rows + 0.6)
    axes: list[Axes] = figure.subplots(n_rows, n_columns, squeeze=False).ravel().tolist()
    for at, (title, lines) in zip(axes, panels.items(), strict=False):
        _panel(at, title, axis, lines, names)
    for unused in axes[len(panels) :]:
        unused.set_axis_off()
    handles: dict[str, Any] = {}
    for at in axes:
        found, labels = at.get_legend_handles_labels()
        handles |= dict(zip(labels, found, strict=True))
    order = [name for name in names if name in handles]
    figure.legend(
        [handles[name] for name in order],
        order,
        loc="outside lower center",
        ncols=min(3, len(order)),
        frameon=False,
    )
    told = list(dict.fromkeys(cell.dataset for cell in good))
    if len(own) == 1:
        told += own
    figure.suptitle(f"{experiment.title} ({', '.join(told)})", fontsize=12)
    return figure


def _panels(good: Mapping[Cell, Record], axis: str) -> dict[str, dict[str, _Line]]:
    """The lines of each panel: one a mechanism and rate, with a line a data set and method."""
    points: dict[str, dict[str, dict[float, list[float]]]] = {}
    names, methods = dataset_names(c.dataset for c in good), {c.method for c in good}
    for cell, record in good.items():
        texts = Column(cell.dataset, cell.mechanism, cell.rate).texts()
        panel = texts[1] if axis == "rate" else f"{texts[1]}, {texts[2]} missing"
        shown = [names[cell.dataset]] if len(names) > 1 else []
        if len(methods) > 1 or not shown:
            shown.append(label_of(cell.method, cell.settings))
        line = points.setdefault(panel, {}).setdefault(", ".join(shown), {})
        for x, y in _points(cell, record, axis):
            line.setdefault(x, []).append(y)
    if axis != "steps":
        points = {panel: _whole(lines) for panel, lines in points.items()}
    return {
        panel: {name: _line(found) for name, found in lines.items() if found}
        for panel, lines in points.items()
    }


def _whole(lines: dict[str, dict[float, list[float]]]) -> dict[str, dict[float, list[float]]]:
    """Without points of fewer seeds than others have: their means would be of other tables."""
    most = max((len(found) for line in lines.values() for found in line.values()), default=0)
    return {
        name: {x: found for x, found in line.items() if len(found) == most}
        for name, line in lines.items()
    }


def _points(cell: Cell, record: Record, axis: str) -> list[tuple[float, float]]:
    if axis == "steps":
        metrics = record["metrics"]
        both = zip(metrics["steps"], metrics["rmse"], strict=True)
        return [(step, error) for step, error in both if error is not None]
    error = value_of(record, "rmse")
    x: Any = dict(cell.settings).get("pi") if axis == "pi" else getattr(cell, axis)
    if error is None or not isinstance(x, int | float):
        return []
    return [(100 * x if axis == "rate" else float(x), error)]


def _line(points: Mapping[float, Sequence[float]]) -> _Line:
    places = sorted(points)
    found = [points[x] for x in places]
    means = [statistics.fmean(values) for values in found]
    return _Line(places, means, [min(v) for v in found], [max(v) for v in found])


def _panel(
    axes: Axes, title: str, axis: str, lines: Mapping[str, _Line], names: Sequence[str]
) -> None:
    for name, line in lines.items():
        number = names.index(name)
        colour, mark = _COLOURS[number % len(_COLOURS)], _MARKS[number % len(_MARKS)]
        # a mark a place, but few on a long curve
        every = max(1, len(line.x) // 8)
        style = _STYLES[number % len(_STYLES)]
        axes.plot(
            line.x, line.mean, style, color=colour, marker=mark, markevery=every, ms=5, label=name
        )
        axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, lw=0)
    axes.set(title=title, xlabel=_AXES[axis], ylabel=_ERROR)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    # an error far above the others would press them into one line
    ends = [max(line.mean) for line in lines.values()]
    if len(ends) > 1 and max(ends) > 10 * statistics.median(ends):
        axes.set_yscale("log")


def _pictures(good: Mapping[Cell, Record]) -> Figure:
    """Missing pixels red above, filled in below; a strip of pictures a method and rate."""
    first = min(cell.seed for cell in good)
    shown = {cell: record["metrics"] for cell, record in good.items() if cell.seed == first}
    methods = list(dict.fromkeys(cell.method for cell in shown))
    places = sorted({(cell.rate, cell.mechanism) for cell in shown})
    figure = _new_figure(5.4 * len(methods) + 0.2, 1.8 * len(places))
    axes = figure.subplots(len(places), len(methods), squeeze=False)
    for at in axes.ravel():
        at.set_axis_off()
    for cell, metrics in shown.items():
        at = axes[places.index((cell.rate, cell.mechanism)), methods.index(cell.method)]
        texts = Column(cell.dataset, cell.mechanism, cell.rate).texts()
        at.set_title(f"{label_of(cell.method, cell.settings)}, {texts[2]} {texts[1]}", fontsize=10)
        at.imshow(_strip(metrics), interpolation="nearest")
    return figure


def _strip(metrics: Mapping[str, Any]) -> Any:
    """Images side by side, as they were seen above and as they were filled in below."""
    import numpy as np

    truth, filled = (_images(metrics[name]) for name in ("truth", "filled"))
    observed = _images(metrics["m"]).astype(bool)
    top = max(float(truth.max()), 1.0)

    def grey(images: Any) -> Any:
        # as ink on paper, and what is out of range as the nearest that is in it
        return np.repeat(1 - np.clip(images / top, 0, 1)[..., None], 3, axis=-1)

    seen = np.where(observed[..., None], grey(truth), _MISSING_PIXEL)
    # a white frame keeps the images apart
    frame = ((0, 0), (_GAP, _GAP), (_GAP, _GAP), (0, 0))
    rows = [np.pad(images, frame, constant_values=1.0) for images in (seen, grey(filled))]
    return np.concatenate([np.concatenate(list(row), axis=1) for row in rows], axis=0)


def _images(nested: Any) -> Any:
    """Images as ``(image, row, column)``; flat ones are square."""
    import numpy as np

    images = np.asarray(nested, dtype=np.float64)
    if images.ndim == 2:
        side = round(images.shape[1] ** 0.5)
        images = images.reshape(len(images), side, side)
    return images
