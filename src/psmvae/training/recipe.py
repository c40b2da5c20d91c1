"""The protocols between the training loop and a family of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from psmvae.models.batch import Batch
from psmvae.nn.columns import Columns
from psmvae.nn.noise import Noise
from psmvae.training.data import TrainingData


class Trainable(Protocol):
    """A model of several members, an ``nn.Module``; its columns measure the errors."""

    inputs: Columns

    def parameters(self) -> Iterator[nn.Parameter]:
        """Iterate over the parameters; their first axis is the member."""

    def buffers(self) -> Iterator[Tensor]:
        """Iterate over the tensors that are not trained."""

    def predict(self, batch: Batch) -> Tensor:
        """E[statistics(x)] of every cell given the visible ones, ``(member, row, statistic)``."""


@dataclass(frozen=True)
class Pretraining:
    """A first phase that trains some parameters on a separate loss and then freezes them.

    ``loss`` returns ``(member, row)``. ``accept`` is called once at the end of the phase and
    returns, ``(member,)``, whether a member uses the pre-trained parameters. They then determine
    its validation error.
    """

    parameters: list[nn.Parameter]
    loss: Callable[[Batch, Noise], Tensor]
    accept: Callable[[TrainingData], Tensor]


class Recipe(Protocol):
    """How one family of models is trained.

    The training loop calls the methods in this order: `initialise`, `calibration_sample`,
    `pretraining`, `warm_up_parameters`, `loss` in every step, `calibrate`.
    """

    @property
    def model(self) -> Trainable:
        """The model that is trained."""

    def initialise(self, data: TrainingData, noise: Noise) -> None:
        """Set initial weights from the training table, where they are not random."""

    def pretraining(self) -> Pretraining | None:
        """Return the pre-training phase, or None if the model has none."""

    def warm_up_parameters(self) -> list[nn.Parameter]:
        """Return the parameters trained in a warm-up before the epochs; none in most models."""

    def loss(self, batch: Batch, noise: Noise) -> Tensor:
        """Return the loss of each row, ``(member, row)``."""

    def calibration_sample(self, data: TrainingData) -> float:
        """Run a small part of `calibrate` to measure its time, without changing the model."""

    def calibrate(self, data: TrainingData, noise: Noise, fraction: float) -> None:
        """Set what is estimated from validation cells, once the weights are final."""
