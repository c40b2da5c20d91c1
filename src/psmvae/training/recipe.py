"""What the training loop asks of a model: where it starts, its loss, its cheap prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from psmvae.models.batch import Batch
from psmvae.nn.columns import Columns
from psmvae.nn.noise import Noise
from psmvae.training.validation import Table


class Trainable(Protocol):
    """A model of several members; an ``nn.Module``."""

    inputs: Columns

    def parameters(self) -> Iterator[nn.Parameter]:
        """What is trained."""
        ...

    def predict(self, batch: Batch) -> Tensor:
        """E[statistics(x)] of every cell from what is visible, ``(member, row, statistic)``."""
        ...


@dataclass(frozen=True)
class First:
    """Parameters that are trained alone, and the loss of each row for them, ``(member, row)``.

    ``judge`` is asked when they are trained, for each member: whether they decide its held-out
    error from then on. ``gradient``, where it is known without autograd, is written into tensors
    shaped as the parameters.
    """

    parameters: list[nn.Parameter]
    loss: Callable[[Batch, Noise], Tensor]
    judge: Callable[[Table], Tensor]
    gradient: Callable[[Batch, Sequence[Tensor]], None] | None = None


class Recipe(Protocol):
    """How one family of models is trained."""

    @property
    def model(self) -> Trainable:
        """What is trained."""
        ...

    def start(self, table: Table, m: Tensor, noise: Noise) -> None:
        """Set first weights from the table, where that pays."""
        ...

    def warm_parameters(self) -> list[nn.Parameter]:
        """What is trained alone at first; nothing in most models."""
        ...

    def first(self) -> First | None:
        """What is trained first, on a loss of its own; nothing in most models."""
        ...

    def loss(self, batch: Batch, noise: Noise) -> Tensor:
        """The loss of each row, ``(member, row)``."""
        ...

    def rehearse(self, table: Table) -> float:
        """Do a part of what `finish` does, and return how many such parts it comes to."""
        ...

    def finish(self, table: Table, noise: Noise, share: float) -> None:
        """Learn from the held-out cells what only they can teach, when the weights are final.

        ``share`` below 1 asks for so much of the work only, where time is short.
        """
        ...
