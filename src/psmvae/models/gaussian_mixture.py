"""Mixture of multivariate Normal distributions for tables with missing cells."""

# ruff: noqa: SLF001 (other objects of the same class)

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

# Iterations of EM of the common mean and covariance, the variance that is added to the latter, and
# the spread of the first means of the components in standard deviations.
N_FIRST_ITERATIONS, RIDGE, SPREAD = 15, 1e-3, 0.65
# Cycles of two iterations that are not extrapolated, while components still move far; the largest
# step length of the extrapolation; and the fraction to which it may shrink a covariance.
N_PLAIN_CYCLES, MAX_ALPHA, MIN_SHRINKAGE = 4, 4.0, 0.3
# Variance of standardised columns that is added to each component: in single precision, matrices of
# a larger condition number cannot be inverted.
MIN_VARIANCE = 1e-4
# Number of values of the largest tensor of a chunk of rows; larger ones leave the cache of a CPU.
CHUNK_SIZE = {"cpu": 2**20, "cuda": 2**24}


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """A mixture of Normal distributions with full covariances, fitted by EM.

    Missing cells are integrated out, so that the conditional mean of a row needs no network that
    has seen its pattern of missing cells. Covariances are shrunk towards that of all rows.

    Attributes
    ----------
    log_weight : Tensor of shape (n_components,)
        Logarithms of the weights of the components.
    mean : Tensor of shape (n_components, n_columns)
        Means.
    covariance : Tensor of shape (n_components, n_columns, n_columns)
        Covariances.
    """

    log_weight: Tensor
    mean: Tensor
    covariance: Tensor

    @classmethod
    def fit(
        cls,
        x: Tensor,
        m: Tensor,
        n_components: int,
        *,
        prior_rows: float,
        n_cycles: int,
        generator: torch.Generator,
        normal: Self | None = None,
    ) -> Self:
        """Fit to the observed cells of ``x, m`` ``(row, column)``, standardised columns.

        A cycle is two iterations of EM and an extrapolation of them (SQUAREM, Varadhan and Roland
        2008). EM alone takes several times as many iterations where most cells are missing.

        Parameters
        ----------
        x, m : Tensor of shape (n_rows, n_columns)
            Values and mask.
        n_components : int
            Number of components.
        prior_rows : float
            Number of rows that the common covariance counts for in each component.
        n_cycles : int
            Cycles of two iterations of EM.
        generator : torch.Generator
            Draws the first means.
        normal : GaussianMixture, optional
            One component, around whose mean the others begin; by default that of `normal`.
        """
        one = normal or cls.normal(x, m)
        common = one.covariance[0] + RIDGE * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        noise = torch.randn(n_components, x.shape[1], generator=generator, dtype=torch.float64)
        root = torch.linalg.cholesky(common)
        # the components begin apart, and together have the common covariance
        first = cls(
            x.new_full((n_components,), -math.log(n_components)),
            one.mean + SPREAD * noise.to(x) @ root.T,
            ((1 - SPREAD**2) * common).repeat(n_components, 1, 1),
        )
        rows, found = list(_groups(m, n_components)), first
        for k in range(n_cycles):
            max_alpha = 1.0 if k < N_PLAIN_CYCLES else MAX_ALPHA
            found = found._cycle(x, rows, common, prior_rows, max_alpha)
        return found._step(x, rows, common, prior_rows)

    @classmethod
    def normal(cls, x: Tensor, m: Tensor) -> Self:
        """Return one Normal after a few iterations of EM; the parameters are those of `fit`."""
        identity = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        one = cls(x.new_zeros(1), x.new_zeros(1, x.shape[1]), (1 + RIDGE) * identity[None])
        rows = list(_groups(m, 1))
        for _ in range(N_FIRST_ITERATIONS):
            one = one._step(x, rows, RIDGE * identity, 1.0)
        return one

    def update(self, x: Tensor, m: Tensor, *, prior_rows: float, n_iterations: int) -> Self:
        """Return the mixture after more iterations of EM; the parameters are those of `fit`."""
        weight, mean = self.log_weight.exp()[:, None], self.mean
        away = mean - (weight * mean).sum(0)
        common = (weight[..., None] * self.covariance).sum(0) + (weight * away).T @ away
        rows, found = list(_groups(m, len(mean))), self
        for _ in range(n_iterations):
            found = found._step(x, rows, common, prior_rows)
        return found

    def predict(self, x: Tensor, m: Tensor, *, observed: bool = False) -> Tensor:
        """Return the conditional means of missing cells given the observed cells of their rows.

        With ``observed``, those of observed cells given the others too; otherwise their values.
        """
        expected, precision = x.clone(), Precision.of(self)
        for rows in _groups(m, len(self.mean)):
            part = rows.evaluate(self, precision, x)
            weight = torch.softmax(part.log_p, 0)
            found = (weight[..., None] * rows.conditional_mean(self, part)).sum(0)
            if observed:
                solved, diagonal = rows.solved(self, precision, part)
                variance = 1 / diagonal.clamp(min=1e-12)
                residual = solved * variance
                own = -0.5 * (residual.square() / variance + variance.log())
                # the weights of the components without the cell
                without = torch.softmax(part.log_p[..., None] - own, 0)
                own_mean = x[rows.rows] - (without * residual).sum(0)
                found = torch.where(rows.observed > 0, own_mean, found)
                expected[rows.rows] = found
            else:
                expected[rows.rows] = torch.where(rows.observed > 0, x[rows.rows], found)
        return expected

    def _cycle(
        self,
        x: Tensor,
        groups: Sequence[ObservedBlock | MissingBlock],
        common: Tensor,
        prior_rows: float,
        max_alpha: float,
    ) -> Self:
        """Return the mixture after two iterations of EM and their extrapolation.

        With ``max_alpha=1`` nothing is extrapolated; larger values limit the step length.
        Components whose covariance would become too small are not extrapolated.
        """
        one = self._step(x, groups, common, prior_rows)
        two = one._step(x, groups, common, prior_rows)
        first = [one.mean - self.mean, one.covariance - self.covariance]
        second = [
            two.mean - one.mean - first[0],
            two.covariance - one.covariance - first[1],
        ]
        size, change = (
            parts[0].square().sum() + parts[1].square().sum() for parts in (first, second)
        )
        alpha = (size / change.clamp(min=1e-30)).sqrt().clamp(1.0, max_alpha)
        mean = self.mean + 2 * alpha * first[0] + alpha**2 * second[0]
        covariance = self.covariance + 2 * alpha * first[1] + alpha**2 * second[1]
        margin = covariance - MIN_SHRINKAGE * two.covariance
        valid = torch.linalg.cholesky_ex(margin).info == 0
        return type(self)(
            two.log_weight,
            torch.where(valid[:, None], mean, two.mean),
            torch.where(valid[:, None, None], covariance, two.covariance),
        )

    def _step(
        self,
        x: Tensor,
        groups: Sequence[ObservedBlock | MissingBlock],
        common: Tensor,
        prior_rows: float,
    ) -> Self:
        """Return the mixture after one iteration of EM."""
        precision = Precision.of(self)
        size, first = torch.zeros_like(self.log_weight), torch.zeros_like(self.mean)
        second = torch.zeros_like(self.covariance)
        for rows in groups:
            part = rows.evaluate(self, precision, x)
            weight = torch.softmax(part.log_p, 0)
            size += weight.sum(1)
            rows.add_moments(self, part, weight, first, second)
        n = size.clamp(min=1e-6)[:, None]
        step = first / n
        scatter = second - n[..., None] * (step[:, :, None] * step[:, None])
        covariance = (scatter + prior_rows * common) / (n[..., None] + prior_rows)
        covariance.diagonal(dim1=1, dim2=2).add_(MIN_VARIANCE)
        log_weight = ((size + 1) / (size + 1).sum()).log()
        return type(self)(log_weight, self.mean + step, 0.5 * (covariance + covariance.mT))


