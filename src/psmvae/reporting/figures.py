"""The pictures of a report, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from psmvae.graphics import labels
from psmvae.graphics.axes import SIZE
from psmvae.reporting import alt
from psmvae.reporting.data.columns import LEVEL_KINDS
from psmvae.reporting.drawing import imputed as draw_imputed
from psmvae.reporting.drawing import mechanism as draw_mechanism
from psmvae.reporting.drawing import missing as draw_missing
from psmvae.reporting.drawing import results as draw_results
from psmvae.reporting.drawing import validation as draw_validation
from psmvae.reporting.schema import (
    CorrelationData,
    ImputedData,
    MechanismData,
    PatternData,
    PatternRow,
    ReportData,
    ResultsData,
    RowMapData,
    ValidationColumn,
    ValidationData,
)
from psmvae.sensitivity.inference import INTERCEPTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Figure", "figures"]

T = TypeVar("T")

# Sizes in points. On a telephone of 390 pixels a point is about a pixel.
_WIDE, _SMALL = 380.0, 320.0
_ROW, _CLOSE_ROW = 17.0, 13.5
# Points of a scatter plot and of the rows of a strip: in a small picture more hide each other.
_POINTS, _STRIP = 300, (100, 25)
_LEFT_OF_DIAGONAL = 4.0
_Y_TICKS, _Y_TITLE = 7.0, 16.0  # room for ticks and the name of the y-axis, beside the numbers
_BELOW, _ABOVE = 36.0, 22.0  # room for the axis and its name; for the legend


@dataclass(frozen=True)
class Figure:
    """A picture of a report.

    Parameters
    ----------
    name : str
        What it shows, with the position of the column in its section: "rates", "density-3".
    svg : str
        An ``<svg>`` element, without identifiers or references.
    alt : str
        What it shows, in words with numbers.
    """

    name: str
    svg: str
    alt: str


def figures(data: ReportData) -> dict[str, Figure]:
    """Draw all pictures of a report.

    Parameters
    ----------
    data : ReportData
        The dictionary of a report.

    Returns
    -------
    dict of str to Figure
        By name. A picture is left out if there is nothing to draw.
    """
    parts = [*_missing(data), *_mechanism(data["mechanism"])]
    if data["imputed"] is not None:
        parts += _imputed(data["imputed"])
    if data["validation"] is not None:
        parts += _validation(data["validation"])
    if data["results"] is not None:
        parts += _results(data["results"])
    return {figure.name: figure for figure in parts}


def _missing(data: ReportData) -> Iterator[Figure]:
    section = data["missing"]
    shown = set(data["table"]["shown"])
    columns = [row for row in section["columns"] if row["name"] in shown]
    incomplete = [row for row in columns if row["n_missing"]]
    if not incomplete:
        return
    yield _make(
        "rates", _WIDE, _rows(len(incomplete), below=4, above=4),
        [row["name"] for row in incomplete],
        lambda ax: draw_missing.draw_rates(ax, incomplete), alt.rates(incomplete),
        below=4, above=4,
    )  # fmt: skip
    patterns = pattern_columns(section["patterns"], shown)
    height = _rows(len(patterns["columns"]) + draw_missing.PATTERN_TOP, below=20)
    yield _make(
        "patterns", _WIDE, height, patterns["columns"],
        lambda ax: draw_missing.draw_patterns(ax, patterns), alt.patterns(section["patterns"]),
        below=20,
    )  # fmt: skip
    correlation = _correlation_columns(section["correlation"], shown)
    if len(correlation["columns"]) > 1:
        yield _make(
            "correlation", _WIDE, _rows(len(correlation["columns"]), below=22, above=4), None,
            lambda ax: draw_missing.draw_correlation(ax, correlation), alt.correlation(correlation),
            left=_LEFT_OF_DIAGONAL, right=_right_of_diagonal(correlation["columns"]),
            below=22, above=4,
        )  # fmt: skip
    yield _make(
        "flux", _SMALL, 300, None,
        lambda ax: draw_missing.draw_flux(ax, columns), alt.flux(incomplete), left=42, above=6,
    )  # fmt: skip
    row_map = _row_map_columns(section["row_map"], shown)
    yield _make(
        "row-map", _WIDE, _rows(len(row_map["columns"]), above=4), row_map["columns"],
        lambda ax: draw_missing.draw_row_map(ax, row_map, n_rows=data["table"]["n_rows"]),
        alt.row_map(row_map), above=4, right=22,
    )  # fmt: skip


def _mechanism(data: MechanismData) -> Iterator[Figure]:
    for k, column in enumerate(data["columns"]):
        levels = column["observed"]["levels"]
        shown = None if levels is None else levels[: draw_mechanism.MAX_LEVELS]
        if sum(column["observed"]["counts"]):
            yield _make(
                f"odds-{k}", _SMALL, 150 if shown is None else _rows(len(shown)), shown,
                lambda ax, c=column: draw_mechanism.draw_odds(ax, c), alt.odds(column),
                left=38 if shown is None else None,
            )  # fmt: skip
        rows = [row for row in column["predictors"] if row["auc"] is not None]
        if rows:
            yield _make(
                f"predictors-{k}", _SMALL, _rows(len(rows), above=4),
                [draw_mechanism.predictor_label(row) for row in rows],
                lambda ax, r=rows: draw_mechanism.draw_predictors(ax, r),
                alt.predictors(column["name"], rows), above=4, length=26,
            )  # fmt: skip
    if len(data["sets"]) > 1:
        columns = draw_mechanism.set_columns(data["sets"])
        yield _make(
            "sets", _WIDE, _rows(len(columns), above=36), columns,
            lambda ax: draw_mechanism.draw_sets(ax, data["sets"], columns), alt.sets(data["sets"]),
            above=36,
        )  # fmt: skip


def _imputed(data: ImputedData) -> Iterator[Figure]:
    for k, column in enumerate(data["columns"]):
        name, density = column["name"], column["density"]
        bars, strip = column["bars"], column["strip"]
        if density is not None:
            yield _make(
                f"density-{k}", _SMALL, 140, None,
                lambda ax, d=density, n=name: draw_imputed.draw_densities(ax, d, n),
                alt.densities(name, density), left=8,
            )  # fmt: skip
        if bars is not None:
            levels = bars["levels"][: draw_imputed.MAX_LEVELS]
            yield _make(
                f"bars-{k}", _SMALL, _rows(1.5 * len(levels), below=20), levels,
                lambda ax, d=bars: draw_imputed.draw_bars(ax, d), alt.bars(name, bars),
                below=20,
            )  # fmt: skip
        if strip is not None:
            rows = ["observed", *(f"imputed {i}" for i in range(len(strip["imputed"])))]
            yield _make(
                f"strip-{k}", _SMALL, _rows(len(rows), above=4), rows,
                lambda ax, d=strip, n=name: draw_imputed.draw_strip(
                    ax, d, n, n_observed=_STRIP[0], n_imputed=_STRIP[1]
                ),
                alt.strip(name, strip), above=4,
            )  # fmt: skip
    for k, scatter in enumerate(data["scatters"]):
        yield _make(
            f"scatter-{k}", _SMALL, 260, None,
            lambda ax, d=scatter: draw_imputed.draw_scatter(ax, d, n_points=_POINTS),
            alt.scatter(scatter), left=52,
        )  # fmt: skip


def _validation(data: ValidationData) -> Iterator[Figure]:
    for k, column in enumerate(data["columns"]):
        if column["truth"]:
            yield _make(
                f"overimputation-{k}", _SMALL, 240, None,
                lambda ax, c=column: draw_validation.draw_overimputation(ax, c),
                alt.overimputation(column), left=52,
            )  # fmt: skip
    if sum(data["pit"]):
        yield _make(
            "pit", _SMALL, 160, None,
            lambda ax: draw_validation.draw_pit(ax, data["pit"]), alt.pit(data["pit"]),
            left=8, above=6,
        )  # fmt: skip
    for name, unit, columns in by_unit(data["columns"]):
        rows = [(column["name"], column["error"]) for column in columns]
        yield _make(
            name, _WIDE, _rows(len(rows), above=38), [name for name, _ in rows],
            lambda ax, r=rows, u=unit: draw_validation.draw_errors(ax, r, data["methods"], unit=u),
            alt.errors(rows, data["methods"], unit), above=38,
        )  # fmt: skip
    training = data["training"]
    if training is not None and any(each is not None for each in training["validation_error"]):
        yield _make(
            "training", _SMALL, 180, None,
            lambda ax: draw_validation.draw_training(ax, training), alt.training(training),
            left=52, above=6,
        )  # fmt: skip
    chains = data["convergence"]
    if chains is not None and chains["columns"]:
        yield _make(
            "r-hat", _WIDE, _rows(len(chains["columns"])), chains["columns"],
            lambda ax: draw_validation.draw_r_hat(ax, chains), alt.r_hat(chains),
        )  # fmt: skip
        for k, (name, trace) in enumerate(chains["traces"].items()):
            yield _make(
                f"trace-{k}", _SMALL, 140, None,
                lambda ax, t=trace, n=name: draw_validation.draw_trace(ax, t, n),
                alt.trace(name, trace), left=46, above=6,
            )  # fmt: skip


def _results(data: ResultsData) -> Iterator[Figure]:
    # an intercept is often far from the other terms, which would be drawn as one point
    slopes = [row for row in data["estimates"] if row["term"] not in INTERCEPTS]
    if estimates := slopes or data["estimates"]:
        yield _make(
            "estimates", _WIDE, _rows(1.5 * len(estimates)), [row["term"] for row in estimates],
            lambda ax: draw_results.draw_estimates(ax, estimates), alt.estimates(estimates),
        )  # fmt: skip
    terms = dict.fromkeys(row["term"] for row in data["assumptions"])
    for k, term in enumerate(terms):
        rows = [row for row in data["assumptions"] if row["term"] == term]
        yield _make(
            f"assumptions-{k}", _WIDE, _rows(1.2 * len(rows), above=6),
            [row["assumption"] for row in rows],
            lambda ax, r=rows: draw_results.draw_assumptions(ax, r), alt.assumptions(rows), above=6,
            length=30,
        )  # fmt: skip
    tipping = data["tipping"]
    if tipping is not None and len(tipping["axes"]) <= 2:
        flat = len(tipping["axes"]) == 1
        yield _make(
            "tipping", _WIDE, 230 if flat else 300, None,
            lambda ax: draw_results.draw_tipping(ax, tipping), alt.tipping(tipping),
            left=56, above=38 if flat else 22,
        )  # fmt: skip


def _make(
    name: str,
    width: float,
    height: float,
    names: Sequence[str] | None,
    draw: Callable[..., None],
    text: str,
    *,
    left: float | None = None,
    right: float = 12.0,
    below: float = _BELOW,
    above: float = _ABOVE,
    length: int = 20,
) -> Figure:
    """Draw a picture; ``names`` are those of its rows, whose room is to the left."""
    # matplotlib is loaded by the first picture
    from matplotlib.figure import Figure as Canvas

    from psmvae.reporting.svg import to_svg

    if left is None:
        left = 8 + max(labels.width(labels.clean(each, length), SIZE) for each in names or [""])
    # names do not take more than half of the width
    left = min(left, width / 2)
    canvas = Canvas(figsize=(width / 72, height / 72), dpi=72)
    # no layout engine, whatever matplotlib's settings: the margins are known
    canvas.set_layout_engine("none")
    place = (
        left / width,
        below / height,
        1 - (left + right) / width,
        1 - (below + above) / height,
    )
    ax = canvas.add_axes(place)
    draw(ax)
    _make_room(ax, numbers_left=names is None)
    return Figure(name, to_svg(canvas, text), text)


def _make_room(ax: Axes, *, numbers_left: bool) -> None:
    """Move the ends of axes until the numbers of the x-axis and y-axis are in the picture."""
    place, width = ax.get_position(), ax.figure.bbox.width
    if numbers_left:
        widest = max((size for _, size in _tick_labels(ax, "y")), default=0.0)
        title = _Y_TITLE if ax.get_ylabel() else 0.0
        place.x0 = max(place.x0, (widest + _Y_TICKS + title) / width)
    for at, size in _tick_labels(ax, "x"):
        if at > 0.5:
            place.x1 = min(place.x1, place.x0 + (1 - size / 2 / width - place.x0) / at)
    ax.set_position(place)


def _tick_labels(ax: Axes, side: Literal["x", "y"]) -> Iterator[tuple[float, float]]:
    """Return where on an axis, from 0 to 1, its numbers are, and their widths."""
    from matplotlib.ticker import FuncFormatter

    axis = ax.xaxis if side == "x" else ax.yaxis
    first, last = ax.get_xlim() if side == "x" else ax.get_ylim()
    ticks, formatter = axis.get_majorticklocs().tolist(), axis.get_major_formatter()
    # any other formatter is that of an axis without numbers
    if not isinstance(formatter, FuncFormatter):
        return
    for value, text in zip(ticks, formatter.format_ticks(ticks), strict=True):
        at = (value - first) / (last - first)
        if 0 <= at <= 1 and text:
            yield at, labels.width(text, SIZE)


def _right_of_diagonal(names: Sequence[str]) -> float:
    """Return the room that names on the diagonal take to the right of the matrix.

    A name begins in its own cell: with n columns, the k-th has n − k cells and the margin.
    """
    n = len(names)
    cell = (_WIDE - _LEFT_OF_DIAGONAL) / n
    widths = [4 + labels.width(labels.clean(each, 18), SIZE) for each in names]
    # names in the left half have room
    return max((widths[k] - (n - k) * cell) * n / k for k in range(max(n // 2, 1), n))


def _rows(count: float, below: float = _BELOW, above: float = _ABOVE) -> float:
    """Height of a picture with a row for each name."""
    return _row(count) * max(count, 1) + below + above


def _row(count: float) -> float:
    """Height of a row: the more there are, the closer they are."""
    return _ROW if count <= 25 else _CLOSE_ROW


def by_unit(
    columns: Sequence[ValidationColumn],
) -> Iterator[tuple[str, str, list[ValidationColumn]]]:
    """Columns whose errors have the same unit."""
    numeric = [column for column in columns if column["kind"] not in LEVEL_KINDS]
    other = [column for column in columns if column["kind"] in LEVEL_KINDS]
    if numeric:
        yield "errors", "RMSE in standard deviations", numeric
    if other:
        yield "errors-levels", "share of wrong levels", other


def _places(columns: Sequence[str], shown: set[str]) -> list[int]:
    return [k for k, name in enumerate(columns) if name in shown]


def _picked(values: Sequence[T], places: Sequence[int]) -> list[T]:
    return [values[k] for k in places]


def pattern_columns(data: PatternData, shown: set[str]) -> PatternData:
    """Return the patterns of all columns with the cells of shown ones."""
    places = _places(data["columns"], shown)
    rows: list[PatternRow] = [
        {**row, "observed": _picked(row["observed"], places)} for row in data["rows"]
    ]
    return {**data, "columns": _picked(data["columns"], places), "rows": rows}


def _correlation_columns(data: CorrelationData, shown: set[str]) -> CorrelationData:
    places = _places(data["columns"], shown)
    values = [_picked(row, places) for row in _picked(data["values"], places)]
    return {"columns": _picked(data["columns"], places), "values": values}


def _row_map_columns(data: RowMapData, shown: set[str]) -> RowMapData:
    places = _places(data["columns"], shown)
    fraction: list[Any] = [_picked(row, places) for row in data["fraction"]]
    return {**data, "columns": _picked(data["columns"], places), "fraction": fraction}
