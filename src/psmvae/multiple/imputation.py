"""The completed tables of a multiple imputation, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmvae.multiple.bootstrap import bootstrap_estimates
from psmvae.multiple.estimates import Estimates, noting, numbered
from psmvae.multiple.how_many import CONF_LEVEL, CV, HowMany, how_many
from psmvae.multiple.long_format import split_tables, stack_tables
from psmvae.multiple.pooling import Analyses, Backend, ScaleName
from psmvae.multiple.rubin import DEFAULT, DegreesOfFreedom
from psmvae.multiple.shift import check_levels, shift_tables
from psmvae.table.derived import check_derived
from psmvae.table.frames import open_table
from psmvae.table.libraries import is_arrow_table, is_polars_frame
from psmvae.table.numbers import share
from psmvae.table.sections import Section, as_html, as_text, shortened

LONG_TABLE = "long table"
"""``info["source"]`` of imputations that were read and not made."""


@dataclass(frozen=True, eq=False, repr=False)
class MultipleImputation(Sequence[Any]):
    """Completed tables of one incomplete table; made by ``imputer.impute_multiple``.

    Parameters
    ----------
    original : table
        The incomplete table.
    tables : tuple of tables
        The completed tables, of the type of ``original``.
    mask : ndarray of bool, shape (n_rows, n_columns)
        True where a cell was imputed.
    info : mapping
        How the imputations were made: imputer, random_state of the imputer and of the draws (if
        they were integers), version, formulas of derived columns, the order of the levels of
        ordinal columns, and the shifts that were applied.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from psmvae import MICEImputer
    >>> rng = np.random.default_rng(0)
    >>> df = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])
    >>> df.loc[:9, "a"] = np.nan
    >>> mi = MICEImputer(random_state=0).fit(df).impute_multiple(df, m=5)
    >>> fits = mi.analyse(lambda d: {"mean of a": (d["a"].mean(), d["a"].var() / len(d))})
    >>> fits.pool(dfcom=49).summary()[["term", "m"]].values.tolist()
    [['mean of a', 5]]
    >>> mi.to_long().shape
    (300, 4)
    """

    original: Any
    tables: tuple[Any, ...]
    mask: NDArray[np.bool_]
    info: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tables)

    def __getitem__(self, index: Any) -> Any:
        """Return a completed table, or for a slice the imputations of these tables."""
        if isinstance(index, slice):
            return replace(self, tables=self.tables[index])
        return self.tables[index]

    @property
    def m(self) -> int:
        """Number of imputations."""
        return len(self.tables)

    def _sections(self) -> list[Section]:
        n_rows = len(self.mask)
        by = f" by {self.info['imputer']}" if "imputer" in self.info else ""
        names, counts = open_table(self.original).names, self.mask.sum(0).tolist()
        pairs = sorted(zip(names, counts, strict=True), key=lambda pair: -pair[1])
        filled = [(name, n) for name, n in pairs if n]
        cells = [[name, f"{n:,}", share(n / n_rows)] for name, n in filled]
        rows = [["column", "imputed cells", "share"], *cells] if cells else []
        size = f"{n_rows:,} rows, {len(names):,} columns, {sum(counts):,} imputed cells in each."
        words = {
            "random_state": "random_state",
            "draws": "random_state of the draws",
            "psmvae": "psmvae",
        }
        how = [f"{text} = {self.info[key]}" for key, text in words.items() if key in self.info]
        n_shifts = len(self.info.get("shift", []))
        shifts = f"Imputed cells were shifted ({n_shifts} shifts)." if n_shifts else ""
        texts = [size, f"Made with {', '.join(how)}." if how else "", shifts]
        title = f"{self.m:,} imputations{by}"
        return [shortened(Section(title, rows, [text for text in texts if text]))]

    def __repr__(self) -> str:
        return as_text(self._sections())

    def _repr_html_(self) -> str:
        return as_html(self._sections())

    def analyse(
        self,
        analysis: Callable[[Any], Any],
        *,
        bootstrap: int | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Analyses:
        """Apply an analysis to every completed table.

        Parameters
        ----------
        analysis : callable
            Takes a copy of a completed table; returns what `psmvae.multiple.read_estimates`
            accepts.
        bootstrap : int, optional
            Number of bootstrap samples of the rows of each table. The analysis is repeated on each
            of them, and the covariance of their estimates is the within-imputation variance. For
            analyses that give no standard errors, such as those of scikit-learn. The results are
            then of class `psmvae.multiple.Estimates`.
        random_state : int, optional
            Seed of the bootstrap samples.
        n_jobs : int, optional
            Number of processes, as in joblib. None runs in this process.
        progress : callable, optional
            Called with the number of finished analyses and their total. Only without `n_jobs`.

        Returns
        -------
        Analyses
            The results, to be pooled.

        Raises
        ------
        TypeError
            If `analysis` or `progress` cannot be called.

        Notes
        -----
        An error of the analysis has a note with the number of the imputation.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from sklearn.linear_model import LinearRegression
        >>> from psmvae import MICEImputer
        >>> rng = np.random.default_rng(0)
        >>> df = pd.DataFrame({"x": rng.normal(size=50)})
        >>> df["y"] = 2 * df["x"] + rng.normal(size=50)
        >>> df.loc[:9, "x"] = np.nan
        >>> mi = MICEImputer(random_state=0).fit(df).impute_multiple(df, m=5)
        >>> fits = mi.analyse(
        ...     lambda d: LinearRegression().fit(d[["x"]], d["y"]), bootstrap=50, random_state=0
        ... )
        >>> fits.pool(dfcom=48).summary()["term"].tolist()
        ['intercept', 'x']
        """
        if not callable(analysis):
            raise TypeError(
                "analysis must be a function of a completed table, such as lambda d: "
                f"smf.ols('y ~ x', d).fit(), got {analysis!r}."
            )
        if not (progress is None or callable(progress)):
            raise TypeError(
                "progress must be a function of the number of finished analyses and their total, "
                f"got {progress!r}."
            )
        repeat = analysis
        calls = [partial(_of_copy, analysis, table) for table in self.tables]
        if bootstrap is not None:
            # one stream for each table: the samples do not depend on the order of the analyses
            seeds = np.random.SeedSequence(random_state).spawn(self.m)
            calls = [
                partial(bootstrap_estimates, partial(_of_copy, analysis), table, bootstrap, seed)
                for table, seed in zip(self.tables, seeds, strict=True)
            ]
            repeat = partial(_bootstrapped, analysis, bootstrap, random_state)
        calls = [
            partial(_noted, call, f"analysis of {numbered(k, self.m)}")
            for k, call in enumerate(calls)
        ]
        backend, source = _backend(self.original), (repeat, self.original)
        if n_jobs is not None:
            from joblib import Parallel, delayed

            parallel = Parallel(n_jobs=n_jobs)
            return Analyses(
                parallel(delayed(call)() for call in calls), backend=backend, source=source
            )
        results = []
        for call in calls:
            results.append(call())
            if progress is not None:
                progress(len(results), self.m)
        return Analyses(results, backend=backend, source=source)

    def how_many(
        self,
        fits: Analyses,
        *,
        cv: float = CV,
        conf_level: float = CONF_LEVEL,
        dfcom: float | None = None,
        df: DegreesOfFreedom = DEFAULT,
        scale: ScaleName = "identity",
    ) -> HowMany:
        """Number of imputations for stable standard errors, by von Hippel (2020).

        Parameters
        ----------
        fits : Analyses
            What `analyse` returned.
        cv : float, default=0.05
            Coefficient of variation of the standard error if the table were imputed again.
        conf_level : float, default=0.95
            Level of the interval of the fraction of missing information; its upper limit is used.
        dfcom : float, optional
            Degrees of freedom of complete data. By default those of the results, or infinity.
        df : {"barnard-rubin", "rubin"}, default="barnard-rubin"
            Degrees of freedom of the pooled estimates, as in `Analyses.pool`.
        scale : {"identity", "log", "logit", "fisher_z"}, default="identity"
            Scale of pooling, as in `Analyses.pool`. The values are those of its summary.

        Returns
        -------
        HowMany
            The number, and the Monte Carlo errors of what was pooled.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from psmvae import MICEImputer
        >>> rng = np.random.default_rng(0)
        >>> df = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])
        >>> df.loc[:9, "a"] = np.nan
        >>> mi = MICEImputer(random_state=0).fit(df).impute_multiple(df, m=9)
        >>> fits = mi.analyse(lambda d: {"mean of a": (d["a"].mean(), d["a"].var() / len(d))})
        >>> mi.how_many(fits, dfcom=49).m > 9
        True
        """
        if not isinstance(fits, Analyses):
            raise TypeError(
                f"fits must be the Analyses that analyse returns, got {type(fits).__name__}."
            )
        if len(fits) != self.m:
            raise ValueError(f"the analyses are of {len(fits)} tables, but there are {self.m}.")
        return how_many(fits, cv=cv, conf_level=conf_level, dfcom=dfcom, df=df, scale=scale)

    def shift(
        self,
        delta: Mapping[str, Any],
        *,
        groups: Any = None,
        levels: Mapping[str, Sequence[Any]] | None = None,
        derived: Mapping[str, str] | None = None,
        random_state: int = 0,
    ) -> MultipleImputation:
        """Shift the imputed cells of some columns: δ-adjustment, for a sensitivity analysis.

        Observed cells are unchanged, the draws are used again and nothing is refitted. δ is defined
        as in R's rbmi: it is applied after imputation, and then the analysis is repeated and
        pooled.

        Parameters
        ----------
        delta : mapping of str to shift
            For each column one of:

            - a number, which is added to the imputed values;
            - ``"× 0.9"`` (or ``"x 0.9"``, ``"* 0.9"``): the imputed values are multiplied;
            - ``"odds × 2"``: imputed levels are re-drawn so that odds are multiplied. Of two
              levels, the odds of the second (of True, of 1, of the later in the alphabet). Of
              ordered levels, counts and other whole numbers, the odds of every P(x > level);
            - ``"odds of yes × 2"``: the odds of this level against all others, which keep their
              proportions;
            - a mapping of conditions to one of these, for some rows only:
              ``{"arm == 'treated'": -5}``. A condition compares columns with numbers and texts by
              ``== != < <= > >=`` and ``in``, joined by ``and``, ``or`` and ``not``. It is evaluated
              in each completed table. Rows that meet no condition are unchanged, and a row that
              meets two is an error.
        groups : array-like of shape (n_rows,), optional
            A label for each row, such as the pattern sets of ``imputer.predict_set(X)``, or bools.
            The keys of the mappings in `delta` are then labels instead of conditions.
        levels : mapping of str to sequence, optional
            The order of the levels of ordinal columns. By default that of the imputer's `kinds`, or
            of the data type.
        derived : mapping of str to str, optional
            Formulas of columns that are computed again if one of their columns is shifted, as
            `derived` of an imputer. By default those of the imputer. A column with a formula cannot
            be shifted itself.
        random_state : int, default=0
            Seed of the levels that are re-drawn. The same seed gives the same random numbers for
            every factor.

        Returns
        -------
        MultipleImputation
            The shifted tables, of the same type; ``info["shift"]`` lists the shifts.

        Raises
        ------
        ValueError
            If a column is unknown or has no imputed cells, if the shift does not fit the column, or
            if a group has no imputed cells.

        Notes
        -----
        - Shifted values may lie outside the bounds of a column and outside the observed range.
        - Columns of integers stay integers if all shifted values are whole numbers within the range
          of the data type; otherwise they become floats, in all tables. Decimals are rounded to
          their scale.
        - For odds, the probabilities of a cell are drawn from their posterior given its m draws,
          with the frequencies in all imputed cells of the column (or group) as prior. A level then
          changes with the smallest probability that gives the new distribution: the odds are
          multiplied by the factor in expectation if the probabilities have this prior. Otherwise
          they are approximately, and better with more imputations. Levels that occur nowhere in
          the completed tables are never drawn, so a count does not exceed the largest count.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from psmvae import MICEImputer
        >>> rng = np.random.default_rng(0)
        >>> df = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])
        >>> df["arm"] = np.where(rng.random(50) < 0.5, "control", "treated")
        >>> df.loc[:9, "a"] = np.nan
        >>> mi = MICEImputer(random_state=0).fit(df).impute_multiple(df, m=5)
        >>> higher = mi.shift({"a": 5})
        >>> (higher[0]["a"] - mi[0]["a"]).round(9).unique().tolist()
        [5.0, 0.0]
        >>> by_arm = mi.shift({"a": {"arm == 'treated'": -5}})
        >>> by_arm.info["shift"]
        [{'delta': {'a': {"arm == 'treated'": -5}}}]
        """
        if derived is None:
            derived = self.info.get("derived")
        orders = levels
        if levels is None or isinstance(levels, Mapping):
            orders = {**self.info.get("levels", {}), **(levels or {})}
        tables = shift_tables(
            self.original,
            self.tables,
            self.mask,
            delta,
            groups=groups,
            levels=orders,
            derived=derived,
            random_state=random_state,
        )
        applied = {"delta": dict(delta)} | (
            {} if groups is None else {"groups": np.asarray(groups)}
        )
        info = {**self.info, "shift": [*self.info.get("shift", []), applied]}
        return MultipleImputation(self.original, tables, self.mask, info)

    def to_long(self) -> Any:
        """Stack the tables in the long format of R's mice.

        Returns
        -------
        DataFrame
            With columns ``.imp`` (0: incomplete table) and ``.id``, readable by R's ``as.mids``.
        """
        return stack_tables([self.original, *self.tables])

    @classmethod
    def from_long(
        cls,
        table: Any,
        *,
        derived: Mapping[str, str] | None = None,
        levels: Mapping[str, Sequence[Any]] | None = None,
    ) -> MultipleImputation:
        """Read the long format that `to_long` and R's ``complete(imp, "long", TRUE)`` write.

        Parameters
        ----------
        table : DataFrame
            With columns ``.imp`` and ``.id``, the incomplete table as imputation 0.
        derived : mapping of str to str, optional
            Formulas of derived columns, as `derived` of an imputer; `shift` computes them again.
            The long format does not store them.
        levels : mapping of str to sequence, optional
            The order of the levels of ordinal columns, for shifts of their odds. Text columns of
            the long format have none.

        Returns
        -------
        MultipleImputation
            The completed tables, in the order of ``.imp``. Their rows are in the order of the
            incomplete table, by ``.id``.

        Raises
        ------
        TypeError
            If `table` is no frame.
        ValueError
            If the keys are absent, ``.id`` does not number the rows of each imputation, an observed
            cell differs from the incomplete table, or a cell is filled in some imputations only.

        Notes
        -----
        Cells that are missing in every table were not imputed. Numbers in rows with another missing
        number may be computed from it, as derived columns are: they may differ from the incomplete
        table, or stay missing in some imputations.
        """
        (original, *completed), mask = split_tables(table)
        info: dict[str, Any] = {"source": LONG_TABLE}
        if derived:
            check_derived(derived, open_table(original).names)
            info["derived"] = dict(derived)
        if levels:
            info["levels"] = check_levels(levels, open_table(original).names)
        return cls(original, tuple(completed), mask, info)


def copy_of(table: Any) -> Any:
    """Return a copy of a table, which later changes of the table do not reach."""
    # tables of Arrow cannot be changed
    return table if is_arrow_table(table) else deepcopy(table)


def _of_copy(analysis: Callable[[Any], Any], table: Any) -> Any:
    """Apply an analysis to a copy of a table, because it may add or change columns."""
    return analysis(copy_of(table))


def _noted(call: Callable[[], Any], text: str) -> Any:
    """Call a function; an error gets a note."""
    with noting(text):
        return call()


def _bootstrapped(
    analysis: Callable[[Any], Any], n_samples: int, random_state: int | None, table: Any
) -> Estimates:
    return bootstrap_estimates(analysis, table, n_samples, np.random.SeedSequence(random_state))


def _backend(table: Any) -> Backend:
    if is_polars_frame(table):
        return "polars"
    return "pyarrow" if is_arrow_table(table) else "pandas"
