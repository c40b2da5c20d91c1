"""The classical imputers: mean, MICE and MissForest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from psmvae.imputers import checks
from psmvae.imputers.base import Bools, Callback, Floats, Imputer, Kinds
from psmvae.imputers.docstrings import complete
from psmvae.imputers.matrix import Matrix
from psmvae.table.codec import Encoded

if TYPE_CHECKING:
    from psmvae.imputers.chain import Chain

# Standardised cells are clipped here, so that their squares do not overflow.
LIMIT = 1e100


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

    def _check_parameters(self) -> None:
        self._check_shared()

    def _fit_matrix(self, encoded: Encoded) -> Floats:
        """Learn the matrix encoding of the training table and apply it."""
        columns = self.schema_.modelled
        self.matrix_ = Matrix.fit(columns, encoded.x, encoded.m, standardise=self._standardises())
        return self._encode_matrix(encoded.x, encoded.m)

    def _encode_matrix(self, x: Floats, m: Bools) -> Floats:
        """Encode cells as a matrix, clipped to LIMIT where it is standardised."""
        with np.errstate(over="ignore"):
            opened = self.matrix_.encode(x, m)
        return np.clip(opened, -LIMIT, LIMIT) if self._standardises() else opened

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

    def _draws(self, x: Floats, m: Bools, n: int, seed: int) -> NDArray[Any]:
        del m
        rng, matrix, count = np.random.default_rng(seed), self.matrix_, self.count_
        freedom = np.maximum(count - 1, 1.0)
        drawn = np.empty((len(x), n, x.shape[1]))
        for k in range(n):
            shape = (len(x), len(count))
            deviation = self.deviation_ * np.sqrt(count / rng.chisquare(freedom))
            mean = self.mean_ + deviation / np.sqrt(count) * rng.normal(size=len(count))
            numbers = mean + deviation * rng.normal(size=shape)
            # level probabilities by the Bayesian bootstrap, a Dirichlet with the levels' counts;
            # the argmax of log probability + Gumbel noise is a draw of a level
            seen = np.clip((self.mean_ * matrix.scale + matrix.center) * count, 0.0, None)
            share = np.clip(rng.standard_gamma(seen), 1e-300, None)
            levels = (np.log(share) + rng.gumbel(size=shape) - matrix.center) / matrix.scale
            drawn[:, k] = matrix.decode(np.where(matrix.is_indicator, levels, numbers))
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
    standardise : bool, default=True
        Standardise each column by its observed mean and standard deviation first, as the paper
        does. False passes the numbers to scikit-learn's `IterativeImputer` unchanged.

    Attributes
    ----------
    n_iter_ : int
        Rounds fitted, the maximum over chains.
    chains_ : list of Chain
        The fitted chains of equations.
    """

    max_iter: int = 10
    tol: float = 1e-3
    standardise: bool = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.whole_number("max_iter", self.max_iter, low=1)
        checks.number("tol", self.tol, 0.0)
        checks.yes_or_no("standardise", self.standardise)

    def _standardises(self) -> bool:
        return bool(self.standardise)

    def _fit_chains(self, encoded: Encoded, n_chains: int, **options: Any) -> list[Chain]:
        from psmvae.imputers.chain import Chain

        x = self._fit_matrix(encoded)
        options |= {"max_iter": int(self.max_iter), "tol": float(self.tol)}
        seeds = [(self.seed_ + k) % 2**31 for k in range(n_chains)]
        return [Chain.fit(x, seed=seed, groups=self.matrix_.group, **options) for seed in seeds]

    @property
    def n_iter_(self) -> int:
        """Rounds fitted, the maximum over chains."""
        return max(chain.n_rounds for chain in self.chains_)

    def _points(self, x: Floats, m: Bools) -> Floats:
        return self.matrix_.decode(self.chains_[0].transform(self._encode_matrix(x, m)))

    def _draws(self, x: Floats, m: Bools, n: int, seed: int) -> NDArray[Any]:
        rng, opened = np.random.default_rng(seed), self._encode_matrix(x, m)
        chains = self.chains_
        drawn = [self.matrix_.decode(chains[k % len(chains)].draw(opened, rng)) for k in range(n)]
        return np.stack(drawn, axis=1)

    def _facts(self) -> dict[str, Any]:
        rounds = [chain.n_rounds for chain in self.chains_]
        converged = [chain.converged for chain in self.chains_]
        return {"n_chains": len(rounds), "n_rounds": rounds, "converged": converged}

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, plain = super()._state()
        for k, chain in enumerate(self.chains_):
            arrays |= {f"chain{k}.{name}": value for name, value in chain.arrays().items()}
        return arrays, plain | {"chains": [chain.facts() for chain in self.chains_]}

    def _set_state(self, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        from psmvae.imputers.chain import Chain

        super()._set_state(arrays, plain)
        self.chains_: list[Chain] = []
        for k, facts in enumerate(plain["chains"]):
            prefix = f"chain{k}."
            names = [name for name in arrays if name.startswith(prefix)]
            own = {name.removeprefix(prefix): arrays[name].numpy() for name in names}
            self.chains_.append(Chain.from_arrays(own, facts))
            checks.shape(f"{prefix}fill", own["fill"], self.matrix_.center.shape)
        n_arrays = sum(name.startswith("chain") for name in arrays)
        if not self.chains_ or n_arrays != sum(len(chain.arrays()) for chain in self.chains_):
            raise ValueError(f"The arrays are not those of {len(self.chains_)} chains.")


@complete
@dataclass(kw_only=True, repr=False, eq=False)
class MICEImputer(ChainImputer):
    """Impute missing values by chained equations: each column is regressed on all others.

    Fitted by scikit-learn's `IterativeImputer` with `BayesianRidge`. Cells are assumed to be
    missing at random and columns to depend linearly on one another.

    Parameters
    ----------
    sample_posterior : bool, default=False
        Impute draws from the posterior predictive distribution during `fit` instead of its mean.
        Set this for `sample`. `transform` then returns one draw in which cells are drawn
        independently, as scikit-learn's does.
    n_chains : int, default=5
        Number of chains fitted with ``sample_posterior=True``. Draw k of `sample` uses chain
        k modulo `n_chains`.

    Notes
    -----
    `sample` draws the noise variance, the coefficients and then the cells of every step, like the
    method "norm" of R's mice. The draws are proper if one column has missing cells. If several have
    many, draws vary slightly too little, since each step conditions on the imputations of the fit.
    With ``sample_posterior=False`` these are means, and associations are overstated.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import MICEImputer
    >>> table = np.array([[1.0, 2.1], [2.0, 3.9], [3.0, 6.1], [4.0, np.nan]])
    >>> MICEImputer().fit_transform(table).round(1)[3]
    array([4., 8.])
    """

    sample_posterior: bool = False
    n_chains: int = 5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.yes_or_no("sample_posterior", self.sample_posterior)
        checks.whole_number("n_chains", self.n_chains, low=1)

    def _learn(self, encoded: Encoded, callback: Callback | None, began: float) -> bool:
        del callback, began
        n_chains = int(self.n_chains) if self.sample_posterior else 1
        self.chains_ = self._fit_chains(
            encoded, n_chains, estimator="ridge", sample=bool(self.sample_posterior)
        )
        return False

    def _points(self, x: Floats, m: Bools) -> Floats:
        if self.sample_posterior:
            rng = np.random.default_rng(self._seed(1))
            return self.matrix_.decode(self.chains_[0].draw_cells(self._encode_matrix(x, m), rng))
        return super()._points(x, m)


@complete
@dataclass(kw_only=True, repr=False, eq=False)
class MissForestImputer(ChainImputer):
    """Impute missing values by chained forests: trees predict each column from all others.

    Fitted by scikit-learn's `IterativeImputer` with `ExtraTreesRegressor`. Cells are assumed to be
    missing at random. A column of levels is predicted through one indicator for each level.
    `sample` uses the prediction of one randomly drawn tree for each cell. This is not proper
    multiple imputation: intervals by Rubin's rules are too narrow.

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
        self.chains_ = self._fit_chains(encoded, 1, estimator="trees", **forest)
        return False
