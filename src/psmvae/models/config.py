"""The resolved configuration of a deep imputer: one frozen object without any "auto".

`psmvae.imputers.resolve` makes it from the parameters of an imputer and the shape of its table.
Models, objectives and the training loop read it, ``describe()`` prints it and model files store it.
It is made without PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from psmvae.nn.settings import MaskModel, Network, NoMask

if TYPE_CHECKING:
    from psmvae.kinds import Scale


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings that every deep model has.

    Parameters
    ----------
    n_members : int
        Members of the ensemble, trained side by side.
    network : Network
        Architecture of the networks.
    max_epochs, batch_size, learning_rate
        Of Adam.
    validation_fraction : float
        Fraction of the observed cells held out to measure the validation error. 0 trains for
        ``max_epochs`` and keeps the last weights.
    validation_rows : int or None
        Validation cells are taken from the first so many rows only. None takes them from all rows.
    patience : int
        Epochs without a lower validation error before training stops.
    input_mask_rate : float
        Upper limit of the fraction of a row's observed cells that is masked in the encoder's input.
    weight_average : float
        Decay of the running average of the weights that is kept. 0 keeps the weights themselves.
    bootstrap : bool
        Train each member on rows drawn with replacement.
    max_time : float or None
        Seconds that `fit` may take.
    fast_preset : bool
        Whether ``max_time`` selected the preset that learns fastest.
    """

    n_members: int
    network: Network
    max_epochs: int
    batch_size: int
    learning_rate: float
    validation_fraction: float
    validation_rows: int | None = None
    patience: int
    input_mask_rate: float
    weight_average: float
    bootstrap: bool = False
    max_time: float | None = None
    fast_preset: bool = False

    # no pre-training, unless a subclass has it
    pretrain_steps: int = 0
    pretrain_time_fraction: float = 1.0
    pretrain_batch_size: int = 200
    post_pretrain_steps: int = 0

    def pretrain_batches(self, n_rows: int) -> int:
        """Steps of one pass of pre-training over the rows."""
        return n_pretrain_batches(n_rows, self.pretrain_batch_size)


@dataclass(frozen=True, kw_only=True)
class LatentConfig(Config):
    """Settings of the models with latent variables, beside those of `Config`.

    Parameters
    ----------
    n_sets : int
        Number of pattern sets, the values of r.
    n_latent : int
        Dimension of z.
    mask_model : MaskModel
        p(m | ·).
    mask_input : bool or None
        Whether the encoders see the mask. None leaves this to the mask model.
    scale : float, "learned" or "student"
        Likelihood of numeric columns: a Normal with this standard deviation on standardised data,
        one with a learned standard deviation, or a Student-t.
    objective : {"elbo", "iwae"}
        Training objective.
    n_train_draws : int
        Draws of z for each row in training, K of the importance-weighted bound.
    beta : float
        Weight of the KL terms of z and r.
    weight_observed : bool
        Weight log p(x_obs | z, r) by 1 / (1 - missing rate).
    pi : float or "rate"
        π' of the PSMVAE; "rate" is the paper's formula for each column.
    impute_from : {"x_obs", "x_mis"}
        Decoder head of the PSMVAE from which missing cells are imputed where the mask does not
        depend on x.
    regression : Network or None
        Network that predicts the conditional mean of x_mis from x_obs.
    factor_analysis_rows, factor_analysis_steps : int
        Rows and EM steps of the factor analysis that gives initial weights.
    pretrain_steps : int
        Steps of pre-training of ``regression``.
    pretrain_time_fraction : float
        Fraction of ``max_time`` that pre-training may take.
    pretrain_batch_size : int
        Rows of a step of pre-training.
    post_pretrain_steps : int
        Steps after pre-training, where the regression determines the validation error.
    """

    n_sets: int = 1
    n_latent: int
    mask_model: MaskModel = field(default_factory=NoMask)
    mask_input: bool | None = None
    scale: Scale = "learned"
    objective: Literal["elbo", "iwae"] = "elbo"
    n_train_draws: int = 1
    beta: float = 1.0
    weight_observed: bool = False
    pi: float | Literal["rate"] = 0.5
    impute_from: Literal["x_obs", "x_mis"] = "x_obs"
    regression: Network | None = None
    factor_analysis_rows: int = 3000
    factor_analysis_steps: int = 100


@dataclass(frozen=True, kw_only=True)
class GAINConfig(Config):
    """Settings of GAIN, beside those of `Config`.

    Parameters
    ----------
    hint_rate : float
        Probability that the discriminator is given the true mask of a cell.
    alpha : float
        Weight of the squared error of the observed cells.
    """

    hint_rate: float
    alpha: float


def n_pretrain_batches(n_rows: int, batch_size: int) -> int:
    """Steps of one pass over the rows, the last incomplete batch left out."""
    return max(1, n_rows // min(batch_size, n_rows))
