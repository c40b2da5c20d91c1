"""Base class of all imputers: tables in, tables out, scikit-learn's estimator contract."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data

from psmvae._caller import warn_at_caller
from psmvae._quiet import TORCH, load_libraries
from psmvae._version import __version__
from psmvae.imputers import checks, model_file
from psmvae.imputers.ambient import without_ambient_settings
from psmvae.imputers.batches import completed_batches
from psmvae.imputers.blocks import BLOCK_ROWS, BlockSeed, blocks
from psmvae.imputers.fit_warnings import ImproperDrawsWarning
from psmvae.imputers.reference import Reference
from psmvae.imputers.truncation import truncated_draws
from psmvae.multiple.imputation import MultipleImputation, copy_of
from psmvae.sources import is_source, open_source
from psmvae.sources.sample import sample_rows as sample_rows_of
from psmvae.table.codec import Codec, Encoded
from psmvae.table.completion import Completion
from psmvae.table.frames import Frame, array_names, open_table
from psmvae.table.libraries import is_arrow_table, is_pandas_frame
from psmvae.table.numbers import ABSENT, share
from psmvae.table.schema import Schema
from psmvae.table.sections import Section, as_html, shortened
from psmvae.training.progress import Progress

# Rows of a source that a fit uses.
SAMPLE_ROWS = 500_000

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Callback = Callable[[Progress], None]
# What libraries raise for a column that they cannot hold; a whole number may be too large.
_NOT_HELD = (ValueError, TypeError, NotImplementedError, OverflowError)
Kinds = Mapping[str, str | tuple[str, Sequence[Any]]]


class Imputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of every imputer.

    A subclass learns from and returns model values ``(row, column)``: standardised numbers or codes
    of levels, in the order of ``schema_.modelled``.

    Parameters
    ----------
    bounds : mapping of str to (low, high), optional
        Smallest and largest value that may be imputed in a numeric column; None is no bound. By
        default no negative value is imputed where none was observed, and whole numbers with at
        most 20 distinct values stay within the observed range. Draws are truncated to the bounds,
        single imputations clipped.
    derived : mapping of str to str, optional
        Formulas of columns that are left out of the model and computed from the other columns
        wherever one of these was filled, such as ``{"bmi": "wgt / (hgt / 100) ** 2"}``. A formula
        has column names, numbers, ``+ - * / **``, parentheses and the functions log, log10, log2,
        exp, sqrt, abs, min and max.
    handle_unknown : {"error", "missing"}, default="error"
        Whether a category that `fit` did not see raises an error or counts as missing.
    """

    kinds: Kinds | None
    bounds: Mapping[str, tuple[float | None, float | None]] | None
    derived: Mapping[str, str] | None
    handle_unknown: Literal["error", "missing"]
    random_state: int | np.random.RandomState | None

    # False for imputers that learn from numbers in the table's units
    standardises_input = True
    # what `fit` imports on first use
    _libraries: ClassVar[tuple[str, ...]] = TORCH
    # parameters of the paper that differ from the defaults
    _paper: ClassVar[Mapping[str, Any]] = {}

    schema_: Schema
    seed_: int
    n_rows_: int
    missing_rate_: Floats
    # distributions of the training table, to find columns that have changed since
    reference_: Reference
    # observed values that draws impute, by modelled column
    donors_: dict[int, Floats]
    # columns that the command line passes through unchanged; absent otherwise
    ignored_columns_: list[str]

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise TypeError or ValueError for a parameter out of its range."""

    @abstractmethod
    def _learn(self, encoded: Encoded, callback: Callback | None, began: float) -> bool:
        """Fit, and return whether Ctrl-C ended training early; `fit` was called at ``began``."""

    @abstractmethod
    def _points(self, x: Floats, m: Bools) -> Floats:
        """Return the expected value (the most probable level) of every cell, ``(row, column)``."""

    @abstractmethod
    def _draws(self, x: Floats, m: Bools, n: int, seed: BlockSeed) -> NDArray[Any]:
        """Return ``n`` joint draws of the missing cells of a block, ``(row, draw, column)``."""

    @abstractmethod
    def _facts(self) -> dict[str, Any]:
        """Return what `describe` adds for this class, as plain values."""

    @abstractmethod
    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the fitted state for a model file: arrays by name, and plain values."""

    @abstractmethod
    def _set_state(self, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        """Restore from `_state()`; parameters and schema are set."""

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """Return an imputer with the hyperparameters of the paper.

        Parameters
        ----------
        **overrides
            Parameters of the constructor that replace the paper's.

        Returns
        -------
        imputer
            An imputer that is not fitted yet.
        """
        return cls(**{**cls._paper, **overrides})

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        callback: Callback | None = None,
        sample_rows: int = SAMPLE_ROWS,
    ) -> Self:
        """Fit the imputer to a table with missing cells.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns), or a source of one
            A pandas or polars DataFrame, a pyarrow Table, a NumPy array or a list of rows. Or a
            source that need not fit into memory: paths of files, a pyarrow Dataset, a polars
            LazyFrame or an iterator of frames.
        y : ignored
            Present for API consistency.
        callback : callable, optional
            Called with a `Progress` after every epoch, by imputers that train in epochs.
        sample_rows : int, default=500_000
            Rows of a source to fit to: a uniform sample, and the rows with rare levels or the
            smallest or largest number of a column. It depends on `random_state`, and not on the
            order of files or the size of batches. A table in memory is used as a whole.

        Returns
        -------
        self
            The fitted imputer.
        """
        del y
        # imports on first use, above all that of PyTorch, count as time of the fit
        began = time.perf_counter()
        self._check_parameters()
        checks.whole_number("sample_rows", sample_rows, low=1)
        load_libraries(self._libraries)
        if is_source(X):
            X = self._sample_of(X, int(sample_rows))
        before = vars(self).copy()
        try:
            with without_ambient_settings():
                interrupted = self._learn(self._read(X), callback, began)
                self.donors_ = self._find_donors(X)
        except BaseException:
            # an earlier fit stays usable
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        if interrupted:
            warnings.warn(
                f"fit was interrupted after {getattr(self, 'n_epochs_', 0)} epochs. The imputer "
                "is fitted with the best weights so far.",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _sample_of(self, X: Any, n_rows: int) -> Any:
        """Return a table of the sampled rows of a source."""
        state = self.random_state
        seed = checks.seed("random_state", state) if isinstance(state, int | np.integer) else 0
        return sample_rows_of(open_source(X), n_rows, seed, levels=self.kinds or ())

    def _read(self, X: Any) -> Encoded:
        """Set the attributes that describe the training table and return its model values."""
        frame = open_table(X)
        codec = Codec.fit(frame, kinds=self.kinds, bounds=self.bounds, derived=self.derived)
        encoded = codec.encode(frame, standardise=self.standardises_input)
        validate_data(self, named(X), reset=True, skip_check_array=True)
        self.schema_ = codec.schema
        self.seed_ = checks.seed("random_state", self.random_state)
        self.n_rows_ = encoded.x.shape[0]
        self.missing_rate_ = 1 - encoded.m.mean(0)
        self.reference_ = Reference.of(self.schema_.modelled, encoded)
        # a callback may draw while the model is trained
        self.donors_ = {}
        return encoded

    def transform(self, X: Any, *, where: Any = None) -> Any:
        """Impute each missing cell by its expected value (its most probable level).

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            The same columns as in `fit`.
        where : table of bool of shape (n_rows, n_columns), optional
            True for the missing cells to fill; the others stay missing. A frame is matched by
            column names, and with pandas by its index; an array by position. By default all are
            filled.

        Returns
        -------
        table of shape (n_rows, n_columns)
            Of the type of X, or that of `set_output`. Observed cells are unchanged, except in
            derived columns.
        """
        with without_ambient_settings():
            frame, codec, encoded = self._open_table(X)
            x, m = encoded.x, encoded.m
            incomplete: Bools = np.asarray(~m.all(1))
            completion = Completion(frame, codec, self.schema_.names, incomplete, where)
            table = completion(self._points_by_block(x, m))
            completion.warn()
        container = _get_output_config("transform", self)["dense"]
        return table if container == "default" else in_container(table, container, self.schema_)

    def sample(
        self,
        X: Any,
        n: int = 20,
        *,
        where: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> list[Any]:
        """Draw ``n`` completed tables from p(x_mis | x_obs, m): multiple imputation.

        Draws come from the posterior predictive distribution. They are proper, and Rubin's rules
        apply, for imputers with latent variables with ``draws="proper"``, for `MICEImputer` and for
        `MeanImputer`: parameters are drawn too. Other draws keep the parameters fixed, so that
        intervals are too narrow, above all for few rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            The same columns as in `fit`.
        n : int, default=20
            Number of completed tables.
        where : table of bool of shape (n_rows, n_columns), optional
            True for the missing cells to fill; the others stay missing. A frame is matched by
            column names, and with pandas by its index; an array by position. By default all are
            filled.
        random_state : int, RandomState or None, default=None
            Seed of the draws. None gives the same tables at every call.

        Returns
        -------
        list of tables
            Each as `transform` returns it.
        """
        checks.whole_number("n", n, low=1)
        return self._complete(X, n, where, random_state)[0]

    def impute_multiple(
        self,
        X: Any,
        m: int = 20,
        *,
        where: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> MultipleImputation:
        """Draw the tables of `sample`, to be analysed and pooled by Rubin's rules.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            The same columns as in `fit`.
        m : int, default=20
            Number of completed tables.
        where : table of bool of shape (n_rows, n_columns), optional
            True for the missing cells to fill; the others stay missing. A frame is matched by
            column names, and with pandas by its index; an array by position. By default all are
            filled.
        random_state : int, RandomState or None, default=None
            Seed of the draws. None gives the same tables at every call.

        Returns
        -------
        MultipleImputation
            The completed tables; ``.analyse(...)`` applies an analysis to each.
        """
        checks.whole_number("m", m, low=1)
        self._check_fitted()
        if not self._draws_are_proper():
            warn_at_caller(ImproperDrawsWarning(type(self).__name__))
        tables, mask = self._complete(X, m, where, random_state)
        info: dict[str, Any] = {"imputer": type(self).__name__, "psmvae": __version__}
        for key, state in (("random_state", self.random_state), ("draws", random_state)):
            if isinstance(state, int | np.integer):
                info[key] = int(state)
        if self.schema_.formulas:
            info["derived"] = self.schema_.formulas
        if self.schema_.orders:
            info["levels"] = self.schema_.orders
        return MultipleImputation(copy_of(X), tuple(tables), mask, info)

    def _complete(self, X: Any, n: int, where: Any, random_state: Any) -> tuple[list[Any], Bools]:
        """Draw ``n`` completed tables; also return which cells were imputed."""
        with without_ambient_settings():
            frame, codec, encoded = self._open_table(X)
            x, m = encoded.x, encoded.m
            incomplete: Bools = np.asarray(~m.all(1))
            completion = Completion(
                frame, codec, self.schema_.names, incomplete, where, donors=self.donors_
            )
            drawn = self._draws_by_block(x, m, n, self._draw_seed(random_state))
            tables = [completion(drawn[:, k]) for k in range(n)]
            completion.warn()
        return tables, completion.mask

    def _points_by_block(self, x: Floats, m: Bools) -> Floats:
        """Return the expected values of the rows with a missing cell, ``(row, column)``.

        ``x, m`` ``(row, column)`` begin with a block of the table and end with a block or with the
        table. `blocks` says why rows are imputed in blocks.
        """
        parts = [np.zeros((0, x.shape[1]))]
        for _, block in blocks(len(x), self._block_rows()):
            rows = block.start + np.flatnonzero(~m[block].all(1))
            if rows.size:
                parts.append(self._points(x[rows], m[rows]))
        return np.concatenate(parts)

    def _draws_by_block(
        self, x: Floats, m: Bools, n: int, seed: int, first_block: int = 0
    ) -> NDArray[Any]:
        """Return draws of the rows with a missing cell, ``(row, draw, column)``.

        ``x, m`` are those of `_points_by_block`; their first row begins the block ``first_block``.
        """
        parts: list[NDArray[Any]] = []
        for number, block in blocks(len(x), self._block_rows()):
            rows = block.start + np.flatnonzero(~m[block].all(1))
            if rows.size:
                of_block, columns = BlockSeed(seed, first_block + number), self.schema_.modelled
                parts.append(truncated_draws(self._draws, columns, x[rows], m[rows], n, of_block))
        return np.concatenate(parts) if parts else np.zeros((0, n, x.shape[1]))

    def _draw_seed(self, random_state: Any) -> int:
        """Return the seed of draws, that of the fit for None."""
        if random_state is None:
            return self._seed(2)
        return checks.seed("random_state", random_state)

    def _block_rows(self) -> int:
        """Return the number of rows that are imputed together."""
        return BLOCK_ROWS["cpu"]

    def transform_batches(self, X: Any) -> Iterator[Any]:
        """Impute a table that need not fit into memory by expected values, batch by batch.

        The values are those of `transform` of the whole table, whatever the size of the batches.

        Parameters
        ----------
        X : source
            Paths of files, a pyarrow Dataset, a polars LazyFrame or an iterable of frames, with the
            same columns as in `fit`. Files are read in the order of their paths.

        Yields
        ------
        table
            The completed batches as they came in; pyarrow Tables for files and data sets.

        Warns
        -----
        DriftWarning
            After the last batch, of columns that differ strongly from the training table.

        Examples
        --------
        >>> import numpy as np
        >>> from psmvae import MeanImputer
        >>> batches = [np.array([[1.5, np.nan]]), np.array([[2.5, 4.0], [np.nan, 6.0]])]
        >>> imputer = MeanImputer().fit(iter(batches))
        >>> [batch.tolist() for batch in imputer.transform_batches(iter(batches))]
        [[[1.5, 5.0]], [[2.5, 4.0], [2.0, 6.0]]]
        """
        self._check_fitted()
        return (tables[0] for tables in completed_batches(self, open_source(X)))

    def sample_batches(
        self,
        X: Any,
        n: int = 20,
        *,
        random_state: int | np.random.RandomState | None = None,
    ) -> Iterator[list[Any]]:
        """Draw ``n`` completed tables of a table that need not fit into memory, batch by batch.

        The values are those of `sample` of the whole table, whatever the size of the batches.

        Parameters
        ----------
        X : source
            As in `transform_batches`.
        n : int, default=20
            Number of completed tables.
        random_state : int, RandomState or None, default=None
            Seed of the draws. None gives the same tables at every call.

        Yields
        ------
        list of tables
            The ``n`` completed tables of each batch.

        Warns
        -----
        DriftWarning
            As in `transform_batches`.

        Examples
        --------
        >>> import numpy as np
        >>> from psmvae import MeanImputer
        >>> table = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 5.0], [np.nan, 4.0]])
        >>> imputer = MeanImputer(random_state=0).fit(table)
        >>> whole = imputer.sample(table, n=2)
        >>> for batch in imputer.sample_batches(iter([table[:3], table[3:]]), n=2):
        ...     print([len(rows) for rows in batch])
        [3, 3]
        [1, 1]
        """
        checks.whole_number("n", n, low=1)
        self._check_fitted()
        seed = self._draw_seed(random_state)
        return completed_batches(self, open_source(X), int(n), seed)

    def save(self, path: Any) -> None:
        """Write the fitted imputer to a safetensors file.

        Parameters
        ----------
        path : path
            The file. An existing one is replaced when the new one is complete.

        See Also
        --------
        psmvae.load : Read the file.
        """
        model_file.save(self, path)

    def describe(self) -> dict[str, Any]:
        """Describe the fitted imputer.

        Returns
        -------
        dict
            Plain values that JSON can hold: version, class, columns with kinds and missing rates,
            and for deep imputers the resolved configuration and the validation error.
        """
        return model_file.describe(self)

    def _sections(self) -> list[Section]:
        """What the fitted imputer shows of itself below scikit-learn's diagram."""
        rates = {
            column.name: rate
            for column, rate in zip(self.schema_.modelled, self.missing_rate_, strict=True)
        }
        mechanism = getattr(self, "mechanism_", None)
        chosen = (
            {}
            if mechanism is None
            else {name: finding.chosen for name, finding in mechanism.findings.items()}
        )
        names = ["column", "kind", "missing", *(["missing by"] if chosen else [])]
        rows = []
        for column in sorted(self.schema_.columns, key=lambda one: -rates.get(one.name, 1.0)):
            cells = [column.name, column.kind, share(rates.get(column.name, 1.0))]
            rows.append(cells + ([chosen.get(column.name, ABSENT)] if chosen else []))
        title = f"Fitted on {self.n_rows_:,} rows and {len(rows):,} columns"
        return [shortened(Section(title, [names, *rows], []), "describe()")]

    def _repr_html_inner(self) -> str:
        # scikit-learn imports rich for its diagram, and rich draws a random number on import
        load_libraries(("rich.progress",))
        diagram: str = super()._repr_html_inner()
        fitted = hasattr(self, "missing_rate_")
        return diagram + as_html(self._sections()) if fitted else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        # absent where scikit-learn is set to show text only
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def __sklearn_tags__(self) -> Tags:
        """Declare that NaN, strings and categories are accepted."""
        tags = super().__sklearn_tags__()
        accepted = tags.input_tags
        accepted.allow_nan = accepted.string = accepted.categorical = True
        return tags

    def _check_shared(self) -> None:
        """Check the parameters that every imputer has."""
        checks.choice("handle_unknown", self.handle_unknown, ("error", "missing"))
        meanings = {"kinds": "their kinds", "bounds": "(low, high)", "derived": "formulas"}
        for name, meaning in meanings.items():
            if not isinstance(value := getattr(self, name), Mapping | None):
                raise TypeError(
                    f"{name} must map names of columns to {meaning}, or be None, got {value!r}."
                )

    def _draws_are_proper(self) -> bool:
        """Return whether draws include the uncertainty of the parameters."""
        return False

    def _draws_donors(self) -> bool:
        """Return whether all draws of numeric columns are observed values."""
        return False

    def _find_donors(self, X: Any) -> dict[int, Floats]:
        """Return the observed values that draws impute, by modelled column."""
        if not self._draws_donors():
            return {}
        from psmvae.imputers.donors import donor_values

        return donor_values(self.chains_, open_table(X))

    def _seed(self, purpose: int) -> int:
        """Return the seed of one purpose, derived from `seed_`."""
        return self.seed_ + 7919 * purpose

    def _check_fitted(self) -> None:
        check_is_fitted(self, "missing_rate_")

    def _open_table(self, X: Any) -> tuple[Frame, Codec, Encoded]:
        """Open a table once and return it with the codec of its columns and its model values."""
        self._check_fitted()
        frame = open_table(X)
        codec = self._codec(frame)
        encoded = codec.encode(
            frame, handle_unknown=self.handle_unknown, standardise=self.standardises_input
        )
        self._warn_of_names(X)
        return frame, codec, encoded

    def _encode(self, X: Any) -> tuple[Floats, Bools]:
        encoded = self._open_table(X)[2]
        return encoded.x, encoded.m

    def _codec(self, frame: Frame) -> Codec:
        """Match columns by name, or by position where `fit` saw an array."""
        names, given = self.schema_.names, frame.names
        by_name = hasattr(self, "feature_names_in_") or names != array_names(len(given))
        if by_name or set(names) == set(given):
            return Codec(self.schema_)
        return Codec(self.schema_.renamed(given))

    def _warn_of_names(self, X: Any) -> None:
        """Warn, as scikit-learn does, if only one of X and the training table has column names."""
        name = type(self).__name__
        labels = getattr(X, "column_names", getattr(X, "columns", ()))
        labelled = len(labels) > 0 and all(isinstance(label, str) for label in labels)
        if labelled == hasattr(self, "feature_names_in_"):
            return
        message = f"X does not have valid feature names, but {name} was fitted with feature names"
        if labelled:
            message = f"X has feature names, but {name} was fitted without feature names"
        warn_at_caller(UserWarning(message))


def named(X: Any) -> Any:
    """Return X as scikit-learn's `validate_data` expects it: a frame, or an array."""
    if isinstance(X, nw.DataFrame):
        # the names of its columns are known to newer versions of scikit-learn only
        X = X.to_native()
    return X if hasattr(X, "columns") or hasattr(X, "column_names") else np.asarray(X)


def in_container(table: Any, container: Literal["pandas", "polars"], schema: Schema) -> Any:
    """Convert to a "pandas" or "polars" frame with its dtypes, columns in the order of `fit`.

    scikit-learn then overwrites the column names, so their order must be that of `fit`. Arrays of
    numbers are left to scikit-learn's own conversion.
    """
    if isinstance(table, np.ndarray):
        if table.dtype != object:
            return table
        columns = {name: table[:, j].tolist() for j, name in enumerate(schema.names)}

        def convert(names: Sequence[str]) -> Any:
            chosen = {name: columns[name] for name in names}
            return nw.from_dict(chosen, backend=container).to_native()

        return _converted(dict.fromkeys(schema.names, "object"), convert, container)
    names = open_table(table).names
    wanted = schema.names if set(names) == set(schema.names) else names
    position = {name: at for at, name in enumerate(names)}
    order = [position[name] for name in wanted]
    if is_pandas_frame(table):
        table = table.iloc[:, order]
        if container == "pandas":
            return table
        # labels of pandas need not be strings
        frame = nw.from_native(table.set_axis(list(wanted), axis=1), eager_only=True)
    else:
        if is_arrow_table(table):
            from psmvae.table.frame_arrow import without_views

            table = without_views(table)
        frame = nw.from_native(table, eager_only=True)[:, order]

    def select(names: Sequence[str]) -> Any:
        part = frame if len(names) == len(wanted) else frame.select(*names)
        return part.to_pandas() if container == "pandas" else part.to_polars()

    return _converted(frame.schema, select, container)


def _converted(
    dtypes: Mapping[str, Any], convert: Callable[[Sequence[str]], Any], container: str
) -> Any:
    """Return the converted columns; raise TypeError with those that another library cannot hold."""
    try:
        return convert(list(dtypes))
    except _NOT_HELD as error:
        wrong = [name for name in dtypes if not _can_convert(name, convert)]
        listed = ", ".join(f"{name!r} ({dtypes[name]})" for name in wrong)
        raise TypeError(
            f"set_output(transform={container!r}) cannot hold column {listed}; convert it first, "
            "or use set_output(transform='default')"
        ) from error


def _can_convert(name: str, convert: Callable[[Sequence[str]], Any]) -> bool:
    try:
        convert([name])
    except _NOT_HELD:
        return False
    return True
