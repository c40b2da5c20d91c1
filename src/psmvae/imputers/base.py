"""What all imputers share: tables in, tables out, the contract of scikit-learn."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data

from psmvae.imputers import checks
from psmvae.imputers.output import in_container
from psmvae.table.codec import Codec, Encoded
from psmvae.table.frames import array_names, open_table
from psmvae.table.schema import Schema
from psmvae.training.progress import Progress

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Callback = Callable[[Progress], None]


class Imputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of every imputer: a subclass learns from model values and fills in model values.

    Model values are standardised numbers or codes of levels, ``(row, column)``, columns in the
    order of ``schema_.modelled``.
    """

    kinds: Mapping[str, str] | None
    handle_unknown: Literal["error", "missing"]
    random_state: int | np.random.RandomState | None

    # False for imputers that learn from the table's own numbers
    learns_from_standardised = True

    schema_: Schema
    seed_: int
    n_rows_: int
    missing_rate_: Floats
    # columns that the command line set aside; not there otherwise
    ignored_columns_: list[str]

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise for any parameter out of its range."""

    @abstractmethod
    def _learn(self, encoded: Encoded, callback: Callback | None, began: float) -> bool:
        """Set all that is learned; say whether Ctrl-C cut it short.

        ``began`` is when `fit` was called, by `time.perf_counter`.
        """

    @abstractmethod
    def _points(self, x: Floats, m: Bools) -> Floats:
        """The expected value (the most probable level) of every cell, ``(row, column)``."""

    @abstractmethod
    def _draws(self, x: Floats, m: Bools, n: int, seed: int) -> NDArray[Any]:
        """``n`` joint draws of the missing cells, ``(row, draw, column)``."""

    @abstractmethod
    def _facts(self) -> dict[str, Any]:
        """What `describe` tells of the fitted model, ready for JSON."""

    @abstractmethod
    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a file must hold beside the parameters: arrays by name, and plain values."""

    @abstractmethod
    def _set_state(self, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        """Become what `_state` told; parameters and schema are set."""

    def fit(self, X: Any, y: Any = None, *, callback: Callback | None = None) -> Self:
        """Learn from a table with holes.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            A pandas, polars or pyarrow frame or an array.
        y : ignored
            Here for scikit-learn's sake.
        callback : callable, optional
            Called with a `Progress` after every epoch, by imputers that have epochs.

        Returns
        -------
        self
        """
        del y
        # what is loaded on first use, PyTorch above all, is part of a user's time
        began = time.perf_counter()
        self._check_parameters()
        before = vars(self).copy()
        try:
            interrupted = self._learn(self._read(X), callback, began)
        except BaseException:
            # what was learned before stays usable
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        if interrupted:
            warnings.warn(
                f"fit was interrupted after {getattr(self, 'n_epochs_', 0)} epochs; the imputer is "
                "usable, with the best weights so far.",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _read(self, X: Any) -> Encoded:
        """Set what a table tells before anything is learned from it, and return its cells."""
        codec = Codec.fit(X, kinds=self.kinds)
        encoded = codec.encode(X, standardise=self.learns_from_standardised)
        validate_data(self, named(X), reset=True, skip_check_array=True)
        self.schema_ = codec.schema
        self.seed_ = checks.seed("random_state", self.random_state)
        self.n_rows_ = encoded.x.shape[0]
        self.missing_rate_ = 1 - encoded.m.mean(0)
        return encoded

    def transform(self, X: Any) -> Any:
        """Fill each missing cell with its expected value (its most probable level).

        Parameters
        ----------
        X : table
            The same columns as at fit.

        Returns
        -------
        table
            As X, without holes; in the container `set_output` asks for, if it does.
        """
        x, m = self._encode(X)
        filled = np.zeros(x.shape)
        holes = ~m.all(1)
        if holes.any():
            filled[holes] = self._points(x[holes], m[holes])
        table = self._codec(X).fill(X, filled)
        container = _get_output_config("transform", self)["dense"]
        return table if container == "default" else in_container(table, container, self.schema_)

    def sample(
        self, X: Any, n: int = 20, *, random_state: int | np.random.RandomState | None = None
    ) -> list[Any]:
        """Multiple imputation: ``n`` completed tables, each a draw from p(x_mis | x_obs, m).

        The deep imputers draw from the fitted model, as if its weights were known. What is
        uncertain of these is left out, so means and slopes differ too little between the tables and
        intervals by Rubin's rules are too narrow, the more so the fewer rows there are. Members
        trained with ``bootstrap=True``, as many as draws, put it in. The draws of `MICEImputer`
        and `MeanImputer` have their parameters drawn too.

        Parameters
        ----------
        X : table
            The same columns as at fit.
        n : int
            Number of completed tables.
        random_state : int, RandomState or None
            None draws the same tables at every call.

        Returns
        -------
        list of tables
        """
        checks.whole_number("n", n, low=1)
        x, m = self._encode(X)
        holes = ~m.all(1)
        given = random_state is not None
        seed = checks.seed("random_state", random_state) if given else self._seed(2)
        drawn = np.zeros((0, n, x.shape[1]))
        if holes.any():
            drawn = self._draws(x[holes], m[holes], n, seed)
        codec, tables = self._codec(X), []
        for k in range(n):
            filled = np.zeros(x.shape)
            filled[holes] = drawn[:, k]
            tables.append(codec.fill(X, filled))
        return tables

    def save(self, path: Any) -> None:
        """Write the fitted imputer to a safetensors file; `psmvae.load` reads it."""
        from psmvae.imputers.persist import save

        save(self, path)

    def describe(self) -> dict[str, Any]:
        """Facts about the fitted imputer, ready for JSON."""
        from psmvae.imputers.persist import describe

        return describe(self)

    def __sklearn_tags__(self) -> Tags:
        """NaN, strings and categories are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _check_shared(self) -> None:
        """Check the parameters that every imputer has."""
        checks.choice("handle_unknown", self.handle_unknown, ("error", "missing"))
        if self.kinds is not None and not isinstance(self.kinds, Mapping):
            raise TypeError(
                f"kinds must map names of columns to their kinds, or be None, got {self.kinds!r}."
            )

    def _seed(self, purpose: int) -> int:
        """Seeds for different purposes, from the one drawn at fit."""
        return self.seed_ + 7919 * purpose

    def _check_fitted(self) -> None:
        check_is_fitted(self, "missing_rate_")

    def _encode(self, X: Any) -> tuple[Floats, Bools]:
        self._check_fitted()
        encoded = self._codec(X).encode(
            X, handle_unknown=self.handle_unknown, standardise=self.learns_from_standardised
        )
        self._warn_of_names(X)
        return encoded.x, encoded.m

    def _codec(self, X: Any) -> Codec:
        """Finds the columns of X by name, or by position where the fitted table was an array."""
        names, given = self.schema_.names, open_table(X).names
        by_name = hasattr(self, "feature_names_in_") or names != array_names(len(given))
        if by_name or set(names) == set(given):
            return Codec(self.schema_)
        return Codec(self.schema_.renamed(given))

    def _warn_of_names(self, X: Any) -> None:
        """Say, as scikit-learn does, when only one of X and the fitted table has column names."""
        name = type(self).__name__
        labels = getattr(X, "column_names", getattr(X, "columns", ()))
        labelled = len(labels) > 0 and all(isinstance(label, str) for label in labels)
        if labelled and not hasattr(self, "feature_names_in_"):
            message = f"X has feature names, but {name} was fitted without feature names"
        elif not labelled and hasattr(self, "feature_names_in_"):
            message = (
                f"X does not have valid feature names, but {name} was fitted with feature names"
            )
        else:
            return
        warnings.warn(message, UserWarning, stacklevel=4)


def named(X: Any) -> Any:
    """X as scikit-learn reads its feature names and width: frames as they are, others as arrays."""
    return X if hasattr(X, "columns") or hasattr(X, "column_names") else np.asarray(X)
