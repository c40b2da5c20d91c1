"""What all deep imputers share: tables in, tables out, around a trained model."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from psmvae.imputers import checks
from psmvae.imputers.container import in_container
from psmvae.imputers.sets import align_sets
from psmvae.imputers.show import both, progress_bar
from psmvae.inference.posterior import Posterior
from psmvae.kinds import KINDS
from psmvae.models.psmvae import PSMVAE, Settings
from psmvae.nn.columns import Layout
from psmvae.nn.noise import Noise
from psmvae.table.codec import Codec
from psmvae.table.frames import array_names, open_table
from psmvae.table.schema import Schema
from psmvae.training import Progress, Training, train

Floats = NDArray[np.float64]

# With fewer draws a user asked for a rough answer and is not warned that it is one.
MANY_DRAWS, MIN_SAMPLE_SIZE = 50, 1.5


class DeepImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the deep imputers; a subclass has the parameters and says what they come to."""

    kinds: Mapping[str, str] | None
    unseen: Literal["error", "missing"]
    n_draws: int
    device: str
    random_state: int | np.random.RandomState | None
    verbose: bool

    schema_: Schema
    model_: PSMVAE

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise for any parameter out of its range."""

    @abstractmethod
    def _settings(self, n_rows: int, n_columns: int) -> tuple[Settings, Training]:
        """What the parameters come to for a table of this size."""

    def fit(
        self, X: Any, y: Any = None, *, callback: Callable[[Progress], None] | None = None
    ) -> Self:
        """Learn from a table with holes.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            A pandas, polars or pyarrow frame or an array.
        y : ignored
            Here for scikit-learn's sake.
        callback : callable, optional
            Called with a `Progress` after every epoch.

        Returns
        -------
        self
        """
        del y
        self._check_parameters()
        before = vars(self).copy()
        try:
            interrupted = self._learn(X, callback)
        except BaseException:
            # what was learned before stays usable
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        if interrupted:
            warnings.warn(
                f"fit was interrupted after {self.n_epochs_} epochs; the imputer is usable, with "
                "the best weights so far.",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _learn(self, X: Any, callback: Callable[[Progress], None] | None) -> bool:
        """Set all that is learned; say whether Ctrl-C cut the training short."""
        device = checks.torch_device(self.device)
        codec = Codec.fit(X, kinds=self.kinds)
        encoded = codec.encode(X)
        validate_data(self, named(X), reset=True, skip_check_array=True)
        self.schema_ = codec.schema
        self.seed_ = checks.seed("random_state", self.random_state)
        self._build(encoded.x.shape[0], 1 - encoded.m.mean(0))
        self.model_.to(device)
        x, m = self._tensors(encoded.x, encoded.m)
        _, training = self._settings(*encoded.x.shape)
        with progress_bar(shown=self.verbose) as show:
            result = train(
                self.model_, x, m, training, Noise(self._seed(3), device), both(show, callback)
            )
        self.history_ = result.history
        self.best_error_ = result.history[-1].best_error if result.history else None
        self.n_epochs_ = len(result.history)
        with torch.no_grad():
            each = self._posterior(0).set_probabilities(x, m).double().cpu().numpy()
        self.set_order_, self.set_sizes_ = align_sets(each)
        return result.interrupted

    def transform(self, X: Any) -> Any:
        """Fill each missing cell with its expected value (its most probable level).

        The expectation is over p(z, r | x_obs, m), by self-normalised importance sampling of the
        conditional means.

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
            posterior, layout = self._posterior(self._seed(1)), self._layout()
            with torch.no_grad():
                features, size = posterior.impute(*self._tensors(x[holes], m[holes]))
                point = self.model_.inputs.point(features).double().cpu().numpy()
            self._warn_of_few_draws(float(size.median()))
            filled[np.ix_(holes, np.array(layout.order))] = point
        table = self._codec(X).fill(X, filled)
        container = _get_output_config("transform", self)["dense"]
        return table if container == "default" else in_container(table, container, self.schema_)

    def _warn_of_few_draws(self, size: float) -> None:
        """Warn where the draws' weights are so uneven that one draw decides most imputations."""
        if self.n_draws >= MANY_DRAWS and size < MIN_SAMPLE_SIZE:
            warnings.warn(
                f"Half of the rows have an effective sample size under {size:.2f} of "
                f"{self.n_draws} importance draws: their imputations hang on a single draw. More "
                "draws (n_draws) or beta=1 may help; see effective_sample_size.",
                UserWarning,
                stacklevel=3,
            )

    def sample(
        self, X: Any, n: int = 20, *, random_state: int | np.random.RandomState | None = None
    ) -> list[Any]:
        """Multiple imputation: ``n`` completed tables, each a draw from p(x_mis | x_obs, m).

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
        layout, codec = self._layout(), self._codec(X)
        given = random_state is not None
        seed = checks.seed("random_state", random_state) if given else self._seed(2)
        drawn = np.zeros((int(holes.sum()), n, x.shape[1]), dtype=np.float32)
        if holes.any():
            with torch.no_grad():
                tensors = self._tensors(x[holes], m[holes])
                values = self._posterior(seed).sample(*tensors, n).cpu().numpy()
            drawn[:, :, layout.order] = values
        tables = []
        for k in range(n):
            filled = np.zeros(x.shape)
            filled[holes] = drawn[:, k]
            tables.append(codec.fill(X, filled))
        return tables

    def predict_set_proba(self, X: Any) -> Floats:
        """q(r | x_obs, m): the probability of each pattern set, ``(row, set)``.

        Sets are numbered by their size in the training table, the largest first. Members' sets are
        matched, then averaged.
        """
        x, m = self._encode(X)
        with torch.no_grad():
            each = self._posterior(0).set_probabilities(*self._tensors(x, m)).double()
            order = torch.as_tensor(self.set_order_, device=each.device)[:, None, :]
            mean = each.gather(2, order.expand(each.shape)).mean(0)
        return (mean / mean.sum(1, keepdim=True)).cpu().numpy()

    def predict_set(self, X: Any) -> NDArray[np.int64]:
        """The most probable pattern set of each row."""
        best: NDArray[np.int64] = self.predict_set_proba(X).argmax(1)
        return best

    def score_samples(self, X: Any) -> Floats:
        """A lower bound of log p(x_obs, m) of each row, in the table's units.

        The importance-weighted bound; it tightens as `n_draws` grows. Without a mask model it is a
        bound of log p(x_obs).
        """
        x, m = self._encode(X)
        with torch.no_grad():
            bound, _ = self._posterior(self._seed(1)).diagnostics(*self._tensors(x, m))
        units = [KINDS[column.kind].log_jacobian(column) for column in self.schema_.modelled]
        total: Floats = bound.double().cpu().numpy() + m @ np.array(units)
        return total

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        del y
        return float(self.score_samples(X).mean())

    def effective_sample_size(self, X: Any) -> Floats:
        """Effective number of importance draws of each row, from 1 to `n_draws`."""
        x, m = self._encode(X)
        with torch.no_grad():
            _, size = self._posterior(self._seed(1)).diagnostics(*self._tensors(x, m))
        return size.double().cpu().numpy()

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

    def _build(self, n_rows: int, missing_rate: NDArray[Any]) -> None:
        """Make the untrained model for the columns of `schema_`, on the CPU."""
        settings, _ = self._settings(n_rows, len(missing_rate))
        layout = self._layout()
        self.n_rows_ = n_rows
        self.missing_rate_ = np.asarray(missing_rate, dtype=np.float64)
        rate = torch.tensor(self.missing_rate_[list(layout.order)], dtype=torch.float32)
        self.model_ = PSMVAE(layout, settings, rate, Noise(self._seed(0)))
        checks.mask_module(self.model_.p_m, settings.n_members)

    def _seed(self, purpose: int) -> int:
        """Seeds for different purposes, from the one drawn at fit."""
        return self.seed_ + 7919 * purpose

    def _layout(self) -> Layout:
        return Layout.of(self.schema_.modelled)

    def _posterior(self, seed: int) -> Posterior:
        return Posterior(self.model_, self.n_draws, seed)

    def _check_fitted(self) -> None:
        check_is_fitted(self, "model_")

    def _encode(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        self._check_fitted()
        encoded = self._codec(X).encode(X, unseen=self.unseen)
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

    def _tensors(self, x: NDArray[Any], m: NDArray[Any]) -> tuple[Tensor, Tensor]:
        """To the model's column order and device, float32."""
        order = list(self._layout().order)
        device = self.model_.observed_rate.device
        return (
            torch.as_tensor(x[:, order], dtype=torch.float32, device=device),
            torch.as_tensor(m[:, order], dtype=torch.float32, device=device),
        )


def named(X: Any) -> Any:
    """X as scikit-learn reads its feature names and width: frames as they are, others as arrays."""
    return X if hasattr(X, "columns") or hasattr(X, "column_names") else np.asarray(X)
