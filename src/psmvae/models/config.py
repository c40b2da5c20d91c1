"""The resolved configuration of a deep imputer: one frozen object without any "auto".

`psmvae.imputers.resolve` makes it from the parameters of an imputer and the shape of its table.
Models, objectives and the training loop read it, ``describe()`` prints it and model files store it.
It is made without PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from psmvae.nn.architecture import Network
from psmvae.nn.settings import MaskModel, NoMask

if TYPE_CHECKING:
    from psmvae.kinds.base import Scale


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings that every deep model has."""

    # members of the ensemble, trained side by side
    n_members: int
    # architecture of the networks
    network: Network
    # of Adam
    max_epochs: int
    batch_size: int
    learning_rate: float
    # fraction of the observed cells held out to measure the validation error; 0 trains for
    # max_epochs and keeps the last weights
    validation_fraction: float
    # validation cells are taken from the first so many rows only, from all rows if None
    validation_rows: int | None = None
    # epochs in which the validation error does not fall by enough before training stops
    patience: int
    # upper limit of the fraction of a row's observed cells that is masked in the encoder's input
    input_mask_rate: float
    # decay of the running average of the weights that is kept; 0 keeps the weights themselves
    weight_average: float
    # seconds that `fit` may take, and whether they selected the preset that learns fastest
    max_time: float | None = None
    fast_preset: bool = False
    # steps of pre-training of the regression (0 in models without one), the fraction of max_time
    # that they may take, and rows of a step
    pretrain_steps: int = 0
    pretrain_time_fraction: float = 1.0
    pretrain_batch_size: int = 200
    # steps after pre-training, where the regression determines the validation error
    post_pretrain_steps: int = 0

    def pretrain_batches(self, n_rows: int) -> int:
        """Steps of one pass of pre-training over the rows."""
        return n_pretrain_batches(n_rows, self.pretrain_batch_size)


@dataclass(frozen=True, kw_only=True)
class LatentConfig(Config):
    """Settings of the models with latent variables, beside those of `Config`."""

    # number of pattern sets, the values of r
    n_sets: int = 1
    # dimension of z
    n_latent: int
    # p(m | ·), and whether the mask is an input of the encoders (None: the mask model decides)
    mask_model: MaskModel = field(default_factory=NoMask)
    mask_input: bool | None = None
    # likelihood of numeric columns: a Normal with this standard deviation on standardised data, one
    # with a learned standard deviation, or a Student-t
    scale: Scale = "learned"
    # training objective, and draws of z for each row: K of the importance-weighted bound
    objective: Literal["elbo", "iwae"] = "elbo"
    n_train_draws: int = 1
    # weight of the KL terms of z and r
    beta: float = 1.0
    # whether log p(x_obs | z, r) is weighted by 1 / (1 - missing rate)
    weight_observed: bool = False
    # π' of the PSMVAE; "rate" is the paper's formula for each column
    pi: float | Literal["rate"] = 0.5
    # decoder head of the PSMVAE from which missing cells are imputed where the mask does not depend
    # on x
    impute_from: Literal["x_obs", "x_mis"] = "x_obs"
    # network that predicts the conditional mean of x_mis from x_obs
    regression: Network | None = None
    # whether single imputations are averaged with predictions of Gaussian mixtures
    mixture: bool = False
    # rows and EM steps of the factor analysis that gives initial weights
    factor_analysis_rows: int = 3000
    factor_analysis_steps: int = 100


@dataclass(frozen=True, kw_only=True)
class GAINConfig(Config):
    """Settings of GAIN, beside those of `Config`."""

    # probability that the discriminator is given the true mask of a cell
    hint_rate: float
    # weight of the squared error of the observed cells
    alpha: float


def n_pretrain_batches(n_rows: int, batch_size: int) -> int:
    """Steps of one pass over the rows, the last incomplete batch left out."""
    return max(1, n_rows // min(batch_size, n_rows))
