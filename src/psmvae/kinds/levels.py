"""Binary and categorical columns: codes of levels, with a softmax likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from psmvae.kinds.base import X_LIMIT, Column, Floats, Nodes, Scale
from psmvae.kinds.tools import add_constants

# Smallest probability of a level when logits are initialised.
MIN_SHARE = 1e-3


@dataclass(frozen=True)
class Categorical:
    """Probabilities of levels for each cell; ``log_p`` ``(..., column, level)`` is normalised."""

    log_p: Tensor

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log probability of the code x."""
        # not torch.broadcast_shapes: its first call imports sympy, which takes half a second
        _, codes = torch.broadcast_tensors(self.log_p[..., 0], x.long())
        log_p = self.log_p.expand(*codes.shape, -1)
        return log_p.gather(-1, codes.unsqueeze(-1)).squeeze(-1)

    def expected(self) -> Tensor:
        """Return the probabilities of the levels."""
        return self.log_p.exp()

    def kl(self, other: Categorical) -> Tensor:
        """Return Σ p log(p / q); a padding level has p = q = 0 and adds nothing."""
        ratio = torch.where(self.log_p.isneginf(), 0.0, self.log_p - other.log_p)
        return (self.log_p.exp() * ratio).sum(-1)

    def nodes(self) -> Nodes:
        """Return every level with its probability, which is exact."""
        codes = torch.arange(self.log_p.shape[-1], device=self.log_p.device).to(self.log_p.dtype)
        return Nodes(codes.expand(self.log_p.shape), self.log_p)

    fine_nodes = nodes

    def sample(self, uniform: Tensor) -> Tensor:
        """Return the level where the cumulative probability exceeds u."""
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
        n_of_column = torch.tensor(n_levels).unsqueeze(-1)
        add_constants(self, exists=torch.arange(max(n_levels)) < n_of_column)

    def forward(self, outputs: Tensor) -> Categorical:
        """Return the softmax of the outputs, without padding levels."""
        return Categorical(torch.log_softmax(outputs.masked_fill(~self.exists, -torch.inf), -1))

    def features(self, x: Tensor) -> Tensor:
        """Return one-hot codes."""
        return nn.functional.one_hot(x.long(), self.n_features).to(x.dtype)

    # the mean of one-hot codes is a vector of probabilities
    statistics = features

    def point(self, expected: Tensor) -> Tensor:
        """Return the most probable level."""
        return expected.argmax(-1).to(expected.dtype)

    def error(self, expected: Tensor, x: Tensor) -> Tensor:
        """Return half the Brier score: between 0 (certain and right) and 1 (certain and wrong)."""
        return 0.5 * (expected - self.features(x)).square().sum(-1)

    def linear_start(self, mean: Tensor, loading: Tensor) -> tuple[Tensor, Tensor]:
        """Return log probabilities to first order: log(p + w z) ≈ log p + w z / p."""
        share = mean.clamp(min=MIN_SHARE)
        return share.log(), (loading / share.unsqueeze(1)).clamp(-3.0, 3.0)

    def start_scale(self, scale: Tensor) -> None:
        """Do nothing: a softmax has no scale."""


class Levels:
    """A fixed set of levels without an order."""

    name = "categorical"
    has_levels = True
    likelihood = "softmax"
    domain = "levels"
    limit = X_LIMIT

    def outside(self, values: Floats) -> NDArray[np.bool_]:
        """Return False: codes are always valid."""
        return np.zeros(values.shape, dtype=bool)

    def learn(self, values: Floats, column: Column) -> Column:
        """Return the column as it is: codes are not standardised."""
        del values
        return column

    def standardise(self, values: Floats, column: Column) -> Floats:
        """Return the code."""
        del column
        return values

    def restore(self, x: Floats, column: Column) -> Floats:
        """Return the nearest code of a level."""
        return np.clip(np.rint(x), 0, column.n_levels - 1)

    def log_jacobian(self, column: Column, x: NDArray[np.floating] | float = 0.0) -> Floats:
        """Return 0: probabilities have no units."""
        del column
        return np.zeros(np.shape(x))

    def group(self, column: Column) -> int:
        """Return the size class (2, 4, 8, … levels): blocks are padded to their largest column."""
        return max(column.n_levels - 1, 0).bit_length()

    def block(self, columns: Sequence[Column], n_members: int, scale: Scale) -> CategoricalBlock:
        """Return a softmax block."""
        del n_members, scale
        return CategoricalBlock([max(column.n_levels, 1) for column in columns])


class Binary(Levels):
    """Two levels."""

    name = "binary"
