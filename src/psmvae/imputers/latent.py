"""Importance sampling, scores and pattern sets of the imputers with latent variables."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from psmvae._quiet import WITH_STATISTICS
from psmvae.imputers import checks
from psmvae.imputers.ambient import independent
from psmvae.imputers.base import Bools, Floats
from psmvae.imputers.blocks import BlockSeed
from psmvae.imputers.chains_file import (
    add_chains,
    add_linear_mean,
    add_mechanism,
    add_mixture_mean,
    add_residual_trees,
    take_chains,
    take_linear_mean,
    take_mechanism,
    take_mixture_mean,
    take_residual_trees,
)
from psmvae.imputers.deep import PAPER_TRAINING, DeepImputer
from psmvae.imputers.nonignorable import fit_mechanism, mechanism_facts
from psmvae.imputers.options import Advanced
from psmvae.imputers.proper import (
    CHAINS_LOCK,
    UnfittedChains,
    draw_chains,
    learn,
    predictions,
    sample_predictions,
    sample_rows,
)
from psmvae.imputers.residual_trees import MAX_ROWS as MAX_TREE_ROWS
from psmvae.nn.architecture import Network
from psmvae.table.codec import Encoded

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.chained.chains import Chains, Learned
    from psmvae.imputers.linear_mean import LinearMean
    from psmvae.imputers.mixture_mean import MixtureMean
    from psmvae.imputers.residual_trees import ResidualTrees
    from psmvae.inference.posterior import Posterior
    from psmvae.mechanism.question import Question
    from psmvae.mechanism.table import Mechanism
    from psmvae.nn.columns import Layout
    from psmvae.nn.noise import Noise
    from psmvae.training.recipe import Recipe

# Hyperparameters that all variational autoencoders of the paper share.
PAPER: dict[str, Any] = PAPER_TRAINING | {
    "n_latent": 20,
    "draws": "model",
    "advanced": Advanced(target_ess=None),
    "network": Network.paper(),
}
# With fewer draws than this a user expects a rough estimate and gets no warning.
MANY_DRAWS, MIN_SAMPLE_SIZE = 50, 1.5
# Rows whose masks are explained; more would change the odds of going missing by little. With
# `max_time` they may be fewer, but not fewer than the second number.
MAX_MASK_ROWS, MIN_MASK_ROWS = 5000, 1000
# Part of `max_time` for the comparison of explanations of the masks, and its seconds for each
# column with missing cells and for each of its cells, as measured on two cores.
MECHANISM_FRACTION, SECONDS_PER_MASK, SECONDS_PER_MASK_CELL = 0.12, 0.035, 4e-5
# Part of `max_time` that Gaussian mixtures may take.
MIXTURE_FRACTION = 0.5


@dataclass(kw_only=True, repr=False, eq=False)
class LatentImputer(DeepImputer):
    """Base of the imputers with latent variables.

    Parameters
    ----------
    n_latent : int or "auto", default="auto"
        Dimension of z. "auto" is the number of columns, between 2 and 20.
    n_draws : int, default=100
        Importance draws of z for each row and set at imputation, the paper's K. With one draw, sets
        are weighted by q(r | ·). Single imputations use the posterior mean of z where draws do not
        lower the validation error. May be changed after `fit`.
    scale : float, "learned" or "student", default="learned"
        Likelihood of numeric columns: a Normal with this standard deviation on standardised data,
        a Normal with a learned standard deviation for each column, or a Student-t whose scale and
        degrees of freedom the decoder gives.
    draws : {"proper", "model"}, default="proper"
        How `sample` draws. "proper" includes the uncertainty of the parameters: after training,
        chained Bayesian regressions are fitted whose predictors are the other columns, nonlinear
        functions of them and the prediction of the model. "model" draws from the trained model with
        its weights fixed, as the paper does; intervals by Rubin's rules are then too narrow.
    numeric_draws : {"auto", "pmm"}, default="auto"
        How a number is drawn around its mean. "auto" adds the residual of a similar row, and takes
        the value of a similar row for whole numbers with at most 20 distinct values. "pmm" always
        takes the value of one of the five most similar rows (predictive mean matching).
    advanced : Advanced, optional
        Options that few users need. None is ``Advanced()``.

    Attributes
    ----------
    fast_preset_ : bool
        Whether `max_time` selected the preset that learns fastest.
    chains_ : Chains or None
        Chains of regressions for proper draws, None with ``draws="model"``. They are fitted when
        they are first needed: by `sample`, `impute_multiple` or `save`, or when the imputer is
        pickled or copied. Until then the imputer keeps the training table.
    linear_mean_ : LinearMean or None
        Linear predictions that are averaged with those of the networks, and their weights. None
        unless the training table is small; see `regression` of `PSMVAEImputer`.
    mixture_mean_ : MixtureMean or None
        Gaussian mixtures whose predictions are averaged with those of the networks, and their
        weights. None unless they predict the columns of the training table better than one
        multivariate Normal; see `regression` of `PSMVAEImputer`.
    residual_trees_ : ResidualTrees or None
        Trees that correct the predictions of the networks, and their weights. None unless few
        columns of the training table are incomplete; see `regression` of `PSMVAEImputer`.
    mechanism_ : Mechanism or None
        What explains the masks of each column with missing cells, and the odds of going missing of
        columns whose values explain their masks. None where `mask_model` does not ask for it.
    """

    n_latent: int | Literal["auto"] = "auto"
    n_draws: int = 100
    scale: float | Literal["learned", "student"] = "learned"
    draws: Literal["proper", "model"] = "proper"
    numeric_draws: Literal["auto", "pmm"] = "auto"
    advanced: Advanced | None = None

    _libraries = WITH_STATISTICS

    @property
    def fast_preset_(self) -> bool:
        """Whether `max_time` selected the preset that learns fastest."""
        return bool(self.config_.fast_preset)

    def score_samples(self, X: Any) -> Floats:
        """Compute a lower bound of log p(x_obs, m) for each row, in the table's units.

        This is the importance-weighted bound, which tightens as `n_draws` grows. Without a mask
        model it bounds log p(x_obs).

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            The same columns as in `fit`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Lower bounds in nats.
        """
        from psmvae.kinds import KINDS

        x, m = self._encode(X)
        units = [
            np.broadcast_to(KINDS[column.kind].log_jacobian(column, x[:, j]), len(x))
            for j, column in enumerate(self.schema_.modelled)
        ]
        total: Floats = self._diagnostics(x, m)[0] + (m * np.column_stack(units)).sum(1)
        return total

    def score(self, X: Any, y: Any = None) -> float:
        """Compute the mean of `score_samples`.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            The same columns as in `fit`.
        y : ignored
            Present for API consistency.

        Returns
        -------
        float
            Mean lower bound of the log-likelihood of a row.
        """
        del y
        return float(self.score_samples(X).mean())

    def effective_sample_size(self, X: Any) -> Floats:
        """Compute the effective sample size of the importance weights of each row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            The same columns as in `fit`.

        Returns
        -------
        ndarray of shape (n_rows,)
            From 1 to `n_draws`.
        """
        return self._diagnostics(*self._encode(X))[1]

    @independent
    def _diagnostics(self, x: Floats, m: Bools) -> tuple[Floats, Floats]:
        """Return the importance-weighted bound and the effective sample size of each row."""
        import torch

        with torch.no_grad():
            bound, size = self._posterior(self._seed(1)).diagnostics(*self._tensors(x, m))
        return bound.double().cpu().numpy(), size.double().cpu().numpy()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.whole_number("n_draws", self.n_draws, low=1)
        if not isinstance(self.n_latent, str) or self.n_latent != "auto":
            checks.whole_number("n_latent", self.n_latent, low=1)
        checks.number("scale", self.scale, 0.0, open_low=True, words=("learned", "student"))
        checks.choice("draws", self.draws, ("proper", "model"))
        checks.choice("numeric_draws", self.numeric_draws, ("auto", "pmm"))
        if not isinstance(self.advanced, Advanced | None):
            raise TypeError(f"advanced must be an Advanced object or None, got {self.advanced!r}.")

    def _make_model(self, layout: Layout, missing_rate: Tensor, noise: Noise) -> Any:
        from psmvae.models.gmvae import GMVAE

        return GMVAE(layout, self.config_, missing_rate, noise)

    def _recipe(self) -> Recipe:
        from psmvae.training.latent_recipe import LatentRecipe

        return LatentRecipe(self.model_)

    def _posterior(self, seed: int) -> Posterior:
        from psmvae.inference.posterior import Posterior

        options = self.advanced or Advanced()
        memory = None if options.max_memory == "auto" else int(options.max_memory) * 2**20
        target = None if options.target_ess is None else float(options.target_ess)
        return Posterior(self.model_, int(self.n_draws), seed, memory, target)

    def _expected(self, x: Tensor, m: Tensor) -> Tensor:
        expected, sizes = self._posterior(self._seed(1)).impute(x, m)
        size = float(sizes.median())
        if self.n_draws >= MANY_DRAWS and size < MIN_SAMPLE_SIZE:
            warnings.warn(
                f"The median effective sample size of the rows is below {MIN_SAMPLE_SIZE} of "
                f"{self.n_draws} importance draws: most imputations depend on a single draw. "
                "Increase n_draws or set beta=1, and see effective_sample_size.",
                UserWarning,
                stacklevel=3,
            )
        return expected

    def _sampled(self, x: Tensor, m: Tensor, n: int, seed: int) -> Tensor:
        return self._posterior(seed).sample(x, m, n)

    def _read(self, X: Any) -> Encoded:
        # a callback may impute while the model is trained
        self.linear_mean_: LinearMean | None = None
        self.mixture_mean_: MixtureMean | None = None
        self.residual_trees_: ResidualTrees | None = None
        self._chains: Chains | None = None
        self._unfitted_chains: UnfittedChains | None = None
        self.mechanism_: Mechanism | None = None
        return super()._read(X)

    def _fit_draws(self, encoded: Encoded, held_out: Tensor | None, began: float) -> None:
        questions = self._questions(encoded.m)
        averaged = self._averaged(encoded, began)
        # `encoded` stays the whole table, for the chains
        table, hidden = encoded, held_out
        if self.config_.mixture and not self._out_of_time(began):
            self._fit_mixture_mean(encoded, held_out)
        corrected: dict[int, Floats] = {}
        if columns := self._corrected(encoded, began):
            table, hidden = sample_rows(encoded, held_out, MAX_TREE_ROWS, self._seed(6))
            corrected = self._fit_residual_trees(
                table, learn(self, table, hidden, columns), columns
            )
        if questions or averaged:
            n_rows = self._n_mask_rows(len(questions))
            corrected = sample_predictions(corrected, n_rows, self._seed(6))
            sample, hidden = sample_rows(table, hidden, n_rows, self._seed(6))
            learned = learn(self, sample, hidden, sorted({*questions, *averaged}))
            if averaged:
                self._fit_linear_mean(sample, {j: learned[j] for j in averaged})
            if questions:
                learned |= {
                    j: replace(learned[j], prediction=each) for j, each in corrected.items()
                }
                learned = self._with_averages(sample, learned, questions)
                self.mechanism_ = fit_mechanism(self, sample, learned, questions, began)
        if self.draws == "proper":
            self._unfitted_chains = UnfittedChains.of(self, encoded, held_out, began)
            if self.numeric_draws == "pmm":
                # the values that are drawn are looked up in the training table
                self._fit_chains()

    def _reserved_seconds(self, encoded: Encoded) -> float:
        if self.max_time is None:
            return 0.0
        n_columns = len(self._questions(encoded.m))
        n_rows = min(len(encoded.m), self._n_mask_rows(n_columns))
        needed = n_columns * (SECONDS_PER_MASK + SECONDS_PER_MASK_CELL * n_rows)
        # many columns need more than their part, even with few rows
        reserved = min(2 * MECHANISM_FRACTION * float(self.max_time), needed)
        if self.config_.mixture:
            from psmvae.imputers.mixture_mean import fit_seconds

            seconds = fit_seconds(self.schema_.modelled, encoded.m)
            reserved += min(self._mixture_seconds(), seconds)
        return reserved

    def _n_mask_rows(self, n_columns: int) -> int:
        """Return how many rows at most explain the masks of this number of columns."""
        if self.max_time is None or n_columns == 0:
            return MAX_MASK_ROWS
        seconds = MECHANISM_FRACTION * float(self.max_time) / n_columns - SECONDS_PER_MASK
        return int(min(MAX_MASK_ROWS, max(MIN_MASK_ROWS, seconds / SECONDS_PER_MASK_CELL)))

    def _averaged(self, encoded: Encoded, began: float) -> list[int]:
        """Return the columns whose predictions are averaged with linear ones."""
        del encoded, began
        return []

    def _corrected(self, encoded: Encoded, began: float) -> list[int]:
        """Return the columns whose predictions are corrected by trees."""
        del encoded, began
        return []

    def _out_of_time(self, began: float) -> bool:
        """Return whether `max_time` is over, for a fit that began at this time."""
        return self.max_time is not None and time.perf_counter() > began + float(self.max_time)

    def _fit_linear_mean(self, encoded: Encoded, learned: dict[int, Learned]) -> None:
        from psmvae.imputers.linear_mean import LinearMean

        columns = tuple(self.schema_.modelled)
        self.linear_mean_ = LinearMean.fit(columns, encoded.x, encoded.m, learned, self._seed(7))

    def _fit_mixture_mean(self, encoded: Encoded, held_out: Tensor | None) -> None:
        from psmvae.chained.predictors import Predictors
        from psmvae.imputers.mixture_mean import KINDS, MAX_ROWS, MixtureMean, n_components

        modelled = tuple(self.schema_.modelled)
        # of the whole table: a column may have no observed cell in the rows that are used
        predictors = Predictors.fit(modelled, encoded.x, encoded.m)
        encoded, held_out = sample_rows(encoded, held_out, MAX_ROWS, self._seed(10))
        if held_out is None:
            return
        columns = [j for j, column in enumerate(modelled) if column.kind in KINDS]
        rows = np.flatnonzero(held_out.any(0).any(-1).cpu().numpy())
        sample = replace(encoded, x=encoded.x[rows], m=encoded.m[rows])
        self.mixture_mean_ = MixtureMean.fit(
            predictors,
            encoded.x,
            encoded.m,
            learn(self, sample, held_out[:, rows], columns),
            rows,
            columns,
            n_components(modelled, encoded.m, self._mixture_seconds()),
            self._seed(10),
            held_out.device,
        )

    def _mixture_seconds(self) -> float:
        """Return the part of `max_time` that Gaussian mixtures may take."""
        return math.inf if self.max_time is None else MIXTURE_FRACTION * float(self.max_time)

    def _with_averages(
        self, encoded: Encoded, learned: dict[int, Learned], columns: Collection[int]
    ) -> dict[int, Learned]:
        """Return predictions of all cells of ``columns`` averaged with those of other models."""
        found = {j: one.prediction for j, one in learned.items()}
        for other in (self.linear_mean_, self.mixture_mean_):
            if other is not None:
                found = other.average(found, encoded.x, encoded.m, columns, observed=True)
        return {j: replace(one, prediction=found[j]) for j, one in learned.items()}

    def _fit_residual_trees(
        self, encoded: Encoded, learned: dict[int, Learned], columns: Collection[int]
    ) -> dict[int, Floats]:
        """Fit the trees and return the corrected predictions of all cells of ``columns``."""
        from psmvae.imputers.residual_trees import ResidualTrees

        of_model = {j: learned[j].prediction for j in columns}
        self.residual_trees_, found = ResidualTrees.fit(
            encoded.x, encoded.m, of_model, columns, self._seed(9)
        )
        return found

    def _predictions(self, x: Floats, m: Bools) -> dict[int, Floats]:
        """Return the predictions of the missing cells of each column."""
        return self._corrected_predictions(predictions(self, x, m), x, m)

    def _corrected_predictions(
        self, found: dict[int, Floats], x: Floats, m: Bools
    ) -> dict[int, Floats]:
        """Return predictions of missing cells by the model, corrected by trees and averaged."""
        if self.residual_trees_ is not None:
            found = self.residual_trees_.correct(found, x, m)
        for other in (self.linear_mean_, self.mixture_mean_):
            if other is not None:
                found = other.average(found, x, m, found)
        return found

    @property
    def chains_(self) -> Chains | None:
        """Fitted chains of regressions for proper draws; they are fitted at first use."""
        if self._unfitted_chains is not None:
            self._fit_chains()
        return self._chains

    @independent
    def _fit_chains(self) -> None:
        """Fit the chains and release the training table."""
        with CHAINS_LOCK:
            # another thread may have fitted them in the meantime
            if self._unfitted_chains is not None:
                self._chains = self._unfitted_chains.fit(self)
                self._unfitted_chains = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: never the training table."""
        if vars(self).get("_unfitted_chains") is not None:
            self._fit_chains()
        state: dict[str, Any] = super().__getstate__()
        return state

    def _questions(self, m: Bools) -> dict[int, Question]:
        """Return the columns whose masks are to be explained by their values, by number."""
        del m
        return {}

    def _tilts(self) -> dict[int, Any]:
        return {} if self.mechanism_ is None else self.mechanism_.log_odds

    def _points(self, x: Floats, m: Bools) -> Floats:
        points = super()._points(x, m)
        if self.linear_mean_ is not None:
            by_column = dict(enumerate(points.T))
            averaged = self.linear_mean_.average(by_column, x, m, by_column)
            points = np.column_stack(list(averaged.values()))
        tilted = self.mechanism_ is not None and bool(self.mechanism_.tilts)
        if self.mixture_mean_ is None and self.residual_trees_ is None and not tilted:
            return points
        found = predictions(self, x, m)
        if self.mixture_mean_ is not None:
            points = self.mixture_mean_.average_points(points, found, x, m)
        if self.residual_trees_ is not None:
            for j, step in self.residual_trees_.steps(found, x, m).items():
                points[:, j] += step
        if self.mechanism_ is None or not tilted:
            return points
        return self.mechanism_.correct(points, x, m, self._corrected_predictions(found, x, m))

    def _draws(self, x: Floats, m: Bools, n: int, seed: BlockSeed) -> NDArray[Any]:
        chains = self.chains_
        if chains is not None:
            return draw_chains(self, chains, self._tilts(), x, m, n, seed.cells)
        drawn = super()._draws(x, m, n, seed)
        if not self._tilts() or self.mechanism_ is None:
            return drawn
        return self.mechanism_.redraw(drawn, x, m, self._predictions(x, m), seed.cells)

    def _draws_are_proper(self) -> bool:
        return self._chains is not None or self._unfitted_chains is not None

    def _draws_donors(self) -> bool:
        return self._draws_are_proper() and self.numeric_draws == "pmm"

    def _facts(self) -> dict[str, Any]:
        return super()._facts() | {
            "n_draws": int(self.n_draws),
            "draws": self.draws,
            **mechanism_facts(self.mechanism_),
        }

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, plain = super()._state()
        arrays, plain = add_chains(arrays, plain, self.chains_)
        arrays, plain = add_linear_mean(arrays, plain, self.linear_mean_)
        arrays, plain = add_mixture_mean(arrays, plain, self.mixture_mean_)
        arrays, plain = add_residual_trees(arrays, plain, self.residual_trees_)
        return add_mechanism(arrays, plain, self.mechanism_)

    def _set_state(self, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        self._unfitted_chains = None
        self._chains = take_chains(self.schema_.modelled, arrays, plain)
        self.linear_mean_ = take_linear_mean(self.schema_.modelled, arrays, plain)
        self.mixture_mean_ = take_mixture_mean(self.schema_.modelled, arrays, plain)
        self.residual_trees_ = take_residual_trees(self.schema_.modelled, arrays, plain)
        self.mechanism_ = take_mechanism(self.schema_.modelled, arrays, plain)
        super()._set_state(arrays, plain)


@dataclass(kw_only=True, repr=False, eq=False)
class ELBOImputer(LatentImputer):
    """Base of the imputers trained on the evidence lower bound.

    Parameters
    ----------
    beta : float, default=0.5
        Weight of the KL terms of the latent variables. 1 trains the evidence lower bound. A lower
        weight lowers the error of single imputations; the variance of draws is calibrated on
        validation cells in either case.
    """

    beta: float = 0.5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.number("beta", self.beta, 0.0, open_low=True)
