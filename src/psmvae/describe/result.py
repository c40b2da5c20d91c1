"""`psmvae.missingness` and what it returns."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from psmvae.describe import masks
from psmvae.describe.joint import joint
from psmvae.describe.little import LittleTest, little_test
from psmvae.describe.masks import Columns
from psmvae.describe.predictors import predictors
from psmvae.describe.variables import read_variables
from psmvae.describe.wording import sections
from psmvae.table.sections import as_html, as_text

MAX_ROWS = 10_000
"""Rows that Little's test and the joint models use by default."""


@dataclass(frozen=True, repr=False)
class MissingnessReport:
    """The missing values of a table; made by `psmvae.missingness`.

    Printing it gives the tables, the tests and what they say in sentences. The frames are of the
    library of the table: pandas, polars or pyarrow; pandas for an array.

    Attributes
    ----------
    n_rows, n_columns, n_missing : int
        Numbers of rows, of columns and of missing cells.
    n_complete : int
        Number of rows without a missing cell.
    rates : DataFrame
        One row for each column: column, kind, n_missing and fraction.
    patterns : DataFrame
        One row for each distinct pattern, most frequent first: pattern (1 observed, 0 missing, in
        the order of the columns), n and fraction of rows, n_missing, and the names of the missing
        columns, as in ``md.pattern`` of R's mice.
    flux : DataFrame
        One row for each column: pobs, the proportion observed, and van Buuren's influx and outflux.
        Influx is the number of pairs of a missing cell of the column and an observed cell in the
        same row, relative to all observed cells: how much others tell about it. Outflux is the
        number of pairs of an observed cell of the column and a missing cell, relative to all
        missing cells: how much it may tell about others. NaN for a table with a single column, and
        outflux for a table without missing cells.
    little : LittleTest
        Little's test of values missing completely at random, with effect sizes.
    predictors : DataFrame
        One row for each column with missing cells, each other column and ``by``: "value" is the
        observed value of the other column, "mask" whether it is missing. auc is the area under the
        ROC curve for the mask of the column, conf_low and conf_high its 95 % interval by DeLong's
        variance, n_missing and n_observed the numbers of rows compared. 0.5 is no relation; above
        it, high values (or missing cells) of the other column go with missing cells, below it low
        values. Levels without an order have a cross-validated area. For each column with missing
        cells the area farthest from 0.5 comes first. Intervals are not adjusted for their number.
        NaN with fewer than 10 missing or 10 observed cells; the interval is NaN if all rows are
        separated.
    joint : DataFrame
        One row for each column with missing cells: the cross-validated area of all other columns
        together, by a logistic regression on ranks, squared ranks, indicators of levels, and masks,
        with its interval and the number of rows used. Empty for tables of more than 100 columns.
    """

    n_rows: int
    n_columns: int
    n_missing: int
    n_complete: int
    little: LittleTest
    _tables: dict[str, Columns] = field(repr=False)
    _backend: Any = field(repr=False)

    @property
    def rates(self) -> Any:
        """Missing cells of each column."""
        return self._frame("rates")

    @property
    def patterns(self) -> Any:
        """Distinct patterns."""
        return self._frame("patterns")

    @property
    def flux(self) -> Any:
        """Influx and outflux of each column."""
        return self._frame("flux")

    @property
    def predictors(self) -> Any:
        """Areas of single columns."""
        return self._frame("predictors")

    @property
    def joint(self) -> Any:
        """Areas of all other columns together."""
        return self._frame("joint")

    def _frame(self, name: str) -> Any:
        return nw.from_dict(self._tables[name], backend=self._backend).to_native()

    def summary(self) -> str:
        """Return the tables, the tests and what they say as text.

        Returns
        -------
        str
            What printing the object shows. Long tables are cut.
        """
        return as_text(sections(self.to_dict()))

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return as_html(sections(self.to_dict()))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects.

        Returns
        -------
        dict
            Numbers by name, ``little`` as a dict and each frame as a dict of lists.
        """
        numbers = {
            name: getattr(self, name) for name in ("n_rows", "n_columns", "n_missing", "n_complete")
        }
        return {**numbers, "little": self.little.to_dict(), **self._tables}


def missingness(
    X: Any,
    *,
    max_rows: int | None = MAX_ROWS,
    random_state: int | np.random.Generator | None = 0,
) -> MissingnessReport:
    """Describe the missing values of a table: how many, in which patterns, and what predicts them.

    Parameters
    ----------
    X : DataFrame or array of shape (n_rows, n_columns)
        A pandas or polars DataFrame, a pyarrow Table, a 2-D NumPy array or a list of rows, as the
        imputers read them.
    max_rows : int or None, default=10_000
        Maximum number of rows, drawn at random, for Little's test and for each joint model. In the
        rows of a joint model, the rarer of missing and observed cells of the column makes up to one
        half. All other results use every row. None uses all rows.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the folds of cross-validation and of the rows that are drawn.

    Returns
    -------
    MissingnessReport
        Frames of rates, patterns, flux and predictors, and Little's test. Print it for a summary.

    Raises
    ------
    ValueError
        If the table has no rows or no columns, a column holds infinity, or `max_rows` is below
        100.
    UnsupportedColumnError
        If a column has a type that no kind can model, such as a list. Dates are read as numbers.

    Warns
    -----
    StrayTextWarning
        If a column of numbers holds a few texts, which may be codes for missing values.

    Notes
    -----
    The results describe how the mask relates to observed values. They cannot tell whether a cell is
    missing because of its own value: for every model where it is, there is one with the same
    observed data where it is not.

    References
    ----------
    van Buuren, S. (2018). Flexible Imputation of Missing Data, 2nd ed., section 4.1.

    DeLong, E. R., DeLong, D. M. and Clarke-Pearson, D. L. (1988). Comparing the areas under two or
    more correlated receiver operating characteristic curves. Biometrics 44, 837-845.

    Examples
    --------
    >>> import numpy as np, pandas as pd, psmvae
    >>> rng = np.random.default_rng(0)
    >>> df = pd.DataFrame({"age": rng.normal(50, 10, 300), "bmi": rng.normal(25, 4, 300)})
    >>> df.loc[rng.random(300) < (df["age"] > 55) * 0.5, "bmi"] = np.nan
    >>> found = psmvae.missingness(df)
    >>> found.patterns[["pattern", "n", "fraction"]]
      pattern    n  fraction
    0      11  255      0.85
    1      10   45      0.15
    >>> found.predictors[["column", "predictor", "by", "auc"]].round(2)
      column predictor     by   auc
    0    bmi       age  value  0.92
    >>> found.little.p_value < 0.001
    True
    """
    if max_rows is not None and operator.index(max_rows) < 100:
        raise ValueError(f"max_rows must be an integer of at least 100 or None, got {max_rows!r}.")
    variables = read_variables(X)
    names = [one.name for one in variables]
    missing = np.stack([np.isnan(one.values) for one in variables], axis=1)
    rng = np.random.default_rng(random_state)
    return MissingnessReport(
        len(missing),
        len(names),
        int(missing.sum()),
        int((~missing.any(1)).sum()),
        little_test(variables, max_rows, rng),
        {
            "rates": masks.rates(variables, missing),
            "patterns": masks.patterns(names, missing),
            "flux": masks.flux(names, missing),
            "predictors": predictors(variables, missing, rng),
            "joint": joint(variables, missing, max_rows, rng),
        },
        _backend(X),
    )


def _backend(table: Any) -> Any:
    """The library of a frame; pandas for an array."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    return frame.implementation if isinstance(frame, nw.DataFrame) else "pandas"
