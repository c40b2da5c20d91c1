"""The completed tables of a multiple imputation, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae.multiple.pooling import Analyses, Backend

IMPUTATION, ROW = ".imp", ".id"


@dataclass(frozen=True, eq=False)
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
        How the imputations were made: imputer, parameters, seed, version.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from psmvae import MICEImputer
    >>> rng = np.random.default_rng(0)
    >>> df = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])
    >>> df.loc[:9, "a"] = np.nan
    >>> mi = MICEImputer(sample_posterior=True, random_state=0).fit(df).impute_multiple(df, m=5)
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
        return self.tables[index]

    @property
    def m(self) -> int:
        """Number of imputations."""
        return len(self.tables)

    def analyse(
        self,
        analysis: Callable[[Any], Any],
        *,
        n_jobs: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Analyses:
        """Apply an analysis to every completed table.

        Parameters
        ----------
        analysis : callable
            Takes a completed table; returns what `psmvae.multiple.read_estimates` accepts.
        n_jobs : int, optional
            Number of processes, as in joblib. None runs in this process.
        progress : callable, optional
            Called with the number of finished analyses and their total. Only without `n_jobs`.

        Returns
        -------
        Analyses
            The results, to be pooled.
        """
        backend = _backend(self.original)
        if n_jobs is not None:
            from joblib import Parallel, delayed

            parallel = Parallel(n_jobs=n_jobs)
            return Analyses(parallel(map(delayed(analysis), self.tables)), backend=backend)
        results = []
        for table in self.tables:
            results.append(analysis(table))
            if progress is not None:
                progress(len(results), self.m)
        return Analyses(results, backend=backend)

    def to_long(self) -> Any:
        """Stack the tables in the long format of R's mice.

        Returns
        -------
        DataFrame
            With columns ``.imp`` (0: incomplete table) and ``.id``, readable by R's ``as.mids``.
        """
        frames = [_long(part, k) for k, part in enumerate([self.original, *self.tables])]
        # an incomplete integer column may be of floats, a completed one of integers
        completed = frames[1].schema.items()
        first = _cast(frames[0], {n: dtype for n, dtype in completed if not dtype.is_integer()})
        rest = [_cast(frame, first.schema) for frame in frames[1:]]
        return nw.concat([first, *rest]).to_native()

    @classmethod
    def from_long(cls, table: Any) -> MultipleImputation:
        """Read the long format that `to_long` and R's ``complete(imp, "long", TRUE)`` write.

        Parameters
        ----------
        table : DataFrame
            With columns ``.imp`` and ``.id``, the incomplete table as imputation 0.

        Returns
        -------
        MultipleImputation
            The completed tables, in the order of ``.imp``.
        """
        frame = nw.from_native(table, eager_only=True)
        absent = [name for name in (IMPUTATION, ROW) if name not in frame.columns]
        if absent:
            raise ValueError(f"a long table needs the columns '.imp' and '.id'; absent: {absent}.")
        numbers = sorted(frame[IMPUTATION].unique().to_list())
        if not numbers or numbers[0] != 0 or len(numbers) < 2:
            raise ValueError(
                "a long table needs the incomplete table as imputation 0 and at least one "
                f"completed table, got .imp = {numbers}."
            )
        parts = [frame.filter(nw.col(IMPUTATION) == k) for k in numbers]
        rows = parts[0][ROW].to_list()
        for k, part in zip(numbers, parts, strict=True):
            if part[ROW].to_list() != rows:
                raise ValueError(f"imputations 0 and {k} differ in their rows (.id).")
        bare = [part.drop(IMPUTATION, ROW) for part in parts]
        mask = np.column_stack([_missing(bare[0][name]) for name in bare[0].columns])
        native = [_reset(part.to_native()) for part in bare]
        return cls(native[0], tuple(native[1:]), mask, {"source": "long table"})


def _backend(table: Any) -> Backend:
    if nw.dependencies.is_polars_dataframe(table):
        return "polars"
    return "pyarrow" if nw.dependencies.is_pyarrow_table(table) else "pandas"


def _long(table: Any, k: int) -> nw.DataFrame[Any]:
    """Return a table as a frame with its keys in front."""
    if isinstance(table, np.ndarray):
        columns = {f"x{j}": table[:, j] for j in range(table.shape[1])}
        frame = nw.from_dict(columns, backend="pandas")
    else:
        frame = nw.from_native(_reset(table), eager_only=True)
    numbers = {IMPUTATION: [k] * len(frame), ROW: list(range(1, len(frame) + 1))}
    keys = nw.from_dict(numbers, backend=frame.implementation)
    return nw.concat([keys, frame], how="horizontal")


def _cast(frame: nw.DataFrame[Any], schema: Mapping[str, Any]) -> nw.DataFrame[Any]:
    """Convert the columns whose dtype is not that of the schema."""
    wrong = {name: dtype for name, dtype in schema.items() if frame.schema[name] != dtype}
    return frame.with_columns(nw.col(name).cast(dtype) for name, dtype in wrong.items())


def _missing(series: nw.Series[Any]) -> NDArray[np.bool_]:
    missing: NDArray[np.bool_] = series.is_null().to_numpy().astype(bool)
    if series.dtype.is_float():
        missing = missing | np.isnan(series.to_numpy().astype(np.float64))
    return missing


def _reset(table: Any) -> Any:
    """Return a pandas frame with a default index; other tables have none."""
    return table.reset_index(drop=True) if nw.dependencies.is_pandas_dataframe(table) else table
