"""Binary and categorical columns: codes of levels, with a softmax likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from psmvae.kinds.base import X_LIMIT, Column, Nodes, Scale

# A level never seen together with something still keeps this share when logits are started.
MIN_SHARE = 1e-3


@dataclass(frozen=True)
class Categorical:
    """Softmax over levels a cell; ``log_p`` is ``(..., column, level)`` and normalised."""

    log_p: Tensor

    def log_prob(self, x: Tensor) -> Tensor:
        """Log probability of the code x."""
        shape = torch.broadcast_shapes(self.log_p.shape[:-1], x.shape)
        codes = x.long().expand(shape).unsqueeze(-1)
        return self.log_p.expand(*shape, -1).gather(-1, codes).squeeze(-1)

    def expected(self) -> Tensor:
        """The levels' probabilities."""
        return self.log_p.exp()

    def kl(self, other: Categorical) -> Tensor:
        """Σ p log(p / q); a padded level has p = 0 on both sides and adds nothing."""
        ratio = torch.where(self.log_p.isneginf(), 0.0, self.log_p - other.log_p)
        return (self.log_p.exp() * ratio).sum(-1)

    def nodes(self) -> Nodes:
        """Every level with its probability: exact."""
        codes = torch.arange(self.log_p.shape[-1], device=self.log_p.device).to(self.log_p.dtype)
        return Nodes(codes.expand(self.log_p.shape), self.log_p)

    def fine_nodes(self) -> Nodes:
        """The same: nothing is finer than the levels."""
        return self.nodes()

    def sample(self, uniform: Tensor) -> Tensor:
        """The level where the cumulative probability passes u."""
        passed = uniform.unsqueeze(-1) >= self.log_p.exp().cumsum(-1)
        last = (~self.log_p.isneginf()).sum(-1) - 1
        return torch.minimum(passed.sum(-1), last).to(uniform.dtype)


class CategoricalBlock(nn.Module):
    """A group of columns with levels, padded to the largest number of levels among them."""

    exists: Tensor

    def __init__(self, n_levels: Sequence[int]) -> None:
        super().__init__()
        self.n_columns = len(n_levels)
        self.n_features = self.n_statistics = self.n_outputs = self.n_nodes = max(n_levels)
        exists = torch.arange(max(n_levels)) < torch.tensor(n_levels).unsqueeze(-1)
        self.register_buffer("exists", exists, persistent=False)

    def forward(self, outputs: Tensor) -> Categorical:
        """The softmax of the outputs, levels that do not exist left out."""
        return Categorical(torch.log_softmax(outputs.masked_fill(~self.exists, -torch.inf), -1))

    def features(self, x: Tensor) -> Tensor:
        """One-hot codes."""
        return nn.functional.one_hot(x.long(), self.n_features).to(x.dtype)

    def statistics(self, x: Tensor) -> Tensor:
        """One-hot codes, whose mean are probabilities."""
        return self.features(x)

    def point(self, expected: Tensor) -> Tensor:
        """The most probable level."""
        return expected.argmax(-1).to(expected.dtype)

    def error(self, expected: Tensor, x: Tensor) -> Tensor:
        """Half the Brier score: 0 when certain and right, 1 when certain and wrong."""
        return 0.5 * (expected - self.features(x)).square().sum(-1)

    def linear_start(self, mean: Tensor, loading: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities to first order: log(p + w z) ≈ log p + w z / p."""
        share = mean.clamp(min=MIN_SHARE)
        return share.log(), (loading / share.unsqueeze(1)).clamp(-3.0, 3.0)

    def start_scale(self, scale: Tensor) -> None:
        """A softmax has no scale."""


class Levels:
    """A fixed set of levels."""

    name = "categorical"
    has_levels = True
    likelihood = "softmax"
    domain = "levels"
    limit = X_LIMIT

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Codes are known to be levels."""
        return np.zeros(values.shape, dtype=bool)

    def learn(self, values: NDArray[np.float64], column: Column) -> Column:
        """Codes are not standardised."""
        del values
        return column

    def standardise(self, values: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """The code."""
        del column
        return values

    def restore(self, x: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """The code, held inside the levels."""
        return np.clip(np.rint(x), 0, column.n_levels - 1)

    def log_jacobian(
        self, column: Column, x: NDArray[np.floating] | float = 0.0
    ) -> NDArray[np.float64]:
        """A probability has no units."""
        del column
        return np.zeros(np.shape(x))

    def group(self, column: Column) -> int:
        """Columns are padded to a common width: those of like size (2, 4, 8, …) go together."""
        return max(column.n_levels - 1, 0).bit_length()

    def block(self, columns: Sequence[Column], n_members: int, scale: Scale) -> CategoricalBlock:
        """A softmax block."""
        del n_members, scale
        return CategoricalBlock([max(column.n_levels, 1) for column in columns])


class Binary(Levels):
    """Two levels."""

    name = "binary"
