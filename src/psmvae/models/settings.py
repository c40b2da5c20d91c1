"""What models are made of: settings, made without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from psmvae.kinds import Scale
    from psmvae.nn.settings import MaskModel, Network


@dataclass(frozen=True)
class Settings:
    """What a model is made of.

    ``scale`` is the standard deviation of numeric likelihoods on standardised data, "learned" for
    one a column, or "student" for Student-t likelihoods. ``sees_mask`` says whether the encoders
    see the mask; None leaves it to the mask model. ``regression`` is the network of a regression on
    x_obs that the middle of x_mis comes from; None leaves it to z.
    """

    n_members: int
    n_sets: int
    n_latent: int
    network: Network
    mask: MaskModel
    scale: Scale
    sees_mask: bool | None = None
    regression: Network | None = None


@dataclass(frozen=True)
class PSMVAESettings(Settings):
    """What a PSMVAE is made of; ``pi`` is π' or "rate" for the paper's formula a column.

    ``impute_from`` is the head that missing cells are imputed from where the mask needs no x.
    """

    pi: float | Literal["rate"] = 0.5
    impute_from: Literal["x_obs", "x_mis"] = "x_obs"


@dataclass(frozen=True)
class GAINSettings:
    """What a GAIN is made of; ``alpha`` weighs the squared error of the observed cells."""

    n_members: int
    network: Network
    hint_rate: float
    alpha: float
