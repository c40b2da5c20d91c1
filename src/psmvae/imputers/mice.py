"""Multivariate imputation by chained equations, as R's mice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from psmvae._caller import warn_at_caller
from psmvae.imputers import checks
from psmvae.imputers.base import Bools, Callback, Floats
from psmvae.imputers.blocks import BlockSeed
from psmvae.imputers.classical import ChainImputer, part_of
from psmvae.imputers.docstrings import complete
from psmvae.imputers.fit_warnings import DroppedPredictorsWarning
from psmvae.multiple.convergence import Convergence
from psmvae.multiple.pooling import Backend
from psmvae.table.codec import Encoded
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from psmvae.kinds import Column

# Fraction of the usual work of the chains: fewer chains for tables of tens of thousands of rows.
WORK = 0.05
# Linear regressions that take the time of one logistic regression.
LOGISTIC_WORK = 5
METHODS: dict[str, Literal["normal", "pmm"]] = {"norm": "normal", "pmm": "pmm"}


@complete
@dataclass(kw_only=True, repr=False, eq=False)
class MICEImputer(ChainImputer):
    """Impute missing values by chained equations: each column is regressed on all others.

    Cells are assumed to be missing at random, unless `mask_model` says otherwise, and columns to
    depend linearly on one another. `transform` imputes conditional means, by scikit-learn's
    `IterativeImputer` with `BayesianRidge`. `sample` and `impute_multiple` draw as R's mice does.

    Parameters
    ----------
    method : {"norm", "pmm"}, default="norm"
        Draws of numeric columns. "norm" is Bayesian linear regression: values may lie outside the
        observed range. "pmm" is predictive mean matching (type 1, five donors): every imputed value
        is an observed one. Columns with levels are drawn by logistic regressions.
    predictors : mapping of str to list of str, or frame of 0 and 1, optional
        Columns that may predict a column, as a row of R's predictorMatrix. A column that is not
        named is predicted by all others. A pandas frame is such a matrix: its index has the
        predicted columns, its columns the predictors.

    Attributes
    ----------
    chains_ : Chains
        Chains of Bayesian regressions, from which `sample` draws.
    dropped_ : dict of str to list of str
        Predictors that are left out, for each incomplete column: those that are constant or
        collinear among the rows with the column observed. ``"size=L"`` is the indicator of a level.

    Warns
    -----
    DroppedPredictorsWarning
        If a predictor that varies in the table is left out, and not only because the column has
        too few observed cells; see `dropped_`.

    Notes
    -----
    Chains start at random observed values. In each round, the noise variance and the coefficients
    of every regression are drawn from their posterior, and then the missing cells. A regression has
    at most 60 predictors, those most correlated with the column, and not more than
    `n_nearest_features`. Coefficients have flat priors, as in R's "norm". In regressions with fewer
    than three rows for each predictor, where draws with flat priors explode, they have a Normal
    prior whose variance is drawn. Up to 60 draws of `sample` have parameters of their own, from the
    last rounds of up to 20 chains. So the draws are proper: Rubin's rules apply. Normal draws are
    truncated to the `bounds` in every round; R's "norm" has none, as here with
    ``bounds={"x": (None, None)}``. Levels are drawn by a sequence of logistic regressions: of the
    first level against the later ones, of the second against the later ones, and so on.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import MICEImputer
    >>> table = np.array([[1.0, 2.1], [2.0, 3.9], [3.0, 6.1], [4.0, np.nan]])
    >>> imputer = MICEImputer(random_state=0).fit(table)
    >>> imputer.transform(table).round(1)[3]
    array([4., 8.])
    >>> imputer.convergence().columns
    ('x1',)
    """

    _estimator = "ridge"

    method: Literal["norm", "pmm"] = "norm"
    predictors: Mapping[str, Sequence[str]] | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.choice("method", self.method, METHODS)
        if self.predictors is None:
            return
        checks.predictors(self.predictors)

    def _learn(self, encoded: Encoded, callback: Callback | None, began: float) -> bool:
        del callback, began
        allowed = self._allowed()
        self.chain_ = self._fit_chain(encoded, allowed=allowed)
        self._fit_mechanism(encoded)
        self._fit_chains(encoded, allowed)
        return False

    def _fit_chains(self, encoded: Encoded, allowed: Bools | None) -> None:
        """Fit the chains of Bayesian regressions that draws are made from."""
        from psmvae.chained.chains import Chains, settings_for
        from psmvae.kinds.bounds import model_bounds

        columns = self.schema_.modelled
        self.chains_ = Chains.fit(
            columns,
            self._model_values(encoded.x, encoded.m),
            encoded.m,
            bounds=[model_bounds(column) for column in columns],
            seed=self._seed(3),
            allowed=allowed,
            n_nearest_features=self.n_nearest_features,
            tilts=self._tilts(),
            settings=settings_for(
                self.n_rows_,
                len(columns),
                METHODS[self.method],
                nonlinear=False,
                fraction=WORK,
                n_regressions=sum(_work(column) for column in columns),
            ),
        )
        self._warn_of_dropped()

    @property
    def dropped_(self) -> dict[str, list[str]]:
        """Predictors that are left out, for each incomplete column."""
        found = {
            column.name: self._names(dropped)
            for column, dropped, rate in zip(
                self.schema_.modelled, self.chains_.dropped, self.missing_rate_, strict=True
            )
            if rate > 0
        }
        return {name: dropped for name, dropped in found.items() if dropped}

    def convergence(self, *, backend: Backend = "pandas") -> Convergence:
        """Return traces of the chains, and R-hat.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Library of the frames that are returned.

        Returns
        -------
        Convergence
            Means and standard deviations of the imputed cells of each incomplete column, in every
            round and chain. They are in the units of the table, of log x for positive columns and
            of codes for columns with levels. Use ``.summary()`` for R-hat.
        """
        self._check_fitted()
        at = np.flatnonzero(self.missing_rate_ > 0)
        columns = [self.schema_.modelled[j] for j in at]
        # the model values of counts are counts, those of levels are codes
        is_scaled = np.array([not column.levels and column.kind != "count" for column in columns])
        scale = np.where(is_scaled, [column.scale for column in columns], 1.0)
        center = np.where(is_scaled, [column.center for column in columns], 0.0)
        most = np.finfo(np.float64).max
        with np.errstate(over="ignore"):
            mean = np.clip(self.chains_.trace_mean[..., at] * scale + center, -most, most)
            sd = np.minimum(self.chains_.trace_deviation[..., at] * scale, most)
        return Convergence(tuple(column.name for column in columns), mean, sd, backend)

    def _draws_are_proper(self) -> bool:
        return True

    def _draws_donors(self) -> bool:
        return self.method == "pmm"

    def _draws(self, x: Floats, m: Bools, n: int, seed: BlockSeed) -> NDArray[Any]:
        values = self._model_values(x, m)
        return self.chains_.draw(values, m, n, seed.cells, tilts=self._tilts())

    def _allowed(self) -> Bools | None:
        """Return which columns (second axis) may predict each column; None for all."""
        if self.predictors is None:
            return None
        names, all_names = [column.name for column in self.schema_.modelled], self.schema_.names
        rows = {name: set(each) for name, each in checks.predictors(self.predictors).items()}
        given = {*rows, *(name for each in rows.values() for name in each)}
        if unknown := [name for name in given if name not in all_names]:
            raise ValueError(
                f"predictors names unknown columns {quoted(sorted(map(str, unknown)))}; "
                f"the table has {quoted(all_names)}"
            )
        formulas = self.schema_.formulas
        if derived := sorted(name for name in given if name in formulas):
            raise ValueError(
                f"predictors names {quoted(derived)}, which is derived ({formulas[derived[0]]!r}) "
                "and left out of the regressions; name the columns of its formula"
            )
        allowed = [rows.get(name, set(names)) for name in names]
        return np.array([[name in row for name in names] for row in allowed])

    def _names(self, predictors: NDArray[np.intp]) -> list[str]:
        """Return the names of predictors: a column, or an indicator of one of its levels."""
        encoding, names = self.chains_.predictors, []
        for j in np.unique(encoding.group[predictors]).tolist():
            own, column = encoding.of(j), self.schema_.modelled[j]
            left_out = np.flatnonzero(np.isin(own, predictors))
            if len(left_out) == len(own):
                names.append(column.name)
            else:
                levels = [column.levels[encoding.levels[j][k]] for k in left_out]
                names.extend(f"{column.name}={level}" for level in levels)
        return names

    def _warn_of_dropped(self) -> None:
        # a predictor that is constant in the whole table says nothing about any column, and a
        # column with few observed cells has no regression on all others anyway
        encoding, columns = self.chains_.predictors, self.schema_.modelled
        varies = np.unique(encoding.group[encoding.low < encoding.high])
        constant = {columns[j].name for j in set(range(len(columns))) - set(varies.tolist())}
        few = {
            column.name
            for column, target in zip(columns, self.chains_.targets, strict=True)
            if column.n_observed < len(target.linear) + 2
        }
        listed = [
            f"{', '.join(names)} for {name}"
            for name, dropped in self.dropped_.items()
            if name not in few and (names := [each for each in dropped if each not in constant])
        ]
        if listed:
            warn_at_caller(DroppedPredictorsWarning("; ".join(listed)))

    def _facts(self) -> dict[str, Any]:
        r_hat = np.concatenate(self.convergence().r_hat())
        largest = float(np.nanmax(r_hat)) if np.isfinite(r_hat).any() else None
        return super()._facts() | {
            "n_chains": self.chains_.settings.n_chains,
            "r_hat": largest,
            "dropped": self.dropped_,
        }

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        from psmvae.chained.state import arrays_of, plain_of

        arrays, plain = super()._state()
        arrays |= {f"chains.{name}": value for name, value in arrays_of(self.chains_).items()}
        return arrays, plain | {"chains": plain_of(self.chains_)}

    def _set_state(self, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        from psmvae.chained.state import restore

        super()._set_state(arrays, plain)
        own = part_of(arrays, "chains.")
        self.chains_ = restore(self.schema_.modelled, own, plain["chains"])


def _work(column: Column) -> int:
    """Return the number of linear regressions that take the time of one round of a column."""
    from psmvae.chained.levels import MAX_QUESTIONS

    n_questions = min(column.n_levels - 1, MAX_QUESTIONS)
    return LOGISTIC_WORK * n_questions if n_questions > 0 else 1
