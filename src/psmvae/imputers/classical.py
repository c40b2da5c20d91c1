"""The classical imputers: mean, MICE and MissForest, with the tables and files of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from psmvae.imputers import checks
from psmvae.imputers.base import Bools, Callback, Floats, Imputer
from psmvae.imputers.matrix import Matrix
from psmvae.table.codec import Encoded

if TYPE_CHECKING:
    from psmvae.imputers.chain import Chain

# No cell of a table counts as more deviations than this from the mean of its column.
LIMIT = 1e100


@dataclass(kw_only=True, repr=False, eq=False)
class MatrixImputer(Imputer):
    """Parameters of the imputers that work on a matrix of numbers.

    Parameters
    ----------
    kinds : mapping of str to str, optional
        The kind of a column where the inferred one is not wanted.
    handle_unknown : {"error", "missing"}, default="error"
        What to do with a category that was not there at fit.
    random_state : int, RandomState or None, default=None
        One number gives the same result twice.
    """

    kinds: Mapping[str, str] | None = None
    handle_unknown: Literal["error", "missing"] = "error"
    random_state: int | np.random.RandomState | None = None

    learns_from_standardised = False

    def _check_parameters(self) -> None:
        self._check_shared()

    def _open(self, encoded: Encoded) -> Floats:
        """Learn the matrix of the table, and give it."""
        columns = self.schema_.modelled
        self.matrix_ = Matrix.fit(columns, encoded.x, encoded.m, standardise=self._standardises())
        return self._opened(encoded.x, encoded.m)

    def _opened(self, x: Floats, m: Bools) -> Floats:
        """The matrix of cells; standardised ones are held where their squares do not overflow."""
        with np.errstate(over="ignore"):
            opened = self.matrix_.open(x, m)
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


@dataclass(kw_only=True, repr=False, eq=False)
class MeanImputer(MatrixImputer):
    """Fill in the mean of each column, the most frequent level of a column with levels.

    The yardstick every method must beat. `sample` draws from each column's own distribution, taken
    to be Normal (for levels: their shares), whatever else is known of a row. It draws the mean and
    variance (the shares) from their posterior first, so that draws are proper multiple imputations
    where cells are missing completely at random and columns have nothing to do with one another.

    Parameters
    ----------
    **parameters
        Those of `MatrixImputer`: kinds, handle_unknown, random_state.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import MeanImputer
    >>> MeanImputer().fit_transform(np.array([[1.5, 2.0], [2.5, np.nan], [np.nan, 4.0]]))
    array([[1.5, 2. ],
           [2.5, 3. ],
           [2. , 4. ]])
    """

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """The same: the mean has no hyperparameters."""
        return cls(**overrides)

    def _learn(self, encoded: Encoded, callback: Callback | None, began: float) -> bool:
        del callback, began
        values = self._open(encoded)
        self.mean_ = np.nanmean(values, axis=0)
        self.deviation_ = np.nanstd(values, axis=0)
        self.count_ = (~np.isnan(values)).sum(0).astype(np.float64)
        return False

    def _points(self, x: Floats, m: Bools) -> Floats:
        del m
        return self.matrix_.close(np.tile(self.mean_, (len(x), 1)))

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
            # shares by the Bayesian bootstrap, Dirichlet with the levels' counts; the largest of
            # log share + Gumbel noise is a draw of a level
            seen = np.clip((self.mean_ * matrix.scale + matrix.center) * count, 0.0, None)
            share = np.clip(rng.standard_gamma(seen), 1e-300, None)
            levels = (np.log(share) + rng.gumbel(size=shape) - matrix.center) / matrix.scale
            drawn[:, k] = matrix.close(np.where(matrix.is_indicator, levels, numbers))
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
    """Parameters of the imputers that chain equations, beside those of `MatrixImputer`.

    Parameters
    ----------
    max_iter : int, default=10
        Rounds over the columns at most.
    tol : float, default=1e-3
        Stop when a round changes no cell by more than this share of the largest value.
    standardise : bool, default=True
        Standardise each column by its observed mean and deviation first, as the paper does. False
        gives scikit-learn's `IterativeImputer` the numbers as they are.

    Attributes
    ----------
    n_iter_ : int
        Rounds that were fitted, the most of any chain.
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

    @property
    def n_iter_(self) -> int:
        """Rounds that were fitted, the most of any chain."""
        return max(chain.n_rounds for chain in self.chains_)

    def _points(self, x: Floats, m: Bools) -> Floats:
        return self.matrix_.close(self.chains_[0].transform(self._opened(x, m)))

    def _draws(self, x: Floats, m: Bools, n: int, seed: int) -> NDArray[Any]:
        rng, opened = np.random.default_rng(seed), self._opened(x, m)
        chains = self.chains_
        drawn = [self.matrix_.close(chains[k % len(chains)].draw(opened, rng)) for k in range(n)]
        return np.stack(drawn, axis=1)

    def _facts(self) -> dict[str, Any]:
        return {
            "n_chains": len(self.chains_),
            "n_rounds": [chain.n_rounds for chain in self.chains_],
            "converged": [chain.converged for chain in self.chains_],
        }

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
            own = {
                name.removeprefix(prefix): value.numpy()
                for name, value in arrays.items()
                if name.startswith(prefix)
            }
            self.chains_.append(Chain.from_arrays(own, facts))
            checks.shape(f"{prefix}fill", own["fill"], self.matrix_.center.shape)
        told = sum(name.startswith("chain") for name in arrays)
        if not self.chains_ or told != sum(len(chain.arrays()) for chain in self.chains_):
            raise ValueError(f"The arrays are not those of {len(self.chains_)} chains.")


