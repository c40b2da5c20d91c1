"""The autoencoders the paper builds up from: VAE, GMVAE (its "HIVAE") and DLGM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from psmvae.imputers import checks
from psmvae.imputers.latent import PAPER, LatentImputer, SetsMixin
from psmvae.models.settings import Settings
from psmvae.nn.settings import LatentMask, NoMask

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.nn.columns import Layout
    from psmvae.nn.noise import Noise

PAPER_ELBO = PAPER | {"n_draws": 1, "scale": 0.5, "beta": 1.0, "weight_observed": True}


@dataclass(kw_only=True, repr=False, eq=False)
class VAEImputer(LatentImputer):
    """Fill in missing values with a variational autoencoder of the observed cells.

    One Gaussian latent z ~ N(0, I), p(x | z), no mask: what is missing is taken to say nothing
    (missing at random).

    Parameters
    ----------
    beta : float, default=0.5
        Weight of the KL term of z; 1 trains the evidence bound itself.
    **parameters
        Those of `LatentImputer` and `DeepImputer`.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import VAEImputer
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(size=(100, 1)) + 0.1 * rng.normal(size=(100, 3))
    >>> table[rng.random(table.shape) < 0.2] = np.nan
    >>> filled = VAEImputer(max_epochs=2, random_state=0).fit_transform(table)
    >>> bool(np.isnan(filled).any())
    False
    """

    beta: float = 0.5

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """An imputer with the paper's hyperparameters, some of them overridden.

        Examples
        --------
        >>> VAEImputer.paper(max_epochs=10).n_latent
        20
        """
        return cls(**(PAPER_ELBO | overrides))

    def _settings(self, n_rows: int, n_columns: int) -> Settings:
        return Settings(**self._shared_settings(n_rows, n_columns))


@dataclass(kw_only=True, repr=False, eq=False)
class GMVAEImputer(SetsMixin, LatentImputer):
    """Fill in missing values with a VAE whose prior is a mixture of Gaussians.

    p(r) p(z|r) p(x|z,r), with r integrated out. With the likelihoods of the columns' kinds this is
    a HI-VAE without Gumbel-softmax draws of r; on tables of numbers it is the paper's "HIVAE".

    Parameters
    ----------
    mask : bool, default=False
        Model the mask too, p(m|z,r), and show it to the encoders: the paper's "HIVAE w. M".
    beta : float, default=0.5
        Weight of the KL terms of z and r; 1 trains the evidence bound itself.
    n_sets : int, default=4
        Number of components, the values of r.
    **parameters
        Those of `LatentImputer` and `DeepImputer`.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import GMVAEImputer
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(size=(100, 1)) + 0.1 * rng.normal(size=(100, 3))
    >>> table[rng.random(table.shape) < 0.2] = np.nan
    >>> imputer = GMVAEImputer(mask=True, n_sets=2, max_epochs=2, random_state=0).fit(table)
    >>> imputer.predict_set_proba(table).shape
    (100, 2)
    """

    mask: bool = field(default=False, kw_only=False)
    beta: float = 0.5

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """An imputer with the paper's hyperparameters, some of them overridden.

        Examples
        --------
        >>> GMVAEImputer.paper(mask=True).n_sets
        10
        """
        return cls(**(PAPER_ELBO | {"n_sets": 10} | overrides))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.yes_or_no("mask", self.mask)

    def _settings(self, n_rows: int, n_columns: int) -> Settings:
        mask = LatentMask() if self.mask else NoMask()
        own = {"n_sets": int(self.n_sets), "mask": mask}
        return Settings(**(self._shared_settings(n_rows, n_columns) | own))


@dataclass(kw_only=True, repr=False, eq=False)
class DLGMImputer(SetsMixin, LatentImputer):
    """Fill in missing values with the paper's deep latent Gaussian model.

    A `GMVAEImputer` with a second Gaussian latent w, p(w|z,r), of one dimension a column, inferred
    as PSMVAE infers x_mis. As the paper writes the model, x does not depend on w: the bound is that
    of PSMVAE without a mask at π' = 1, and at its optimum the GMVAE's. It is here as the step
    between the two, to compare with.

    Parameters
    ----------
    beta : float, default=0.5
        Weight of the KL terms of z and r; 1 trains the evidence bound itself.
    n_sets : int, default=4
        Number of components, the values of r.
    **parameters
        Those of `LatentImputer` and `DeepImputer`.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import DLGMImputer
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(size=(100, 1)) + 0.1 * rng.normal(size=(100, 3))
    >>> table[rng.random(table.shape) < 0.2] = np.nan
    >>> filled = DLGMImputer(max_epochs=2, random_state=0).fit_transform(table)
    >>> bool(np.isnan(filled).any())
    False
    """

    beta: float = 0.5

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """An imputer with the paper's hyperparameters, some of them overridden.

        Examples
        --------
        >>> DLGMImputer.paper().n_sets
        10
        """
        return cls(**(PAPER_ELBO | {"n_sets": 10} | overrides))

    def _settings(self, n_rows: int, n_columns: int) -> Settings:
        own = {"n_sets": int(self.n_sets)}
        return Settings(**(self._shared_settings(n_rows, n_columns) | own))

    def _make(self, layout: Layout, settings: Settings, missing_rate: Tensor, noise: Noise) -> Any:
        from psmvae.models.dlgm import DLGM

        return DLGM(layout, settings, missing_rate, noise)
