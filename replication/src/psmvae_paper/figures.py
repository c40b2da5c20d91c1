"""The paper's figures, drawn from records: errors over an axis, and imputed images."""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from psmvae.table.paths import atomic_path
from psmvae_paper.grid import Column, dataset_names, key_of, value_of
from psmvae_paper.methods import label_of
from psmvae_paper.tables import cells_to_show

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psmvae_paper.cell import Cell
    from psmvae_paper.experiment import Experiment
    from psmvae_paper.grid import Record

__all__ = ["draw", "has_figure", "same_pixels"]

# The colour-blind safe palette of Okabe and Ito, without its yellow, which is too light for a line
# on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# Markers, so that a print in grey is readable.
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
# Dashed lines, so that overlapping lines can be distinguished.
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
# White pixels around each image.
_GAP = 1


class _Line(NamedTuple):
    """A line: mean, minimum and maximum over the seeds at each x."""

    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


def has_figure(experiment: Experiment) -> bool:
    """Whether an experiment has a figure.

    Parameters
    ----------
    experiment : Experiment
        The experiment.

    Returns
    -------
    bool
        True if it has an axis or images.

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
    """Draw the figure of an experiment into a PNG file, written atomically.

    Parameters
    ----------
    experiment : Experiment
        An experiment with an axis or with images.
    records : sequence of dict
        All records.
    path : path
        A name that ends in ``.png``.

    Returns
    -------
    list of str
        A sentence for each method with cells that failed or have no record.

    Raises
    ------
    ValueError
        If the experiment has no figure or no records, or the path is not a PNG file.
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
    figure = _image_figure(good) if experiment.measure == "inpaint" else _lines(experiment, good)
    # without metadata the file depends on the records only
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=_DPI, metadata={"Software": None})
    return _missing_cells(cells, there, good)


def same_pixels(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two PNG files show the same image.

    The same figure can differ in its bytes between versions of the PNG encoder.

    Parameters
    ----------
    one, other : path
        The files.

    Returns
    -------
    bool
        False also if one cannot be read.
    """
    import numpy as np
    from matplotlib.image import imread

    try:
        return bool(np.array_equal(imread(os.fspath(one)), imread(os.fspath(other))))
    except (OSError, ValueError, SyntaxError):
        # PIL raises SyntaxError for a broken PNG file
        return False


def _missing_cells(
    cells: Iterable[Cell], there: Mapping[Cell, Record], good: Mapping[Cell, Record]
) -> list[str]:
    """A sentence for each method with cells that failed or have no record."""
    by_method: dict[str, list[Cell]] = {}
    for cell in cells:
        by_method.setdefault(cell.method, []).append(cell)
    sentences = []
    for method, own in by_method.items():
        failed = sum(cell in there and cell not in good for cell in own)
        missing = sum(cell not in there for cell in own)
        parts = [f"{n} {what}" for n, what in ((failed, "failed"), (missing, "not run")) if n]
        if parts:
            sentences.append(f"{label_of(method)}: {' and '.join(parts)} of {len(own)} cells.")
    return sentences


def _new_figure(width: float, height: float) -> Figure:
    # not pyplot, which has global state and may open windows
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
    # the colour of a method does not depend on which other methods have records
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
    subjects = list(dict.fromkeys(cell.dataset for cell in good))
    if len(own) == 1:
        subjects += own
    figure.suptitle(f"{experiment.title} ({', '.join(subjects)})", fontsize=12)
    return figure


def _panels(good: Mapping[Cell, Record], axis: str) -> dict[str, dict[str, _Line]]:
    """The lines of each panel: a panel for each mechanism and rate, a line for each method."""
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
        points = {panel: _complete(lines) for panel, lines in points.items()}
    return {
        panel: {name: _line(found) for name, found in lines.items() if found}
        for panel, lines in points.items()
    }


def _complete(lines: dict[str, dict[float, list[float]]]) -> dict[str, dict[float, list[float]]]:
    """Drop points with fewer seeds than others: their means would be over other tables."""
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
        # about eight markers on a long curve
        every = max(1, len(line.x) // 8)
        style = _STYLES[number % len(_STYLES)]
        axes.plot(
            line.x, line.mean, style, color=colour, marker=mark, markevery=every, ms=5, label=name
        )
        axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, lw=0)
    axes.set(title=title, xlabel=_AXES[axis], ylabel=_ERROR)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    # one very large error would compress all other lines
    ends = [max(line.mean) for line in lines.values()]
    if len(ends) > 1 and max(ends) > 10 * statistics.median(ends):
        axes.set_yscale("log")


def _image_figure(good: Mapping[Cell, Record]) -> Figure:
    """A strip of images for each method and rate: missing pixels red above, imputed below."""
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
    """Images side by side: observed pixels above, imputed images below."""
    import numpy as np

    truth, filled = (_images(metrics[name]) for name in ("truth", "filled"))
    observed = _images(metrics["m"]).astype(bool)
    top = max(float(truth.max()), 1.0)

    def grey(images: Any) -> Any:
        # dark on white, clipped to the range
        return np.repeat(1 - np.clip(images / top, 0, 1)[..., None], 3, axis=-1)

    seen = np.where(observed[..., None], grey(truth), _MISSING_PIXEL)
    # a white frame separates the images
    frame = ((0, 0), (_GAP, _GAP), (_GAP, _GAP), (0, 0))
    rows = [np.pad(images, frame, constant_values=1.0) for images in (seen, grey(filled))]
    return np.concatenate([np.concatenate(list(row), axis=1) for row in rows], axis=0)


def _images(nested: Any) -> Any:
    """Images as ``(image, row, column)``; flat images are taken to be square."""
    import numpy as np

    images = np.asarray(nested, dtype=np.float64)
    if images.ndim == 2:
        side = round(images.shape[1] ** 0.5)
        images = images.reshape(len(images), side, side)
    return images
