"""The classical imputers: mean and MissForest, and the base of MICE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from psmvae._quiet import WITH_CHAINS
from psmvae.imputers import checks
from psmvae.imputers.base import Bools, Callback, Floats, Imputer, Kinds
from psmvae.imputers.blocks import BlockSeed
from psmvae.imputers.chains_file import add_mechanism, take_mechanism
from psmvae.imputers.docstrings import complete
from psmvae.imputers.matrix import Matrix
from psmvae.imputers.nonignorable import (
    check_setting,
    mechanism_facts,
    questions_of,
    warn_of_complete,
    warn_of_unused,
)
from psmvae.mechanism.settings import SelfMask
from psmvae.table.codec import Encoded

if TYPE_CHECKING:
    from psmvae.imputers.chain import Chain

# Rows in which explanations of the masks are compared at most: each needs 6 kB for each column.
MAX_MASK_ROWS = 20_000


@dataclass(kw_only=True, repr=False, eq=False)
class MatrixImputer(Imputer):
    """Base of the imputers that work on a matrix of numbers.

    Parameters
    ----------
    kinds : mapping of str to str or tuple, optional
        Kinds of columns that should not be inferred: "real", "positive", "integer", "count",
        "binary", "ordinal" or "categorical".
        Levels may follow in their order: ``"ordinal:low,middle,high"`` or
        ``("ordinal", ["low", "middle", "high"])``.
    random_state : int, RandomState or None, default=None
        Seed. The same integer gives the same result.

    Attributes
    ----------
    schema_ : Schema
        Name, kind and scale of each column.
    missing_rate_ : ndarray
        Fraction of missing cells of each modelled column.
    n_rows_ : int
        Number of rows of the training table.
    seed_ : int
        Seed drawn from `random_state`.
    matrix_ : Matrix
        Encoding of the table as a matrix of numbers.
    """

    kinds: Kinds | None = None
    bounds: Mapping[str, tuple[float | None, float | None]] | None = None
    derived: Mapping[str, str] | None = None
    handle_unknown: Literal["error", "missing"] = "error"
    random_state: int | np.random.RandomState | None = None

    standardises_input = False
    # largest number of a column that is not standardised; standardised cells are clipped to _limit,
    # so that their squares do not overflow
    _largest: ClassVar[float] = 1e150
    _limit: ClassVar[float] = 1e100

    def _check_parameters(self) -> None:
        self._check_shared()

    def _fit_matrix(self, encoded: Encoded) -> Floats:
        """Learn the matrix encoding of the training table and apply it."""
        columns = self.schema_.modelled
        self.matrix_ = Matrix.fit(columns, encoded.x, encoded.m, standardise=self._standardises())
        return self._encode_matrix(encoded.x, encoded.m)

    def _encode_matrix(self, x: Floats, m: Bools) -> Floats:
        """Encode cells as a matrix, clipped where it is standardised."""
        if not self._standardises():
            self._check_range(x, m)
        with np.errstate(over="ignore"):
            opened = self.matrix_.encode(x, m)
        return np.clip(opened, -self._limit, self._limit) if self._standardises() else opened

    def _check_range(self, x: Floats, m: Bools) -> None:
        """Raise ValueError for numbers whose squares overflow if they are not standardised."""
        largest = np.where(m, np.abs(x), 0.0).max(0, initial=0.0)
        for column, value in zip(self.schema_.modelled, largest, strict=True):
            if value > self._largest:
                raise ValueError(
                    f"column {column.name!r} holds numbers as large as {value:g}, at most "
                    f"{self._largest:g} are possible with standardise=False; rescale it, or use "
                    "standardise=True"
                )

    def _standardises(self) -> bool:
        return True

    def _facts(self) -> dict[str, Any]:
        return {}

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        matrix = self.matrix_
        arrays = {"center": matrix.center, "scale": matrix.scale, "lowest": matrix.lowest}
        return {f"matrix.{name}": value for name, value in arrays.items()}, {}

    def _set_state(self, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        del plain
        parts = [arrays[f"matrix.{name}"].numpy() for name in ("center", "scale", "lowest")]
        self.matrix_ = Matrix(self.schema_.modelled, *parts)
        size = (len(self.matrix_.group),)
        for name, part, sizes in (
            ("center", parts[0], size),
            ("scale", parts[1], size),
            ("lowest", parts[2], (len(self.schema_.modelled),)),
        ):
            checks.shape(f"matrix.{name}", part, sizes)
            if part.dtype.kind != "f":
                raise ValueError(f"matrix.{name} must be numbers, got {part.dtype}.")
        if not (self.matrix_.scale > 0).all():
            raise ValueError("matrix.scale must be positive.")


@complete
@dataclass(kw_only=True, repr=False, eq=False)
class MeanImputer(MatrixImputer):
    """Impute the mean of each column, or the most frequent level of a column with levels.

    `sample` draws the mean and variance (the level probabilities) of each column from their
    posterior and then the cells. The draws are proper multiple imputations if cells are missing
    completely at random and columns are independent.

    Attributes
    ----------
    mean_, deviation_, count_ : ndarray
        Mean, standard deviation and number of observed cells of each matrix column.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import MeanImputer
    >>> MeanImputer().fit_transform(np.array([[1.5, 2.0], [2.5, np.nan], [np.nan, 4.0]]))
    array([[1.5, 2. ],
           [2.5, 3. ],
           [2. , 4. ]])
    """

    def _learn(self, encoded: Encoded, callback: Callback | None, began: float) -> bool:
        del callback, began
        values = self._fit_matrix(encoded)
        self.mean_ = np.nanmean(values, axis=0)
        self.deviation_ = np.nanstd(values, axis=0)
        self.count_ = (~np.isnan(values)).sum(0).astype(np.float64)
        return False

    def _points(self, x: Floats, m: Bools) -> Floats:
        del m
        return self.matrix_.decode(np.tile(self.mean_, (len(x), 1)))

    def _draws_are_proper(self) -> bool:
        return True

    def _draws(self, x: Floats, m: Bools, n: int, seed: BlockSeed) -> NDArray[Any]:
        del m
        matrix, count = self.matrix_, self.count_
        # the parameters of a completed table are those of all its blocks
        rng, noise = np.random.default_rng([seed.table, 1]), np.random.default_rng(seed.cells)
        freedom = np.maximum(count - 1, 1.0)
        # of other columns, whose numbers may be of any size, no levels are drawn
        is_level = matrix.is_indicator
        center, scale = np.where(is_level, [matrix.center, matrix.scale], [[0.0], [1.0]])
        seen = np.where(is_level, np.clip((self.mean_ * scale + center) * count, 0.0, None), 1.0)
        drawn = np.empty((len(x), n, x.shape[1]))
        for k in range(n):
            shape = (len(x), len(count))
            deviation = self.deviation_ * np.sqrt(count / rng.chisquare(freedom))
            mean = self.mean_ + deviation / np.sqrt(count) * rng.normal(size=len(count))
            numbers = mean + deviation * noise.normal(size=shape)
            # level probabilities by the Bayesian bootstrap, a Dirichlet with the levels' counts;
            # the argmax of log probability + Gumbel noise is a draw of a level
            share = np.clip(rng.standard_gamma(seen), 1e-300, None)
            levels = (np.log(share) + noise.gumbel(size=shape) - center) / scale
            drawn[:, k] = matrix.decode(np.where(is_level, levels, numbers))
        return drawn

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, plain = super()._state()
        own = {"mean": self.mean_, "deviation": self.deviation_, "count": self.count_}
        return {**arrays, **own}, plain

    def _set_state(self, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        super()._set_state(arrays, plain)
        for name in ("mean", "deviation", "count"):
            checks.shape(name, arrays[name], self.matrix_.center.shape)
            setattr(self, f"{name}_", arrays[name].numpy())


@dataclass(kw_only=True, repr=False, eq=False)
class ChainImputer(MatrixImputer):
    """Base of the imputers by chained equations.

    Parameters
    ----------
    max_iter : int, default=10
        Maximum number of rounds over the columns.
    tol : float, default=1e-3
        Stop when no cell changes in a round by more than this fraction of the largest value.
    n_nearest_features : int or None, default=200
        Number of columns that predict a column: those most correlated with it, where each level of
        a categorical column counts as one. None uses all, and the time grows with the square of the
        number of columns or faster.
    standardise : bool, default=True
        Standardise each column by its observed mean and standard deviation first, as the paper
        does. False passes the numbers to scikit-learn's `IterativeImputer` unchanged.
    mask_model : {"none", "auto", "self"} or SelfMask, default="none"
        Why cells are missing. "none": missing at random. "auto": for each column, two explanations
        of its mask are compared: its own value and the other columns. Where the value is chosen,
        imputations are corrected for it; see `mechanism_`.
        "self": the value of each cell decides whether it is missing; `SelfMask` says so for some
        columns.

    Attributes
    ----------
    n_iter_ : int
        Rounds of the fit.
    chain_ : Chain
        The fitted chain of equations, which gives conditional means.
    mechanism_ : Mechanism or None
        What explains the masks of each column with missing cells; None with ``mask_model="none"``.
    """

    max_iter: int = 10
    tol: float = 1e-3
    n_nearest_features: int | None = 200
    standardise: bool = True
    mask_model: str | SelfMask = "none"

    _libraries = WITH_CHAINS
    _estimator: ClassVar[Literal["ridge", "trees"]]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_setting(self.mask_model)
        checks.whole_number("max_iter", self.max_iter, low=1)
        checks.number("tol", self.tol, 0.0)
        if self.n_nearest_features is not None:
            checks.whole_number("n_nearest_features", self.n_nearest_features, low=1)
        checks.yes_or_no("standardise", self.standardise)

    def _standardises(self) -> bool:
        return bool(self.standardise)

    def _fit_chain(self, encoded: Encoded, **options: Any) -> Chain:
        from psmvae.imputers.chain import Chain

        x = self._fit_matrix(encoded)
        options |= {"max_iter": int(self.max_iter), "tol": float(self.tol)}
        n_nearest = self.n_nearest_features
        options["n_nearest_features"] = None if n_nearest is None else int(n_nearest)
        options |= {"estimator": self._estimator, "groups": self.matrix_.group}
        return Chain.fit(x, seed=self.seed_, **options)

    @property
    def n_iter_(self) -> int:
        """Rounds of the fit."""
        return self.chain_.n_rounds

    def _points(self, x: Floats, m: Bools) -> Floats:
        points = self.matrix_.decode(self.chain_.transform(self._encode_matrix(x, m)))
        if self.mechanism_ is None or not self.mechanism_.tilts:
            return points
        return self.mechanism_.correct(points, *self._predictions(x, m))

    def _predictions(self, x: Floats, m: Bools) -> tuple[Floats, Bools, Any]:
        """Return model values, mask and predictions of the missing cells by the mechanism."""
        mechanism: Any = self.mechanism_
        values = self._model_values(x, m)
        return values, m, mechanism.predict(values, m)

    def _fit_mechanism(self, encoded: Encoded, n_jobs: int | None = None) -> None:
        """Fit the mechanism that `mask_model` asks for."""
        from psmvae.imputers.proper import sample_rows
        from psmvae.mechanism.table import Mechanism

        self.mechanism_: Mechanism | None = None
        columns, m = tuple(self.schema_.modelled), encoded.m
        questions = questions_of(self.mask_model, columns, m)
        warn_of_complete(self.mask_model, columns, m)
        if questions:
            sample, _ = sample_rows(encoded, None, MAX_MASK_ROWS, self._seed(6))
            x = self._model_values(sample.x, sample.m)
            self.mechanism_ = Mechanism.fit_gaussian(
                columns, x, sample.m, questions, seed=self._seed(6), n_jobs=n_jobs
            )
            warn_of_unused(self.mask_model, self.mechanism_, m)

    def _tilts(self) -> dict[int, Any]:
        return {} if self.mechanism_ is None else self.mechanism_.log_odds

    def _model_values(self, x: Floats, m: Bools) -> Floats:
        """Return the model values of cells in the table's units, 0 where missing."""
        from psmvae.kinds import KINDS

        values = np.zeros(x.shape)
        for j, column in enumerate(self.schema_.modelled):
            kind, seen = KINDS[column.kind], m[:, j]
            with np.errstate(over="ignore"):
                standard = kind.standardise(x[seen, j], column)
            values[seen, j] = np.clip(standard, -kind.limit, kind.limit)
        return values

    def _facts(self) -> dict[str, Any]:
        return {
            "n_rounds": self.chain_.n_rounds,
            "converged": self.chain_.converged,
            **mechanism_facts(self.mechanism_),
        }

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, plain = super()._state()
        arrays |= {f"chain.{name}": value for name, value in self.chain_.arrays().items()}
        return add_mechanism(arrays, plain | {"chain": self.chain_.facts()}, self.mechanism_)

    def _set_state(self, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        from psmvae.imputers.chain import Chain

        super()._set_state(arrays, plain)
        self.mechanism_ = take_mechanism(self.schema_.modelled, arrays, plain)
        own = part_of(arrays, "chain.")
        self.chain_ = Chain.from_arrays(own, plain["chain"])
        checks.shape("chain.fill", own["fill"], self.matrix_.center.shape)
        if self.chain_.estimator != self._estimator or set(own) != set(self.chain_.arrays()):
            raise ValueError(f"The chain is not one of {type(self).__name__}.")


@complete
@dataclass(kw_only=True, repr=False, eq=False)
class MissForestImputer(ChainImputer):
    """Impute missing values by chained forests: trees predict each column from all others.

    Fitted by scikit-learn's `IterativeImputer` with `ExtraTreesRegressor`. Cells are assumed to be
    missing at random, unless `mask_model` says otherwise. A column of levels is predicted through
    one indicator for each level. `sample` uses the prediction of one randomly drawn tree for each
    cell. This is not proper multiple imputation: intervals by Rubin's rules are too narrow.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees of each forest.
    n_jobs : int or None, default=-1
        Number of cores that grow trees. -1 uses all.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import MissForestImputer
    >>> table = np.array([[1.0, 1.0], [1.0, np.nan], [5.0, 9.0], [5.0, 9.0]])
    >>> MissForestImputer(random_state=0).fit_transform(table)[1]
    array([1., 1.])
    """

    _estimator = "trees"
    # scikit-learn's trees compare in float32
    _largest: ClassVar[float] = 1e38
    _limit: ClassVar[float] = 1e38

    n_estimators: int = 10
    n_jobs: int | None = -1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.whole_number("n_estimators", self.n_estimators, low=1)
        if self.n_jobs is not None and self.n_jobs != -1:
            checks.whole_number("n_jobs", self.n_jobs, low=1)

    def _learn(self, encoded: Encoded, callback: Callback | None, began: float) -> bool:
        del callback, began
        forest = {"n_estimators": int(self.n_estimators), "n_jobs": self.n_jobs}
        self.chain_ = self._fit_chain(encoded, **forest)
        self._fit_mechanism(encoded, self.n_jobs)
        return False

    def _draws(self, x: Floats, m: Bools, n: int, seed: BlockSeed) -> NDArray[Any]:
        rng, opened = np.random.default_rng(seed.cells), self._encode_matrix(x, m)
        each = [self.matrix_.decode(self.chain_.draw(opened, rng)) for _ in range(n)]
        drawn = np.stack(each, axis=1)
        if self.mechanism_ is None or not self.mechanism_.drawn_tilts:
            return drawn
        return self.mechanism_.redraw(drawn, *self._predictions(x, m), seed.cells)


def part_of(arrays: Mapping[str, Any], prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a model file whose names have this prefix, without it."""
    names = [name for name in arrays if name.startswith(prefix)]
    return {name.removeprefix(prefix): arrays[name].numpy() for name in names}
