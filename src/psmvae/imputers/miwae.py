"""MIWAE and not-MIWAE: importance-weighted autoencoders of incomplete tables."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Self

from psmvae.imputers import checks
from psmvae.imputers.latent import PAPER, LatentImputer
from psmvae.models.settings import Settings
from psmvae.nn.settings import JointMask, MaskModel, Network, SelfMask
from psmvae.training.settings import Training

# Two hidden layers of 128, as MIWAE's authors use.
TWO_LAYERS = Network(width=128, depth=2, residual=False, linear=False)
MASKS: dict[str, MaskModel] = {
    "self": SelfMask(ceiling=False, integrate="draw", train_jointly=True),
    "self-high": SelfMask(ceiling=False, integrate="draw", train_jointly=True, sign="high"),
    "self-low": SelfMask(ceiling=False, integrate="draw", train_jointly=True, sign="low"),
    "linear": JointMask(),
    "network": JointMask(hidden=32),
}


@dataclass(kw_only=True, repr=False, eq=False)
class WeightedImputer(LatentImputer):
    """What MIWAE and not-MIWAE share: the importance-weighted bound.

    Parameters
    ----------
    n_train_draws : int, default=20
        K of the bound while training; `n_draws` is K at imputation.
    """

    n_train_draws: int = 20

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.whole_number("n_train_draws", self.n_train_draws, low=1)

    def _training(self, n_rows: int) -> Training:
        return dataclasses.replace(
            super()._training(n_rows), objective="iwae", n_draws=int(self.n_train_draws)
        )


@dataclass(kw_only=True, repr=False, eq=False)
class MIWAEImputer(WeightedImputer):
    """Fill in missing values with MIWAE, an importance-weighted autoencoder.

    One Gaussian latent, p(x|z), trained on the bound with K = `n_train_draws` importance draws
    (Mattei and Frellsen 2019). What is missing is taken to say nothing (missing at random).

    Parameters
    ----------
    scale : float, "learned" or "student", default="learned"
        "student" is the likelihood of MIWAE's authors, "learned" a Normal with a scale for each
        column.
    **parameters
        Those of `WeightedImputer` (n_train_draws), `LatentImputer` and `DeepImputer`.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import MIWAEImputer
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(size=(100, 1)) + 0.1 * rng.normal(size=(100, 3))
    >>> table[rng.random(table.shape) < 0.2] = np.nan
    >>> filled = MIWAEImputer(max_epochs=2, random_state=0).fit_transform(table)
    >>> bool(np.isnan(filled).any())
    False
    """

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """An imputer with the paper's hyperparameters, some of them overridden.

        Examples
        --------
        >>> MIWAEImputer.paper().network.depth
        2
        """
        own = {"n_draws": 10_000, "n_train_draws": 50, "scale": "student", "network": TWO_LAYERS}
        return cls(**(PAPER | own | overrides))

    def _settings(self, n_rows: int, n_columns: int) -> Settings:
        return Settings(**self._shared_settings(n_rows, n_columns))


@dataclass(kw_only=True, repr=False, eq=False)
class NotMIWAEImputer(WeightedImputer):
    """Fill in missing values with not-MIWAE: MIWAE and a model of the mask, p(m|x).

    A selection model (Ipsen, Mattei and Frellsen 2021): missing values are drawn while training, so
    that they can explain why they are missing.

    Parameters
    ----------
    mask_model : str or object, default="self"
        p(m|x). "self": a logistic regression of m_j on x_j, the paper's choice; "self-high" and
        "self-low": the same, when it is known that high (low) values go missing; "linear": m_j on
        all of x; "network": a small network of all of x; or a mask model of your own, such as
        `SelfMask` with options.
    n_latent : int or "auto", default="auto"
        Dimension of z; "auto" is one less than the number of columns, as its authors use.
    **parameters
        Those of `WeightedImputer` (n_train_draws), `LatentImputer` and `DeepImputer`.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import NotMIWAEImputer
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(size=(100, 1)) + 0.1 * rng.normal(size=(100, 3))
    >>> table[table[:, 0] > 0.5, 0] = np.nan
    >>> imputer = NotMIWAEImputer("self-high", max_epochs=2, random_state=0).fit(table)
    >>> bool(np.isnan(imputer.transform(table)).any())
    False
    """

    mask_model: str | MaskModel = field(default="self", kw_only=False)

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """An imputer with the paper's hyperparameters, some of them overridden.

        Examples
        --------
        >>> NotMIWAEImputer.paper().mask_model
        'self'
        """
        own: dict[str, Any] = {
            "n_draws": 10_000,
            "n_latent": "auto",
            "n_train_draws": 50,
            "network": TWO_LAYERS,
        }
        return cls(**(PAPER | own | overrides))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._mask()

    def _mask(self) -> MaskModel:
        setting: Any = self.mask_model
        if isinstance(setting, str):
            checks.choice("mask_model", setting, MASKS)
            return MASKS[setting]
        if isinstance(setting, type):
            raise TypeError(
                f"mask_model must be an object and not a class: {setting.__name__}(...)."
            )
        if not isinstance(setting, MaskModel):
            raise ValueError(
                f"mask_model must be one of {sorted(MASKS)} or an object with a "
                f"build(shape, noise) method, got {setting!r}."
            )
        return setting

    def _settings(self, n_rows: int, n_columns: int) -> Settings:
        own: dict[str, Any] = {"mask": self._mask(), "sees_mask": False}
        if self.n_latent == "auto":
            own["n_latent"] = max(1, n_columns - 1)
        return Settings(**(self._shared_settings(n_rows, n_columns) | own))
