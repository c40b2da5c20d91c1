"""How GAIN is trained."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from psmvae.models.batch import Batch
from psmvae.models.gain import GAIN
from psmvae.nn.noise import Noise
from psmvae.training.recipe import First
from psmvae.training.validation import Table


@dataclass(frozen=True)
class AdversarialRecipe:
    """Trains generator and discriminator together, from random weights."""

    model: GAIN

    def start(self, table: Table, m: Tensor, noise: Noise) -> None:
        """First weights are random."""

    def warm_parameters(self) -> list[nn.Parameter]:
        """Nothing is trained alone."""
        return []

    def first(self) -> First | None:
        """Nor first."""
        return None

    def loss(self, batch: Batch, noise: Noise) -> Tensor:
        """Both losses."""
        return self.model.loss(batch, noise)

    def rehearse(self, table: Table) -> float:
        """There is nothing to finish."""
        del table
        return 0.0

    def finish(self, table: Table, noise: Noise, share: float) -> None:
        """Held-out cells teach nothing more."""
