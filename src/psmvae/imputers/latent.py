"""What the imputers with latent variables share: importance sampling, scores, pattern sets."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from psmvae.imputers import checks, sizing
from psmvae.imputers.base import Floats
from psmvae.imputers.deep import DeepImputer, warn_of_few_draws
from psmvae.imputers.sets import align_sets
from psmvae.nn.settings import MaskModel, Network, NoMask
from psmvae.table.codec import Encoded
from psmvae.training.settings import Training

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.inference.posterior import Posterior
    from psmvae.kinds import Scale
    from psmvae.models.settings import Settings
    from psmvae.nn.columns import Layout
    from psmvae.nn.noise import Noise
    from psmvae.training.recipe import Recipe

# The hyperparameters of the paper that all its variational autoencoders share.
PAPER: dict[str, Any] = {
    "n_latent": 20,
    "target_ess": None,
    "network": Network.paper(),
    "input_mask_rate": 0.0,
    "learning_rate": 1e-3,
    "max_epochs": 1000,
    "batch_size": 200,
    "validation_fraction": 0.0,
}


@dataclass(kw_only=True, repr=False, eq=False)
class LatentImputer(DeepImputer):
    """Parameters that all imputers with latent variables have, beside those of `DeepImputer`.

    Parameters
    ----------
    n_latent : int or "auto", default="auto"
        Dimension of z.
    n_draws : int, default=100
        Importance draws of z for each row (and set) at imputation. Where held-out cells say that
        draws gain nothing, single imputations take the middle of q(z | ·) for all of them. With one
        draw there is nothing to weigh: sets then count as q(r | ·) says, and every row has a draw
        of its own, the same for equal rows; with more, rows share them.
    target_ess : float or None, default=10
        Effective sample size at which a row needs no more draws (they come in pairs and blocks, 20
        first). None gives every row all `n_draws`.
    max_memory : int or "auto", default="auto"
        MiB that imputation may take at once, beside the table; "auto" is 256 on a CPU and 8192 on
        a GPU.
    scale : float, "learned" or "student", default="learned"
        Standard deviation of numeric likelihoods on standardised data: given, or learned for each
        column. "student" makes them Student-t, with scale and degrees of freedom from the network.
    weight_observed : bool, default=False
        Weight log p(x_obs|z,r) by 1 / (1 - missing rate), as the paper does.

    Attributes
    ----------
    fast_preset_ : bool
        Whether `max_time` left a CPU so little time that "auto", where it was given, stood for what
        learns fastest.
    """

    n_latent: int | Literal["auto"] = "auto"
    n_draws: int = 100
    target_ess: float | None = 10.0
    max_memory: int | Literal["auto"] = "auto"
    scale: float | Literal["learned", "student"] = "learned"
    weight_observed: bool = False

    def score_samples(self, X: Any) -> Floats:
        """A lower bound of log p(x_obs, m) of each row, in the table's units.

        The importance-weighted bound; it tightens as `n_draws` grows. Without a mask model it is a
        bound of log p(x_obs).
        """
        import torch

        from psmvae.kinds import KINDS

        x, m = self._encode(X)
        with torch.no_grad():
            bound, _ = self._posterior(self._seed(1)).diagnostics(*self._tensors(x, m))
        units = [
            np.broadcast_to(KINDS[column.kind].log_jacobian(column, x[:, j]), len(x))
            for j, column in enumerate(self.schema_.modelled)
        ]
        total: Floats = bound.double().cpu().numpy() + (m * np.column_stack(units)).sum(1)
        return total

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        del y
        return float(self.score_samples(X).mean())

    def effective_sample_size(self, X: Any) -> Floats:
        """Effective number of importance draws of each row, from 1 to `n_draws`."""
        import torch

        x, m = self._encode(X)
        with torch.no_grad():
            _, size = self._posterior(self._seed(1)).diagnostics(*self._tensors(x, m))
        return size.double().cpu().numpy()

    def _read(self, X: Any) -> Encoded:
        encoded: Encoded = super()._read(X)
        device = checks.torch_device(self.device).type
        limit = None if self.max_time is None else float(self.max_time)
        found = sizing.pace(self.n_rows_, int(self.n_members), limit, device)
        self.fast_preset_ = found is sizing.FAST
        return encoded

    @property
    def _pace(self) -> sizing.Preset:
        return sizing.FAST if self.fast_preset_ else sizing.STANDARD

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, plain = super()._state()
        return arrays, {**plain, "fast_preset": self.fast_preset_}

    def _set_state(self, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        # a device that loads a model may be another than the one in a hurry
        checks.yes_or_no("fast_preset", plain["fast_preset"])
        self.fast_preset_ = plain["fast_preset"]
        super()._set_state(arrays, plain)

    @abstractmethod
    def _settings(self, n_rows: int, n_columns: int) -> Settings:
        """What the parameters come to for the model of a table of this size."""

    def _shared_settings(self, n_rows: int, n_columns: int) -> dict[str, Any]:
        """The settings every model has; one set and no mask model unless told otherwise."""
        scale: Scale = self.scale if isinstance(self.scale, str) else float(self.scale)
        latent = self.n_latent
        mask: MaskModel = NoMask()
        return {
            "n_members": int(self.n_members),
            "n_sets": 1,
            "n_latent": sizing.n_latent_for(n_columns) if latent == "auto" else int(latent),
            "network": self._network(n_rows, n_columns),
            "mask": mask,
            "scale": scale,
        }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.whole_number("n_draws", self.n_draws, low=1)
        for name in ("n_latent", "max_memory"):
            if not isinstance(value := getattr(self, name), str) or value != "auto":
                checks.whole_number(name, value, low=1)
        if self.target_ess is not None:
            checks.number("target_ess", self.target_ess, 1.0)
        checks.number("scale", self.scale, 0.0, open_low=True, words=("learned", "student"))
        checks.yes_or_no("weight_observed", self.weight_observed)
        beta = getattr(self, "beta", 1.0)
        checks.number("beta", beta, 0.0, open_low=True)

    def _training(self, n_rows: int) -> Training:
        return dataclasses.replace(
            super()._training(n_rows),
            beta=float(getattr(self, "beta", 1.0)),
            weight_observed=bool(self.weight_observed),
        )

    def _make(self, layout: Layout, settings: Settings, missing_rate: Tensor, noise: Noise) -> Any:
        from psmvae.models.gmvae import GMVAE

        return GMVAE(layout, settings, missing_rate, noise)

    def _build(self) -> None:
        super()._build()
        checks.mask_module(self.model_.p_m, self.model_.settings.n_members)

    def _recipe(self, training: Training) -> Recipe:
        from psmvae.training.latent_recipe import LatentRecipe

        return LatentRecipe(self.model_, training)

    def _posterior(self, seed: int) -> Posterior:
        from psmvae.inference.posterior import Posterior

        memory = None if self.max_memory == "auto" else int(self.max_memory) * 2**20
        enough = None if self.target_ess is None else float(self.target_ess)
        return Posterior(self.model_, int(self.n_draws), seed, memory, enough)

    def _expected(self, x: Tensor, m: Tensor) -> Tensor:
        expected, size = self._posterior(self._seed(1)).impute(x, m)
        warn_of_few_draws(float(size.median()), int(self.n_draws))
        return expected

    def _sampled(self, x: Tensor, m: Tensor, n: int, seed: int) -> Tensor:
        return self._posterior(seed).sample(x, m, n)

    def _facts(self) -> dict[str, Any]:
        return super()._facts() | {"n_draws": int(self.n_draws)}


@dataclass(kw_only=True, repr=False, eq=False)
class SetsMixin:
    """Pattern sets r, for models that have more than one.

    Parameters
    ----------
    n_sets : int, default=4
        Number of pattern sets, the values of r.

    Attributes
    ----------
    n_sets_ : int
        Number of pattern sets.
    set_sizes_ : ndarray of shape (n_sets_,)
        Share of the training rows in each set, largest first.
    """

    n_sets: int | Literal["auto"] = 4

    def predict_set_proba(self: Any, X: Any) -> Floats:
        """q(r | x_obs, m): the probability of each pattern set, ``(row, set)``.

        Sets are numbered by their size in the training table, the largest first. Members' sets are
        matched, then averaged.
        """
        import torch

        x, m = self._encode(X)
        with torch.no_grad():
            each = self._posterior(0).set_probabilities(*self._tensors(x, m)).double()
            order = torch.as_tensor(self.set_order_, device=each.device)[:, None, :]
            mean = each.gather(2, order.expand(each.shape)).mean(0)
        proba: Floats = (mean / mean.sum(1, keepdim=True)).cpu().numpy()
        return proba

    def predict_set(self, X: Any) -> NDArray[np.int64]:
        """The most probable pattern set of each row."""
        best: NDArray[np.int64] = self.predict_set_proba(X).argmax(1)
        return best

    def _check_parameters(self) -> None:
        self._check_sets()
        super()._check_parameters()  # type: ignore[misc]

    def _check_sets(self) -> None:
        checks.whole_number("n_sets", self.n_sets, low=1)

    def _conclude(self: Any, x: Tensor, m: Tensor) -> None:
        import torch

        with torch.no_grad():
            each = self._posterior(0).set_probabilities(x, m).double().cpu().numpy()
        self.n_sets_ = each.shape[-1]
        self.set_order_, self.set_sizes_ = align_sets(each)

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = super()._facts()  # type: ignore[misc]
        sizes: NDArray[Any] = self.set_sizes_
        return facts | {"set_sizes": [round(float(size), 4) for size in sizes]}

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, plain = super()._state()  # type: ignore[misc]
        order: Any = self.set_order_
        sizes: Any = self.set_sizes_
        return {**arrays, "set_order": order, "set_sizes": sizes}, plain

    def _set_state(self, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        self.set_order_ = arrays.pop("set_order").numpy()
        self.set_sizes_ = arrays.pop("set_sizes").numpy()
        self.n_sets_ = len(self.set_sizes_)
        n_members: int = self.n_members  # type: ignore[attr-defined]
        checks.shape("set_order", self.set_order_, (int(n_members), self.n_sets_))
        super()._set_state(arrays, plain)  # type: ignore[misc]
        settings: Settings = self.model_.settings  # type: ignore[attr-defined]
        checks.shape("set_sizes", self.set_sizes_, (settings.n_sets,))
        if (np.sort(self.set_order_, 1) != np.arange(settings.n_sets)).any():
            raise ValueError("set_order must hold every set of each member once.")
