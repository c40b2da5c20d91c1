"""The variational autoencoders the paper compares with: VAE, GMVAE (its "HIVAE") and DLGM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from psmvae.imputers.docstrings import complete
from psmvae.imputers.latent import PAPER, ELBOImputer
from psmvae.imputers.options import Advanced
from psmvae.imputers.resolve import latent_config, resolve_mask_model
from psmvae.imputers.sets import SetsMixin
from psmvae.models.config import LatentConfig
from psmvae.nn.settings import MaskModel

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.nn.columns import Layout
    from psmvae.nn.noise import Noise
    from psmvae.table.codec import Encoded

PAPER_ELBO = PAPER | {
    "n_draws": 1,
    "scale": 0.5,
    "beta": 1.0,
    "advanced": Advanced(target_ess=None, weight_observed=True),
}


@complete
@dataclass(kw_only=True, repr=False, eq=False)
class VAEImputer(ELBOImputer):
    """Impute missing values with a variational autoencoder of the observed cells.

    One Gaussian latent z ~ N(0, I), a decoder p(x|z) and no mask model: missingness is assumed to
    be ignorable. Unlike the paper, the default has β = 0.5, a learned scale and initial weights
    from a factor analysis. `VAEImputer.paper` has the paper's settings.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import VAEImputer
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> X[::4, 0] = np.nan
    >>> bool(np.isnan(VAEImputer(max_epochs=2, random_state=0).fit_transform(X)).any())
    False
    """

    _paper = PAPER_ELBO

    def _resolve(self, encoded: Encoded) -> LatentConfig:
        return latent_config(self, *encoded.m.shape)


@complete
@dataclass(kw_only=True, repr=False, eq=False)
class GMVAEImputer(SetsMixin, ELBOImputer):
    """Impute missing values with a VAE whose prior is a mixture of Gaussians.

    p(r) p(z|r) p(x|z,r), with r summed out. With the likelihoods of the columns' kinds this is a
    HI-VAE without Gumbel-softmax samples of r; on numeric tables it is the paper's "HIVAE". Unlike
    the paper, the default has β = 0.5, a learned scale, four components instead of ten and initial
    weights from a factor analysis. `GMVAEImputer.paper` has the paper's settings.

    Parameters
    ----------
    mask_model : str or mask model, default="none"
        Why cells are missing. "none": ignorable missingness. "latent": p(m|z,r), and the encoders
        see the mask: the paper's "HIVAE w. M". Other values as in `PSMVAEImputer`,
        except "auto", "self" and `SelfMask`.
    n_sets : int, default=4
        Number of mixture components, the values of r, at most 1,000.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import GMVAEImputer
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> X[::4, 0] = np.nan
    >>> imputer = GMVAEImputer("latent", n_sets=2, max_epochs=2, random_state=0).fit(X)
    >>> imputer.predict_set_proba(X).shape
    (100, 2)
    """

    mask_model: str | MaskModel = field(default="none", kw_only=False)

    _paper = PAPER_ELBO | {"n_sets": 10}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        resolve_mask_model(self.mask_model)

    def _resolve(self, encoded: Encoded) -> LatentConfig:
        mask = resolve_mask_model(self.mask_model)
        return latent_config(self, *encoded.m.shape, n_sets=int(self.n_sets), mask_model=mask)


@complete
@dataclass(kw_only=True, repr=False, eq=False)
class DLGMImputer(SetsMixin, ELBOImputer):
    """Impute missing values with the paper's deep latent Gaussian model.

    A `GMVAEImputer` with a second Gaussian latent w of one dimension for each column, p(w|z,r),
    inferred as PSMVAE infers x_mis. As the paper defines the model, x does not depend on w: its
    evidence lower bound is that of PSMVAE without a mask model at π' = 1, and its optimum is that
    of the GMVAE. Defaults differ from the paper's as those of `GMVAEImputer` do.

    Parameters
    ----------
    n_sets : int, default=4
        Number of mixture components, the values of r, at most 1,000.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import DLGMImputer
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> X[::4, 0] = np.nan
    >>> bool(np.isnan(DLGMImputer(max_epochs=2, random_state=0).fit_transform(X)).any())
    False
    """

    _paper = PAPER_ELBO | {"n_sets": 10}

    def _resolve(self, encoded: Encoded) -> LatentConfig:
        return latent_config(self, *encoded.m.shape, n_sets=int(self.n_sets))

    def _make_model(self, layout: Layout, missing_rate: Tensor, noise: Noise) -> Any:
        from psmvae.models.dlgm import DLGM

        return DLGM(layout, self.config_, missing_rate, noise)