@dataclass(kw_only=True, repr=False, eq=False)
class MICEImputer(ChainImputer):
    """Fill in missing values by chained equations: each column regressed on all others.

    scikit-learn's `IterativeImputer` over `BayesianRidge`. Assumes that cells are missing at random
    and that columns are linear in one another.

    Parameters
    ----------
    sample_posterior : bool, default=False
        Draw from the posterior predictive distribution while fitting, instead of filling in its
        mean: what `sample` needs. `transform` then gives one draw, each cell by itself, as
        scikit-learn's does.
    n_chains : int, default=5
        Chains fitted with ``sample_posterior=True``; draw k of `sample` comes from chain k,
        beginning again after the last.
    **parameters
        Those of `ChainImputer` (max_iter, tol, standardise) and `MatrixImputer` (kinds, handle_unknown,
        random_state).

    Notes
    -----
    `sample` draws the noise, the coefficients and then the cells of every step: multiple imputation
    by normal linear regressions, as the method "norm" of R's mice, for Rubin's rules. Where one
    column has holes it is proper. Where several have many, draws are somewhat too alike: each step
    keeps to what scikit-learn filled in while fitting. With ``sample_posterior=False`` these are
    means, and relations between such columns come out too strong.

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

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """The paper's settings, which are scikit-learn's."""
        return cls(**overrides)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.yes_or_no("sample_posterior", self.sample_posterior)
        checks.whole_number("n_chains", self.n_chains, low=1)

    def _learn(self, encoded: Encoded, callback: Callback | None, began: float) -> bool:
        from psmvae.imputers.chain import Chain

        del callback, began
        x, draws = self._open(encoded), bool(self.sample_posterior)
        self.chains_ = [
            Chain.fit(
                x,
                estimator="ridge",
                max_iter=int(self.max_iter),
                tol=float(self.tol),
                sample=draws,
                seed=(self.seed_ + k) % 2**31,
                groups=self.matrix_.group,
            )
            for k in range(int(self.n_chains) if draws else 1)
        ]
        return False

    def _points(self, x: Floats, m: Bools) -> Floats:
        if self.sample_posterior:
            rng = np.random.default_rng(self._seed(1))
            return self.matrix_.close(self.chains_[0].draw_cells(self._opened(x, m), rng))
        return super()._points(x, m)


@dataclass(kw_only=True, repr=False, eq=False)
class MissForestImputer(ChainImputer):
    """Fill in missing values by chained forests: each column predicted by trees from all others.

    scikit-learn's `IterativeImputer` over `ExtraTreesRegressor`. Assumes that cells are missing at
    random. Levels are predicted through an indicator each, which for trees is predicting classes:
    the variance of an indicator is half its Gini impurity. `sample` lets one tree drawn at random
    speak for each cell: no proper multiple imputation. Cells are drawn one by one from one fit, so
    what is uncertain of the forest averages out over them, and where trees agree draws are too
    narrow; intervals by Rubin's rules cover too little.

    Parameters
    ----------
    n_estimators : int, default=10
        Trees of each forest.
    n_jobs : int or None, default=-1
        Cores used to grow them; -1 takes all.
    **parameters
        Those of `ChainImputer` (max_iter, tol, standardise) and `MatrixImputer` (kinds, handle_unknown,
        random_state).

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

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """The paper's settings: 10 trees, otherwise scikit-learn's."""
        return cls(**overrides)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.whole_number("n_estimators", self.n_estimators, low=1)
        if self.n_jobs is not None and self.n_jobs != -1:
            checks.whole_number("n_jobs", self.n_jobs, low=1)

    def _learn(self, encoded: Encoded, callback: Callback | None, began: float) -> bool:
        from psmvae.imputers.chain import Chain

        del callback, began
        chain = Chain.fit(
            self._open(encoded),
            estimator="trees",
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            n_estimators=int(self.n_estimators),
            seed=self.seed_,
            n_jobs=self.n_jobs,
            groups=self.matrix_.group,
        )
        self.chains_ = [chain]
        return False
