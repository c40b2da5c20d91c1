"""MIWAE and not-MIWAE: importance-weighted autoencoders of incomplete tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from psmvae.imputers import checks
from psmvae.imputers.docstrings import complete
from psmvae.imputers.latent import PAPER, LatentImputer
from psmvae.imputers.resolve import latent_config, resolve_mask_model
from psmvae.models.config import LatentConfig
from psmvae.nn.architecture import Network
from psmvae.nn.settings import MaskModel

if TYPE_CHECKING:
    from psmvae.table.codec import Encoded

# Two hidden layers of 128, as MIWAE's authors use.
TWO_LAYERS = Network(width=128, depth=2, residual=False, linear=False)
PAPER_IWAE = PAPER | {"n_draws": 10_000, "n_train_draws": 50, "network": TWO_LAYERS}


@dataclass(kw_only=True, repr=False, eq=False)
class ImportanceWeightedImputer(LatentImputer):
    """Base of the imputers trained on the importance-weighted bound.

    Parameters
    ----------
    n_train_draws : int, default=20
        K of the importance-weighted bound in training; `n_draws` is K at imputation.
    """

    n_train_draws: int = 20

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.whole_number("n_train_draws", self.n_train_draws, low=1)

    def _iwae(self) -> dict[str, Any]:
        return {"objective": "iwae", "n_train_draws": int(self.n_train_draws)}


@complete
@dataclass(kw_only=True, repr=False, eq=False)
class MIWAEImputer(ImportanceWeightedImputer):
    """Impute missing values with MIWAE, an importance-weighted autoencoder.

    One Gaussian latent and a decoder p(x|z), trained on the bound with K = `n_train_draws`
    importance draws (Mattei and Frellsen 2019). Missingness is assumed to be ignorable. Defaults
    that differ from the paper: Normal instead of Student-t likelihoods, K, and initial weights
    from a factor analysis. `MIWAEImputer.paper` has the paper's settings.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import MIWAEImputer
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> X[::4, 0] = np.nan
    >>> bool(np.isnan(MIWAEImputer(max_epochs=2, random_state=0).fit_transform(X)).any())
    False
    """

    _paper = PAPER_IWAE | {"scale": "student"}

    def _resolve(self, encoded: Encoded) -> LatentConfig:
        return latent_config(self, *encoded.m.shape, **self._iwae())


@complete
@dataclass(kw_only=True, repr=False, eq=False)
class NotMIWAEImputer(ImportanceWeightedImputer):
    """Impute missing values with not-MIWAE: MIWAE with a model of the mask, p(m|x).

    A selection model (Ipsen, Mattei and Frellsen 2021): missing values are drawn in training, so
    that the mask model is evaluated at them. Defaults that differ from the paper: K, and initial
    weights from a factor analysis. `NotMIWAEImputer.paper` has the paper's settings.

    Parameters
    ----------
    mask_model : str or mask model, default="logistic"
        p(m|x). "logistic": a logistic regression of m_j on x_j, the paper's choice. "linear": a
        logistic regression of m_j on all of x. "network": a small network of all of x. Other
        values as in `PSMVAEImputer`; `LogisticMask` takes options, such as the sign of the
        dependence.
    n_latent : int or "auto", default="auto"
        Dimension of z. "auto" is one less than the number of columns, as its authors use.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import LogisticMask, NotMIWAEImputer
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> X[X[:, 0] > 0.5, 0] = np.nan
    >>> imputer = NotMIWAEImputer(LogisticMask(sign="high"), max_epochs=2, random_state=0).fit(X)
    >>> bool(np.isnan(imputer.transform(X)).any())
    False
    """

    mask_model: str | MaskModel = field(default="logistic", kw_only=False)

    _paper = PAPER_IWAE | {"n_latent": "auto"}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        resolve_mask_model(self.mask_model)

    def _resolve(self, encoded: Encoded) -> LatentConfig:
        own: dict[str, Any] = self._iwae()
        if self.n_latent == "auto":
            own["n_latent"] = max(1, encoded.m.shape[1] - 1)
        mask = resolve_mask_model(self.mask_model)
        return latent_config(self, *encoded.m.shape, mask_model=mask, mask_input=False, **own)
