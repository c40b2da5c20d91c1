"""The columns of a table in the model's order: blocks of columns with the same likelihood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from psmvae.kinds import KINDS, Block, Column, Distribution, Scale
from psmvae.kinds.block import UnderSigmoid
from psmvae.kinds.tools import invert

LogTilt = Callable[[Tensor, slice], Tensor]
"""Log of a non-negative function of x_j: maps x ``(..., column, node)`` and the slice of the
columns to ``(..., column, node)``."""


class Logistic(NamedTuple):
    """The tilt exp(log_factor) · sigmoid(slope · x_j + offset) of numeric columns.

    ``slope``, ``offset`` and ``log_factor`` (if not a float) are ``(member, 1, 1, set, column)``.
    The expectation of this tilt under a normal x_j is faster than general quadrature.
    """

    slope: Tensor
    offset: Tensor
    log_factor: Tensor | float


Logistics = Callable[[slice], Logistic | None]
"""Maps a slice of columns to their tilt if that is logistic in x_j, otherwise to None."""


@dataclass(frozen=True)
class Layout:
    """The model's column order, in which columns with the same likelihood are adjacent.

    Parameters
    ----------
    columns : tuple of Column
        The columns in the table's order.
    order : tuple of int
        ``order[k]`` is the table position of the model's column k.
    groups : tuple of (str, tuple of Column)
        Kind and columns of each block, in the model's order.
    """

    columns: tuple[Column, ...]
    order: tuple[int, ...]
    groups: tuple[tuple[str, tuple[Column, ...]], ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Layout:
        """Group columns by likelihood and number of levels."""

        def key(position: int) -> tuple[str, int]:
            kind = KINDS[columns[position].kind]
            return kind.likelihood, kind.group(columns[position])

        order = sorted(range(len(columns)), key=lambda position: (*key(position), position))
        groups: list[tuple[str, tuple[Column, ...]]] = []
        last: tuple[str, int] | None = None
        for position in order:
            column = columns[position]
            if key(position) == last:
                kind, members = groups[-1]
                groups[-1] = (kind, (*members, column))
            else:
                groups.append((column.kind, (column,)))
                last = key(position)
        return cls(tuple(columns), tuple(order), tuple(groups))


class Columns(nn.Module):
    """The blocks of a table: features of x, and distributions of x from network outputs.

    Each distribution of x has an instance of its own, because scales are parameters.

    Parameters
    ----------
    layout : Layout
        The columns in the model's order.
    n_members : int
        Members of the ensemble.
    scale : float, "learned", "network" or "student"
        Scale of numeric likelihoods; see `psmvae.kinds.Scale`.
    """

    feature_column: Tensor
    output_column: Tensor
    is_number: Tensor

    def __init__(self, layout: Layout, n_members: int, scale: Scale) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        modules = nn.ModuleList()
        for kind, columns in layout.groups:
            block = KINDS[kind].block(columns, n_members, scale)
            self.blocks.append(block)
            if isinstance(block, nn.Module):
                modules.append(block)
        self.parts = modules
        self.n_columns = sum(block.n_columns for block in self.blocks)
        self.n_features = sum(block.n_columns * block.n_features for block in self.blocks)
        self.n_statistics = sum(block.n_columns * block.n_statistics for block in self.blocks)
        self.n_outputs = sum(block.n_columns * block.n_outputs for block in self.blocks)
        ends = list(accumulate(block.n_columns for block in self.blocks))
        starts = [0, *ends[:-1]]
        self._slices = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
        for what in ("feature", "output"):
            owner: list[int] = []
            for block, where in zip(self.blocks, self.slices(), strict=True):
                for j in range(where.start, where.stop):
                    owner += [j] * getattr(block, f"n_{what}s")
            self.register_buffer(f"{what}_column", torch.tensor(owner), persistent=False)
        number = [not KINDS[kind].has_levels for kind, columns in layout.groups for _ in columns]
        self.register_buffer("is_number", torch.tensor(number), persistent=False)

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
        if self.n_features == self.n_columns:
            return per_column
        return per_column[..., self.feature_column]

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
                log_mean = part.log_mean_sigmoid(tilt.slope, tilt.offset)
                parts.append(log_mean + tilt.log_factor)
                continue
            nodes = part.nodes()
            parts.append(torch.logsumexp(nodes.log_weight + log_tilt(nodes.x, at), -1))
        return joined(parts)

    def tilted(self, log_tilt: LogTilt, logistics: Logistics | None = None) -> Tensor:
        """E[statistics(x)] under densities ∝ p(x_j) exp(log_tilt(x_j)), ``(..., statistic)``.

        ``logistics`` is as in `log_expectation`.
        """
        parts = []
        for block, part, at in zip(
            self.columns.blocks, self.parts, self.columns.slices(), strict=True
        ):
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
        """Draw every cell from its tilted density by inverting the CDF on a grid.

        ``uniform`` and the draws are ``(..., column)``.
        """
        parts = []
        for part, at in zip(self.parts, self.columns.slices(), strict=True):
            nodes = part.fine_nodes()
            weight = torch.softmax(nodes.log_weight + log_tilt(nodes.x, at), -1)
            parts.append(invert(nodes, weight, uniform[..., at]))
        return joined(parts)
