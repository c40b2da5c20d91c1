"""The training recipe of GAIN."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from psmvae.models.batch import Batch
from psmvae.models.gain import GAIN
from psmvae.nn.noise import Noise
from psmvae.training.data import TrainingData
from psmvae.training.recipe import Pretraining


@dataclass(frozen=True)
class AdversarialRecipe:
    """Train generator and discriminator together, from random weights."""

    model: GAIN

    def initialise(self, data: TrainingData, noise: Noise) -> None:
        """Keep the random initial weights."""

    def pretraining(self) -> Pretraining | None:
        """Return None: there is no pre-training."""
        return None

    def warm_up_parameters(self) -> list[nn.Parameter]:
        """Return no parameters: there is no warm-up."""
        return []

    def loss(self, batch: Batch, noise: Noise) -> Tensor:
        """Return the sum of both losses for each row, ``(member, row)``."""
        return self.model.loss(batch, noise)

    def calibration_sample(self, data: TrainingData) -> float:
        """Return 0: there is no calibration."""
        del data
        return 0.0

    def calibrate(self, data: TrainingData, noise: Noise, fraction: float) -> None:
        """Do nothing: GAIN has no parameter that is estimated from validation cells."""