@dataclass(frozen=True, eq=False)
class Precision:
    """Inverse covariances of the components and the logarithms of their determinants."""

    matrix: Tensor
    log_det: Tensor

    @classmethod
    def of(cls, mixture: GaussianMixture) -> Self:
        """Invert the covariances of a mixture."""
        return cls(
            torch.linalg.inv(mixture.covariance),
            -torch.linalg.slogdet(mixture.covariance).logabsdet,
        )


@dataclass(frozen=True, eq=False)
class Part:
    """What a group of rows gives in each component.

    ``log_p`` ``(component, row)`` is joint with the component. ``inverse`` ``(cell, cell, row,
    component)`` and ``small`` ``(cell, row, component)`` are the inverse of the smaller block and
    its product with the right-hand side. ``filled`` ``(component, row, column)`` are the rows minus
    the mean, with conditional means of missing cells, where these are the smaller block.
    """

    log_p: Tensor
    inverse: Tensor
    small: Tensor
    filled: Tensor


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with similar numbers of cells in their smaller block, of observed or missing cells.

    Only the smaller block is inverted.
    """

    rows: Tensor
    # columns of the smaller block ``(cell, row)``
    columns: Tensor
    observed: Tensor

    def _inverse(self, matrix: Tensor) -> tuple[Tensor, Tensor]:
        """Invert the blocks of a matrix ``(component, column, column)``."""
        width, n_columns = len(self.columns), matrix.shape[1]
        table = matrix.permute(1, 2, 0).reshape(n_columns**2, -1)
        pairs = (self.columns[:, None] * n_columns + self.columns).reshape(-1)
        block = table[pairs].view(width, width, len(self.rows), len(matrix))
        return sweep(block)

    def _add(self, total: Tensor, values: Tensor) -> None:
        """Add blocks ``(cell, cell, row, component)`` to ``total`` (component, column, column)."""
        n_columns, width = total.shape[1], len(self.columns)
        table = total.new_zeros(n_columns**2, len(total))
        for a in range(width):
            for b in range(a + 1):
                at = self.columns[a] * n_columns + self.columns[b]
                add_rows(table, at, values[a, b])
        half = table.T.reshape(total.shape)
        # cells of a row are in the order of the columns, so that this is the lower triangle
        total += half + half.mT - torch.diag_embed(half.diagonal(dim1=1, dim2=2))


class ObservedBlock(Rows):
    """Rows whose observed cells are the smaller block: ``small`` is S_oo⁻¹ (x_o - μ_o)."""

    def evaluate(self, mixture: GaussianMixture, precision: Precision, x: Tensor) -> Part:
        """Evaluate the components at the rows."""
        del precision
        inverse, log_det = self._inverse(mixture.covariance)
        values = x[self.rows].gather(1, self.columns.T).T
        away = values[..., None] - mixture.mean.T[self.columns]
        small = (inverse * away).sum(1)
        log_p = log_density((away * small).sum(0), log_det, len(self.columns))
        return Part((mixture.log_weight + log_p).T, inverse, small, small)

    def add_moments(
        self,
        mixture: GaussianMixture,
        part: Part,
        weight: Tensor,
        first: Tensor,
        second: Tensor,
    ) -> None:
        """Add the moments of the filled rows around the mean, with these weights."""
        covariance, own = mixture.covariance, weight.T
        total = torch.zeros_like(second)
        self._add(total, (part.small[:, None] * part.small - part.inverse) * own)
        second += weight.sum(1)[:, None, None] * covariance + covariance @ total @ covariance
        sums = torch.zeros_like(first.T)
        for at, small in zip(self.columns, part.small, strict=True):
            add_rows(sums, at, small * own)
        first += (covariance @ sums.T[..., None]).squeeze(-1)

    def conditional_mean(self, mixture: GaussianMixture, part: Part) -> Tensor:
        """Conditional means ``(component, row, column)`` of missing cells."""
        return mixture.mean[:, None] + self._wide(part.small) @ mixture.covariance

    def solved(
        self, mixture: GaussianMixture, precision: Precision, part: Part
    ) -> tuple[Tensor, Tensor]:
        """S_oo⁻¹ (x_o - μ_o) and the diagonal of S_oo⁻¹, 0 in missing columns."""
        del mixture, precision
        diagonal = part.inverse.diagonal(dim1=0, dim2=1).permute(2, 0, 1)
        return self._wide(part.small), self._wide(diagonal)

    def _wide(self, small: Tensor) -> Tensor:
        """Put ``(cell, row, component)`` into their columns: ``(component, row, column)``."""
        own = small.permute(2, 1, 0)
        found = own.new_zeros(len(own), *self.observed.shape)
        return found.scatter_add(2, self.columns.T.expand(len(own), -1, -1), own)


class MissingBlock(Rows):
    """Rows whose missing cells are the smaller block, with P = S⁻¹.

    ``small`` is P_mm⁻¹ P_mo (x_o - μ_o): the conditional means are μ_m - small.
    """

    def evaluate(self, mixture: GaussianMixture, precision: Precision, x: Tensor) -> Part:
        """Evaluate the components at the rows."""
        away = (x[self.rows] - mixture.mean[:, None]) * self.observed
        product = away @ precision.matrix
        inverse, log_det = self._inverse(precision.matrix)
        at = self.columns.T.expand(len(away), -1, -1)
        right = product.gather(2, at).permute(2, 1, 0)
        small = (inverse * right).sum(1)
        distance = (away * product).sum(-1).T - (right * small).sum(0)
        n_cells = x.shape[1] - len(self.columns)
        log_p = log_density(distance, log_det - precision.log_det, n_cells)
        filled = away.scatter_add(2, at, -small.permute(2, 1, 0))
        return Part((mixture.log_weight + log_p).T, inverse, small, filled)

    def add_moments(
        self,
        mixture: GaussianMixture,
        part: Part,
        weight: Tensor,
        first: Tensor,
        second: Tensor,
    ) -> None:
        """Add the moments of the filled rows around the mean, with these weights."""
        del mixture
        weighted = weight[..., None] * part.filled
        first += weighted.sum(1)
        second += weighted.mT @ part.filled
        self._add(second, part.inverse * weight.T)

    def conditional_mean(self, mixture: GaussianMixture, part: Part) -> Tensor:
        """Conditional means ``(component, row, column)`` of missing cells."""
        return mixture.mean[:, None] + part.filled

    def solved(
        self, mixture: GaussianMixture, precision: Precision, part: Part
    ) -> tuple[Tensor, Tensor]:
        """S_oo⁻¹ (x_o - μ_o) and the diagonal of S_oo⁻¹ = P_oo - P_om P_mm⁻¹ P_mo."""
        del mixture
        matrix = precision.matrix
        diagonal = matrix.diagonal(dim1=1, dim2=2)[:, None].expand(part.filled.shape).clone()
        of_missing = [matrix[:, at] for at in self.columns]
        for a, row in enumerate(of_missing):
            for b, other in enumerate(of_missing):
                diagonal -= part.inverse[a, b].T[..., None] * row * other
        return part.filled @ matrix * self.observed, diagonal * self.observed


def add_rows(total: Tensor, at: Tensor, values: Tensor) -> None:
    """Add each row of ``values`` to the row ``at`` of ``total``, the same in every run."""
    if total.is_cuda:
        # the sums of index_add_ depend on the order in which threads come
        total += one_hot_sum(at, values, len(total))
    else:
        total.index_add_(0, at, values)


def one_hot_sum(at: Tensor, values: Tensor, n: int) -> Tensor:
    """Sum the rows of ``values`` with the same ``at``, from 0 to n - 1, by a matrix product."""
    return torch.nn.functional.one_hot(at, n).to(values).T @ values


def log_density(distance: Tensor, log_det: Tensor, n_cells: int) -> Tensor:
    """Log density of a Normal with this squared Mahalanobis distance."""
    return -0.5 * (distance + log_det + n_cells * math.log(2 * math.pi))


def _groups(m: Tensor, n_components: int) -> Iterator[ObservedBlock | MissingBlock]:
    """Split the rows by the size of their smaller block."""
    n_observed, n_columns = m.sum(1).long(), m.shape[1]
    few = n_observed <= n_columns - n_observed
    for kind, width in ((ObservedBlock, n_observed), (MissingBlock, n_columns - n_observed)):
        rows = (few if kind is ObservedBlock else ~few).nonzero().squeeze(1)
        widths = width[rows]
        for size in widths.unique().tolist():
            here = rows[widths == size]
            values = n_components * max(size * size, 1 if kind is ObservedBlock else n_columns)
            for part in here.split(max(1, CHUNK_SIZE[m.device.type] // values)):
                inside = m[part] > 0 if kind is ObservedBlock else m[part] == 0
                # columns of the block come first
                columns = (~inside).to(torch.uint8).argsort(dim=1, stable=True)[:, :size]
                yield kind(part, columns.T.contiguous(), m[part])


def sweep(block: Tensor) -> tuple[Tensor, Tensor]:
    """Invert positive definite matrices ``(cell, cell, ...)`` by the sweep operator.

    Also returns the logarithms of the determinants. All matrices are swept at once. Most have few
    cells, and for up to five cells this is faster on a CPU than `torch.linalg.inv` and `slogdet`,
    which call LAPACK for each matrix.
    """
    swept, log_det = block, block.new_zeros(block.shape[2:])
    for k in range(len(block)):
        pivot = swept[k, k].clamp(min=1e-12)
        log_det = log_det + pivot.log()
        row, column = swept[k] / pivot, swept[:, k]
        swept = swept - column[:, None] * row
        swept[k] = row
        swept[:, k] = -column / pivot
        swept[k, k] = 1 / pivot
    return swept, log_det
