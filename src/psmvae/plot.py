"""Pictures of missing data, imputations and results, each alone on matplotlib axes.

Each function draws one picture of `psmvae.report` on ``ax``, or on the axes of a new figure of
pyplot, and returns the axes to be changed or saved. Observed values are blue, missing and imputed
ones vermilion. They need the extra ``plot`` (matplotlib).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.graphics.axes import new_axes, titles
from psmvae.graphics.labels import clean
from psmvae.reporting.data.columns import read_columns
from psmvae.reporting.data.diagnostics import convergence_data, training_data
from psmvae.reporting.data.imputed import imputed_data
from psmvae.reporting.data.mechanism import mechanism_data
from psmvae.reporting.data.missing import missing_data
from psmvae.reporting.data.relations import no_relations
from psmvae.reporting.data.results import results_data
from psmvae.reporting.data.table import shown_columns
from psmvae.reporting.data.validation import validation_data
from psmvae.reporting.drawing import imputed as draw_imputed
from psmvae.reporting.drawing import mechanism as draw_mechanism
from psmvae.reporting.drawing import missing as draw_missing
from psmvae.reporting.drawing import results as draw_results
from psmvae.reporting.drawing import validation as draw_validation
from psmvae.reporting.figures import by_unit, pattern_columns
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from psmvae.multiple import MultipleImputation
    from psmvae.reporting.schema import ImputedColumn, MissingData
    from psmvae.sensitivity import AssumptionComparison, TippingPoint

__all__ = [
    "assumptions",
    "convergence",
    "correlation",
    "densities",
    "errors",
    "estimates",
    "flux",
    "mechanism",
    "missing_rates",
    "overimpute",
    "pattern",
    "pit",
    "predictors",
    "row_map",
    "scatter",
    "sets",
    "strip",
    "tipping_point",
    "training",
]

# Panels of `densities` at most.
_MAX_PANELS = 12


def missing_rates(X: Any, *, max_columns: int = 60, ax: Axes | None = None) -> Axes:
    """Draw the missing fraction of each column that has missing cells.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    max_columns : int, default=60
        Number of columns shown: those with the highest rates.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    ValueError
        If the table has no missing cells.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import plot
    >>> x = np.array([[1.0, np.nan, 2.0], [2.0, np.nan, 1.0], [3.0, 4.0, np.nan]])
    >>> ax = plot.missing_rates(x, ax=Figure().subplots())
    >>> [round(float(bar.get_width()), 2) for bar in ax.patches]
    [0.67, 0.33]
    """
    data, shown = _missing(X, max_columns)
    rows = [row for row in data["columns"] if row["name"] in shown and row["n_missing"]]
    ax = _axes(ax, rows=len(rows))
    draw_missing.draw_rates(ax, rows)
    return ax


def pattern(X: Any, *, max_columns: int = 60, ax: Axes | None = None) -> Axes:
    """Draw the patterns of missing cells with their numbers of rows, as ``md.pattern`` of R's mice.

    Columns of the table are rows of the picture; the most frequent pattern is on the left. Patterns
    are those of all columns, also of those that are not shown.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    max_columns : int, default=60
        Number of columns shown: those with the highest missing rates.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    ValueError
        If the table has no missing cells.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import plot
    >>> x = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, 4.0]])
    >>> ax = plot.pattern(x, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.texts]
    ['2', '1']
    """
    data, shown = _missing(X, max_columns)
    patterns = pattern_columns(data["patterns"], shown)
    ax = _axes(ax, rows=1.4 * len(patterns["columns"]) + 6)
    draw_missing.draw_patterns(ax, patterns)
    return ax


def correlation(X: Any, *, max_columns: int = 60, ax: Axes | None = None) -> Axes:
    """Draw the correlations between the masks of columns, in the order of a clustering.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    max_columns : int, default=60
        Number of columns shown: those with the highest missing rates.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    ValueError
        If the table has no missing cells.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import plot
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> x[:30, 0] = x[:30, 1] = x[20:40, 2] = np.nan
    >>> ax = plot.correlation(x, ax=Figure().subplots())
    >>> sorted(text.get_text() for text in ax.texts)[-3:]
    ['x0', 'x1', 'x2']
    """
    data, _ = _missing(X, max_columns)
    ax = _axes(ax, rows=len(data["correlation"]["columns"]))
    draw_missing.draw_correlation(ax, data["correlation"])
    return ax


def flux(X: Any, *, max_columns: int = 60, ax: Axes | None = None) -> Axes:
    """Draw the outflux of columns against their influx, as ``fluxplot`` of R's mice.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    max_columns : int, default=60
        Number of columns shown: those with the highest missing rates.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes. Names that would cover others are left out.

    Raises
    ------
    ValueError
        If the table has no missing cells.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import plot
    >>> x = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, 4.0]])
    >>> plot.flux(x, ax=Figure().subplots()).get_xlabel()
    'influx: other columns tell about it'
    """
    data, shown = _missing(X, max_columns)
    ax = _axes(ax)
    draw_missing.draw_flux(ax, [row for row in data["columns"] if row["name"] in shown])
    return ax


def row_map(X: Any, *, max_columns: int = 60, ax: Axes | None = None) -> Axes:
    """Draw where in the table cells are missing, from the first row to the last.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    max_columns : int, default=60
        Number of columns shown: those with the highest missing rates.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes. Colours are missing fractions of at most 100 blocks of rows.

    Raises
    ------
    ValueError
        If the table has no missing cells.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import plot
    >>> x = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, 4.0]])
    >>> ax = plot.row_map(x, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x1']
    """
    data, _ = _missing(X, max_columns)
    ax = _axes(ax, rows=len(data["row_map"]["columns"]))
    draw_missing.draw_row_map(ax, data["row_map"], n_rows=read_columns(X).n_rows)
    return ax


def mechanism(imputer: Any, X: Any, column: str, *, ax: Axes | None = None) -> Axes:
    """Draw the probability that a cell goes missing by its own value, over the observed values.

    Parameters
    ----------
    imputer : imputer
        Fitted. Without a comparison of mechanisms, only the observed values are drawn.
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    column : str
        A column with missing cells.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    ValueError
        If there is no such column, or it has no missing or no observed cells.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import MICEImputer, plot
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> x[:50, 1] = np.nan
    >>> imputer = MICEImputer(max_iter=2, random_state=0).fit(x)
    >>> plot.mechanism(imputer, x, "x1", ax=Figure().subplots()).get_xlabel()
    'x1'
    """
    _check_incomplete(X, column)
    found = mechanism_data(X, imputer, report=no_relations(), shown=[column])["columns"][0]
    if not sum(found["observed"]["counts"]):
        raise ValueError(f"column {column!r} has no observed values.")
    levels = found["observed"]["levels"]
    ax = _axes(ax, rows=None if levels is None else len(levels))
    draw_mechanism.draw_odds(ax, found)
    return ax


def predictors(X: Any, column: str, *, random_state: int = 0, ax: Axes | None = None) -> Axes:
    """Draw how well other columns predict which cells of a column are missing.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    column : str
        A column with missing cells.
    random_state : int, default=0
        Seed of the sample of rows and of the folds.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes: areas under the ROC curve with 95 % intervals, of the five strongest predictors
        and of all other columns together.

    Raises
    ------
    ValueError
        If there is no such column, or it has no missing cells.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import plot
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> x[x[:, 0] > 1, 1] = np.nan
    >>> ax = plot.predictors(x, "x1", ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x0', 'all other columns']
    """
    _check_incomplete(X, column)
    rows = mechanism_data(X, shown=[column], random_state=random_state)["columns"][0]["predictors"]
    ax = _axes(ax, rows=len(rows))
    draw_mechanism.draw_predictors(ax, rows)
    return ax


def sets(imputer: Any, X: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the missing rates of columns in the pattern sets of an imputer.

    Parameters
    ----------
    imputer : imputer
        Fitted, with pattern sets: `PSMVAEImputer`, `GMVAEImputer` or `DLGMImputer`.
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes: at most 25 columns, those whose rates differ most between sets.

    Raises
    ------
    ValueError
        If the imputer has no pattern sets.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import PSMVAEImputer, plot
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> x[:50, 1] = np.nan
    >>> imputer = PSMVAEImputer(n_sets=2, mask_model="latent", max_epochs=1, random_state=0)
    >>> ax = plot.sets(imputer.fit(x), x, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x1']
    """
    found = mechanism_data(X, imputer, report=no_relations())["sets"]
    if not found:
        raise ValueError(f"{type(imputer).__name__} has no pattern sets.")
    ax = _axes(ax, rows=len(draw_mechanism.set_columns(found)))
    draw_mechanism.draw_sets(ax, found)
    return ax


def densities(mi: MultipleImputation, column: str | None = None, *, ax: Any = None) -> Any:
    """Draw the densities of observed and imputed values, as ``densityplot`` of R's mice.

    There is one line for each imputation, ten at most. Columns with levels have bars, with lines
    from the smallest to the largest fraction over imputations.

    Parameters
    ----------
    mi : MultipleImputation
        The completed tables.
    column : str, optional
        A column with imputed cells. By default the twelve with the most.
    ax : matplotlib Axes or sequence of them, optional
        Where to draw, one for each column. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes or ndarray of them
        The axes; an array if no column was given.

    Raises
    ------
    ValueError
        If there is no such column, it has no imputed cells, or the number of axes is not that of
        the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import MICEImputer, plot
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> x[:30, 0] = np.nan
    >>> mi = MICEImputer(random_state=0).fit(x).impute_multiple(x, m=3)
    >>> ax = plot.densities(mi, "x0", ax=Figure().subplots())
    >>> len(ax.lines)
    4
    """
    if column is not None:
        found = _imputed(mi, column)
        levels = None if found["bars"] is None else 1.5 * len(found["bars"]["levels"])
        ax = _axes(ax, rows=levels)
        _draw_values(ax, found)
        return ax
    columns = [
        found
        for found in imputed_data(mi, max_columns=_MAX_PANELS, pairs=[])["columns"]
        # a constant column has no density
        if found["density"] is not None or found["bars"] is not None
    ]
    if not columns:
        raise ValueError("no column has imputed cells and several values, so nothing is drawn.")
    axes = _panels(len(columns)) if ax is None else np.atleast_1d(ax).ravel()
    if axes.size != len(columns):
        raise ValueError(f"{len(columns)} columns need {len(columns)} axes, got {axes.size}.")
    for panel, found in zip(axes, columns, strict=True):
        _draw_values(panel, found)
    return axes


def strip(mi: MultipleImputation, column: str, *, ax: Axes | None = None) -> Axes:
    """Draw single observed and imputed values, as ``stripplot`` of R's mice.

    Parameters
    ----------
    mi : MultipleImputation
        The completed tables, of which the first five are shown.
    column : str
        A numeric column with imputed cells.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    ValueError
        If there is no such column, it has no imputed cells, or it has levels.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import MICEImputer, plot
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> x[:30, 0] = np.nan
    >>> mi = MICEImputer(random_state=0).fit(x).impute_multiple(x, m=2)
    >>> ax = plot.strip(mi, "x0", ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['observed', 'imputed 1', 'imputed 2']
    """
    found = _imputed(mi, column)["strip"]
    if found is None:
        raise ValueError(f"column {column!r} has levels; see psmvae.plot.densities.")
    ax = _axes(ax, rows=1.6 * (1 + len(found["imputed"])))
    draw_imputed.draw_strip(ax, found, column)
    return ax


def scatter(mi: MultipleImputation, x: str, y: str, *, ax: Axes | None = None) -> Axes:
    """Draw two columns in the first imputation; pairs with an imputed value are vermilion.

    Parameters
    ----------
    mi : MultipleImputation
        The completed tables.
    x, y : str
        Numeric columns.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes; at most 1,000 points of each colour, drawn at random.

    Raises
    ------
    ValueError
        If there is no such column, or it is not numeric.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import MICEImputer, plot
    >>> table = np.random.default_rng(0).normal(size=(100, 2))
    >>> table[:30, 0] = np.nan
    >>> mi = MICEImputer(random_state=0).fit(table).impute_multiple(table, m=2)
    >>> ax = plot.scatter(mi, "x0", "x1", ax=Figure().subplots())
    >>> [len(points.get_xdata()) for points in ax.lines]
    [70, 30]
    """
    found = imputed_data(mi, shown=[], pairs=[(x, y)])["scatters"][0]
    ax = _axes(ax)
    draw_imputed.draw_scatter(ax, found)
    return ax


def overimpute(
    imputer: Any, X: Any, column: str, *, random_state: int = 0, ax: Axes | None = None
) -> Axes:
    """Draw imputations of held-out cells against their values, as ``overimpute`` of R's Amelia.

    A tenth of the observed cells is hidden, and a clone of the imputer is fitted without them, for
    20 seconds at most.

    Parameters
    ----------
    imputer : imputer
        Fitted; it is not changed.
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    column : str
        A numeric column.
    random_state : int, default=0
        Seed of the hidden cells, the fit and the draws.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes: at most 100 cells with 90 % intervals.

    Raises
    ------
    ValueError
        If there is no such column, if it has levels, or if no cells of it can be held out.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import MICEImputer, plot
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> x[:50, 1] = np.nan
    >>> imputer = MICEImputer(max_iter=2, random_state=0).fit(x)
    >>> plot.overimpute(imputer, x, "x1", ax=Figure().subplots()).get_xlabel()
    'x1, held out'
    """
    _check_column(X, column)
    data = validation_data(X, imputer, shown=[column], random_state=random_state)
    found = [each for each in data["columns"] if each["name"] == column]
    if not found:
        raise ValueError(f"no cells of column {column!r} were held out. {data['sentence']}")
    if not found[0]["truth"]:
        raise ValueError(f"column {column!r} has levels; see psmvae.plot.errors.")
    ax = _axes(ax)
    draw_validation.draw_overimputation(ax, found[0])
    return ax


def pit(
    imputer: Any,
    X: Any,
    column: str | None = None,
    *,
    random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the probability integral transform of held-out cells.

    It is the share of the draws below a held-out value, and uniform if the draws have the right
    distribution. Cells are held out as by `overimpute`.

    Parameters
    ----------
    imputer : imputer
        Fitted; it is not changed.
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    column : str, optional
        One column. By default all.
    random_state : int, default=0
        Seed of the hidden cells, the fit and the draws.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes, with a band of 95 % for the counts of a uniform distribution.

    Raises
    ------
    ValueError
        If there is no such column, or no cells can be held out.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import MICEImputer, plot
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> x[:50, 1] = np.nan
    >>> imputer = MICEImputer(max_iter=2, random_state=0).fit(x)
    >>> ax = plot.pit(imputer, x, ax=Figure().subplots())
    >>> round(sum(bar.get_height() for bar in ax.containers[0]))
    35
    """
    if column is not None:
        _check_column(X, column)
    data = validation_data(X, imputer, shown=[], random_state=random_state)
    counts = data["pit"]
    if column is not None:
        counts = next((each["pit"] for each in data["columns"] if each["name"] == column), [0])
    if not sum(counts):
        raise ValueError(f"no cells were held out. {data['sentence']}")
    ax = _axes(ax)
    draw_validation.draw_pit(ax, counts)
    return ax


def errors(imputer: Any, X: Any, *, random_state: int = 0, ax: Any = None) -> Any:
    """Draw the errors of held-out cells by column, beside those of means and of MICE.

    Cells are held out as by `overimpute`.

    Parameters
    ----------
    imputer : imputer
        Fitted; it is not changed.
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    random_state : int, default=0
        Seed of the hidden cells, the fits and the draws.
    ax : matplotlib Axes or sequence of them, optional
        Where to draw: one for numeric columns, one for columns with levels, or both in this order
        if there are both. By default a new figure of pyplot.

    Returns
    -------
    ndarray of matplotlib Axes
        The axes.

    Raises
    ------
    ValueError
        If no cells can be held out, or the number of axes is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import MICEImputer, plot
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> x[:50, 1] = np.nan
    >>> imputer = MICEImputer(max_iter=2, random_state=0).fit(x)
    >>> axes = plot.errors(imputer, x, ax=Figure().subplots())
    >>> [text.get_text() for text in axes[0].get_legend().get_texts()]
    ['MICEImputer', 'MeanImputer']
    """
    data = validation_data(X, imputer, shown=[], random_state=random_state)
    groups = list(by_unit(data["columns"]))
    if not groups:
        raise ValueError(f"no cells were held out. {data['sentence']}")
    if ax is None:
        height = 1.2 * len(groups) + 0.28 * len(data["columns"])
        ax = new_axes(nrows=len(groups), figsize=(6.4, height))
    axes = np.atleast_1d(ax)
    if axes.size != len(groups):
        raise ValueError(f"there are {len(groups)} units of errors, got {axes.size} axes.")
    for panel, (_, unit, columns) in zip(axes, groups, strict=True):
        rows = [(each["name"], each["error"]) for each in columns]
        draw_validation.draw_errors(panel, rows, data["methods"], unit=unit)
    return axes


def training(imputer: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the validation error over epochs.

    Parameters
    ----------
    imputer : imputer
        Fitted, with a neural network.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    ValueError
        If the imputer keeps no course of training.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import VAEImputer, plot
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> x[:50, 1] = np.nan
    >>> imputer = VAEImputer(max_epochs=40, random_state=0).fit(x)
    >>> plot.training(imputer, ax=Figure().subplots()).get_xlabel()
    'epoch'
    """
    data = training_data(imputer)
    if data is None:
        raise ValueError(
            f"{type(imputer).__name__} has no course of training: it has no network, was validated "
            "fewer than two times, or was read from a file."
        )
    ax = _axes(ax)
    draw_validation.draw_training(ax, data)
    return ax


def convergence(imputer: Any, column: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw R-hat of the chains of `MICEImputer`, or the traces of a column.

    Parameters
    ----------
    imputer : MICEImputer
        Fitted, after `sample` or `impute_multiple`.
    column : str, optional
        The column whose traces are drawn. By default R-hat of all columns.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    ValueError
        If the imputer has no chains, or the column has no traces.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import MICEImputer, plot
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> x[:30, 0] = np.nan
    >>> imputer = MICEImputer(random_state=0).fit(x)
    >>> mi = imputer.impute_multiple(x, m=3)
    >>> ax = plot.convergence(imputer, "x0", ax=Figure().subplots())
    >>> ax.get_xlabel()
    'mean of x0 by iteration'
    """
    data = convergence_data(imputer)
    if data is None:
        raise ValueError(f"{type(imputer).__name__} has no chains; MICEImputer has.")
    if column is None:
        ax = _axes(ax, rows=len(data["columns"]))
        draw_validation.draw_r_hat(ax, data)
        return ax
    found = imputer.convergence()
    if column not in found.columns:
        raise ValueError(
            f"column {column!r} has no traces; those with imputed cells are "
            f"{quoted(found.columns)}."
        )
    chains = found.mean[:, :, list(found.columns).index(column)].T
    ax = _axes(ax)
    draw_validation.draw_trace(ax, chains.tolist(), column)
    return ax


def estimates(fits: Any, *, ax: Axes | None = None) -> Axes:
    """Draw pooled estimates with 95 % intervals, beside those of complete cases.

    Parameters
    ----------
    fits : Analyses or PooledResults
        Of `MultipleImputation.analyse`; pooled results have no complete cases beside them.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import MICEImputer, plot
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> x[:30, 0] = np.nan
    >>> mi = MICEImputer(random_state=0).fit(x).impute_multiple(x, m=3)
    >>> fits = mi.analyse(lambda t: {"mean": (t[:, 0].mean(), t[:, 0].var() / len(t))})
    >>> ax = plot.estimates(fits, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['mean']
    """
    rows = results_data(fits)["estimates"]
    ax = _axes(ax, rows=1.6 * len(rows))
    draw_results.draw_estimates(ax, rows)
    return ax


def assumptions(comparison: AssumptionComparison, *, ax: Any = None) -> Any:
    """Draw estimates under several assumptions; see `AssumptionComparison.plot`.

    Parameters
    ----------
    comparison : AssumptionComparison
        Of `psmvae.compare_assumptions`.
    ax : matplotlib Axes or sequence of them, optional
        Where to draw, one for each term. By default a new figure of pyplot.

    Returns
    -------
    ndarray of matplotlib Axes
        The axes, one for each term.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from psmvae import MICEImputer, compare_assumptions, plot
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> x[:30, 0] = np.nan
    >>> found = compare_assumptions(
    ...     x, lambda t: {"mean": (t[:, 0].mean(), t[:, 0].var() / len(t))},
    ...     ["complete cases", "mar"], imputer=MICEImputer(random_state=0), m=3,
    ... )
    >>> plot.assumptions(found, ax=Figure().subplots()).size
    1
    """
    return comparison.plot(ax)


def tipping_point(result: TippingPoint, *, ax: Axes | None = None) -> Axes:
    """Draw a tipping point analysis; see `TippingPoint.plot`.

    Parameters
    ----------
    result : TippingPoint
        Of `psmvae.tipping_point`.
    ax : matplotlib Axes, optional
        Where to draw. By default a new figure of pyplot.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> import psmvae
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> x[:30, 0] = np.nan
    >>> mi = psmvae.MICEImputer(random_state=0).fit(x).impute_multiple(x, m=3)
    >>> def mean(table):
    ...     return {"mean": (table[:, 0].mean(), table[:, 0].var() / len(table))}
    >>> found = psmvae.tipping_point(mi, mean, "x0", [0, 1, 2])
    >>> ax = psmvae.plot.tipping_point(found, ax=Figure().subplots())
    >>> ax.get_xlabel()
    'δ, added to imputed values of x0'
    """
    return result.plot(ax)


def _axes(ax: Axes | None, rows: float | None = None) -> Axes:
    """The axes given, or new ones with a height for so many rows."""
    if ax is not None:
        return ax
    size = (6.4, 4.0) if rows is None else (6.4, 1.2 + 0.26 * max(rows, 2))
    made: Axes = new_axes(figsize=size)
    return made


def _panels(count: int) -> Any:
    width = min(count, 3)
    height = -(-count // width)
    axes = np.atleast_1d(new_axes(nrows=height, ncols=width, figsize=(3.6 * width, 2.4 * height)))
    flat = axes.ravel()
    for unused in flat[count:]:
        unused.remove()
    return flat[:count]


def _missing(X: Any, max_columns: int) -> tuple[MissingData, set[str]]:
    columns = read_columns(X)
    if not columns.missing.any():
        raise ValueError("the table has no missing cells, so there is nothing to draw.")
    shown = shown_columns(columns, max_columns)
    return missing_data(columns, report=no_relations(), shown=shown), set(shown)


def _check_column(X: Any, column: str) -> None:
    names: Sequence[str] = read_columns(X).names
    if column not in names:
        raise ValueError(f"there is no column {column!r}; the columns are {quoted(names)}.")


def _check_incomplete(X: Any, column: str) -> None:
    _check_column(X, column)
    columns = read_columns(X)
    if not columns.missing[:, columns.position(column)].any():
        raise ValueError(f"column {column!r} has no missing cells.")


def _imputed(mi: MultipleImputation, column: str) -> ImputedColumn:
    _check_column(mi.original, column)
    found = imputed_data(mi, shown=[column], pairs=[])["columns"]
    if not found:
        raise ValueError(f"column {column!r} has no imputed cells.")
    return found[0]


def _draw_values(ax: Axes, column: ImputedColumn) -> None:
    if column["bars"] is not None:
        draw_imputed.draw_bars(ax, column["bars"])
        titles(ax, x=clean(column["name"], 40))
    elif column["density"] is not None:
        draw_imputed.draw_densities(ax, column["density"], column["name"])
    else:
        raise ValueError(f"column {column['name']!r} has too few distinct values for a density.")
