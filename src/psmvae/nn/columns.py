"""The columns of a table in the model's order: blocks of columns with the same likelihood."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from psmvae.kinds import KINDS
from psmvae.kinds.base import Block, Column, Distribution, Scale, UnderSigmoid
from psmvae.kinds.tools import invert

LogTilt = Callable[[Tensor, slice], Tensor]
"""Log of a non-negative function of x_j: maps x ``(..., column, node)`` and the slice of the
columns to ``(..., column, node)``."""


class Logistic(NamedTuple):
    """The tilt exp(log_factor) · sigmoid(slope · x_j + offset), ``(member, 1, 1, set, column)``.

    Its expectation under a normal x_j is faster than general quadrature.
    """

    slope: Tensor
    offset: Tensor
    log_factor: Tensor | float


Logistics = Callable[[slice], Logistic | None]
"""Maps a slice of columns to their tilt if that is logistic in x_j, otherwise to None."""


@dataclass(frozen=True)
class Layout:
    """The model's column order, in which columns with the same likelihood are adjacent."""

    # in the table's order
    columns: tuple[Column, ...]
    # order[k] is the table position of the model's column k
    order: tuple[int, ...]
    # kind and columns of each block, in the model's order
    groups: tuple[tuple[str, tuple[Column, ...]], ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Layout:
        """Group columns by likelihood and number of levels."""

        def key(position: int) -> tuple[str, int]:
            kind = KINDS[columns[position].kind]
            return kind.likelihood, kind.group(columns[position])

        # sorting is stable: columns of a block keep the table's order
        order = sorted(range(len(columns)), key=key)
        blocks = [tuple(columns[k] for k in block) for _, block in groupby(order, key)]
        groups = tuple((block[0].kind, block) for block in blocks)
        return cls(tuple(columns), tuple(order), groups)


class Columns(nn.Module):
    """Features of x, and a distribution of x given network outputs; its scales are parameters."""

    feature_column: Tensor
    output_column: Tensor
    is_number: Tensor

    def __init__(self, layout: Layout, n_members: int, scale: Scale) -> None:
        super().__init__()
        self.blocks: list[Block] = [
            KINDS[kind].block(columns, n_members, scale) for kind, columns in layout.groups
        ]
        self.parts = nn.ModuleList(b for b in self.blocks if isinstance(b, nn.Module))
        # the column of each feature and of each output, and the columns of each block
        owners: dict[str, list[int]] = {"feature_column": [], "output_column": []}
        self._slices: list[slice] = []
        self.n_columns = 0
        for block in self.blocks:
            at = range(self.n_columns, self.n_columns + block.n_columns)
            owners["feature_column"] += [j for j in at for _ in range(block.n_features)]
            owners["output_column"] += [j for j in at for _ in range(block.n_outputs)]
            self._slices.append(slice(at.start, at.stop))
            self.n_columns = at.stop
        for name, owner in owners.items():
            self.register_buffer(name, torch.tensor(owner), persistent=False)
        self.n_features, self.n_outputs = (len(owner) for owner in owners.values())
        self.n_statistics = sum(block.n_columns * block.n_statistics for block in self.blocks)
        groups = layout.groups
        self.numbers = [not KINDS[kind].has_levels for kind, columns in groups for _ in columns]
        self.register_buffer("is_number", torch.tensor(self.numbers), persistent=False)

    def slices(self) -> list[slice]:
        """Columns of each block."""
        return self._slices

    def features(self, x: Tensor) -> Tensor:
        """Network inputs: ``(..., column) -> (..., feature)``."""
        pairs = zip(self.blocks, self.slices(), strict=True)
        return joined([block.features(x[..., at]).flatten(-2) for block, at in pairs])

    def statistics(self, x: Tensor) -> Tensor:
        """Values that are averaged for a point estimate: ``(..., column) -> (..., statistic)``."""
        pairs = zip(self.blocks, self.slices(), strict=True)
        return joined([block.statistics(x[..., at]).flatten(-2) for block, at in pairs])

    def per_feature(self, per_column: Tensor) -> Tensor:
        """Repeat a value of each column for its features: ``(..., column) -> (..., feature)``."""
        one_each = self.n_features == self.n_columns
        return per_column if one_each else per_column[..., self.feature_column]

    def split(
        self, flat: Tensor, what: Literal["features", "statistics", "outputs"]
    ) -> list[Tensor]:
        """Split an axis of features, statistics or outputs: ``(..., column, k)`` of each block."""
        sizes = [(b.n_columns, getattr(b, f"n_{what}")) for b in self.blocks]
        parts = flat.split([n * k for n, k in sizes], -1)
        return [part.unflatten(-1, size) for part, size in zip(parts, sizes, strict=True)]

    def forward(self, outputs: Tensor) -> Cells:
        """Distribution of every cell, from decoder outputs ``(..., output)``."""
        parts = self.split(outputs, "outputs")
        return Cells([block(part) for block, part in zip(self.blocks, parts, strict=True)], self)

    def point(self, expected: Tensor) -> Tensor:
        """Point estimate from E[statistics]: ``(..., statistic) -> (..., column)``."""
        parts = self.split(expected, "statistics")
        return joined([b.point(part) for b, part in zip(self.blocks, parts, strict=True)])

    def error(self, expected: Tensor, x: Tensor) -> Tensor:
        """Squared error of E[statistics] ``(..., statistic)`` given x, ``(..., column)``."""
        parts = self.split(expected, "statistics")
        rows = zip(self.blocks, parts, self.slices(), strict=True)
        return joined([b.error(part, x[..., at]) for b, part, at in rows])


def joined(parts: list[Tensor]) -> Tensor:
    """Concatenate along the last axis. A single part is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, -1)


@dataclass(frozen=True)
class Cells:
    """Distribution of every cell of x given z and r, independent across cells, block by block."""

    parts: list[Distribution]
    columns: Columns

    def map(self, function: Callable[[Tensor], Tensor]) -> Cells:
        """Apply a function to every tensor of parameters."""
        parts = []
        for part in self.parts:
            tensors = {k: function(v) for k, v in vars(part).items() if isinstance(v, Tensor)}
            parts.append(dataclasses.replace(part, **tensors))  # type: ignore[type-var]
        return Cells(parts, self.columns)

    def log_prob(self, x: Tensor) -> Tensor:
        """Log p(x_j | ·), ``(..., column)``."""
        pairs = zip(self.parts, self.columns.slices(), strict=True)
        return joined([part.log_prob(x[..., at]) for part, at in pairs])

    def kl(self, other: Cells) -> Tensor:
        """KL(self || other), ``(..., column)``."""
        return joined([p.kl(q) for p, q in zip(self.parts, other.parts, strict=True)])

    def expected(self) -> Tensor:
        """E[statistics(x)], ``(..., statistic)``."""
        return joined([part.expected().flatten(-2) for part in self.parts])

    def sample(self, uniform: Tensor) -> Tensor:
        """Draw every cell by inverting its CDF at uniform numbers ``(..., column)``."""
        pairs = zip(self.parts, self.columns.slices(), strict=True)
        return joined([part.sample(uniform[..., at]) for part, at in pairs])

    def log_expectation(self, log_tilt: LogTilt, logistics: Logistics | None = None) -> Tensor:
        """Log E[exp(log_tilt(x_j))] of every cell, ``(..., column)``.

        ``logistics`` gives the same tilt for columns where it is logistic.
        """
        parts = []
        for part, at in zip(self.parts, self.columns.slices(), strict=True):
            tilt = None if logistics is None else logistics(at)
            if tilt is not None and isinstance(part, UnderSigmoid):
                parts.append(part.log_mean_sigmoid(tilt.slope, tilt.offset) + tilt.log_factor)
            else:
                nodes = part.nodes()
                parts.append(torch.logsumexp(nodes.log_weight + log_tilt(nodes.x, at), -1))
        return joined(parts)

    def tilted(self, log_tilt: LogTilt, logistics: Logistics | None = None) -> Tensor:
        """E[statistics(x)] under densities ∝ p(x_j) exp(log_tilt(x_j)), ``(..., statistic)``.

        ``logistics`` is as in `log_expectation`.
        """
        parts, slices = [], self.columns.slices()
        for block, part, at in zip(self.columns.blocks, self.parts, slices, strict=True):
            tilt = None if logistics is None else logistics(at)
            if tilt is not None and isinstance(part, UnderSigmoid):
                parts.append(part.expected_by_sigmoid(tilt.slope, tilt.offset).flatten(-2))
                continue
            nodes = part.nodes()
            weight = torch.softmax(nodes.log_weight + log_tilt(nodes.x, at), -1)
            # (..., node, column): Block.statistics takes the column as the last axis
            statistics = block.statistics(nodes.x.transpose(-1, -2))
            expected = (weight.transpose(-1, -2).unsqueeze(-1) * statistics).sum(-3)
            parts.append(expected.flatten(-2))
        return joined(parts)

    def tilted_sample(self, log_tilt: LogTilt, uniform: Tensor) -> Tensor:
        """Draw every cell ``(..., column)`` from its tilted density by inverting its CDF."""
        parts = []
        for part, at in zip(self.parts, self.columns.slices(), strict=True):
            nodes = part.fine_nodes()
            weight = torch.softmax(nodes.log_weight + log_tilt(nodes.x, at), -1)
            parts.append(invert(nodes, weight, uniform[..., at]))
        return joined(parts)
