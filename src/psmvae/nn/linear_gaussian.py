"""Factor analysis with missing cells: x = μ + W z + ε with z ~ N(0, I) and ε ~ N(0, diag ψ)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

# Maximum number of EM steps, and the change of ψ at which EM stops.
MAX_ITER, TOL = 100, 1e-4
# With validation cells, EM also stops where doubling the steps lowers their mean squared error by
# less than this fraction. The first comparison is that of 10 and 20 steps. Chosen by validation
# errors on letter, wine, spam, credit, adult and breast, with seeds that no result uses.
WORTHWHILE_GAIN, FIRST_CHECK = 0.003, 10
# Smallest noise variance of standardised features: a float32 Cholesky factor then exists.
MIN_PSI = 1e-3
# Weak priors on the loadings (variance ψ / RIDGE) and on the noise (PSI_WEIGHT pseudo-observations
# of variance MIN_PSI). Without them EM overfits tables with few rows and many missing cells.
RIDGE = 3.0
PSI_WEIGHT = 10.0
# Stronger priors, tried where the first one predicts validation cells worse than the column mean.
STRONGER_RIDGES = (30.0, 300.0, 3000.0)
# Entries of a singular vector whose sizes differ by this fraction at most count as equal.
SAME_SIZE = 1e-3
# Standardised features are never clipped inside ±MIN_REACH.
MIN_REACH = 4.0


class FactorAnalysis(NamedTuple):
    """μ and ψ ``(member, feature)`` and W ``(member, feature, latent)`` of each member."""

    mean: Tensor
    loading: Tensor
    psi: Tensor


def posterior(fa: FactorAnalysis, f: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    """p(z | visible features) = N(mean, A Aᵀ), with f and visible ``(member, row, feature)``.

    The precision is I + Σ_f visible_f w_f w_fᵀ / ψ_f = L Lᵀ, so A = L⁻ᵀ, upper triangular.
    """
    n_latent = fa.loading.shape[-1]
    weight = visible / fa.psi.unsqueeze(1)
    outer = (fa.loading.unsqueeze(-1) * fa.loading.unsqueeze(-2)).flatten(-2)
    eye = torch.eye(n_latent, dtype=f.dtype, device=f.device)
    precision = (weight @ outer).unflatten(-1, (n_latent, n_latent)) + eye
    weighted = (weight * (f - fa.mean.unsqueeze(1))) @ fa.loading
    # cholesky_ex omits the error check, which would wait for the GPU; the matrix is positive
    # definite. Batched triangular solves are fast on a CPU, batched inverses are not.
    factor, _ = torch.linalg.cholesky_ex(precision)
    a = torch.linalg.solve_triangular(factor, eye.expand(factor.shape), upper=False).mT
    return rows_times(rows_times(weighted, a.mT), a), a


def rows_times(v: Tensor, a: Tensor) -> Tensor:
    """A v with a matrix of each row: ``v (..., k)``, ``a (..., k, k)``."""
    # elementwise, because batched products of such small matrices are dominated by overhead
    return (a * v.unsqueeze(-2)).sum(-1)


def fit_factor_analysis(
    f: Tensor,
    visible: Tensor,
    n_latent: int,
    ridge: float = RIDGE,
    max_iter: int = MAX_ITER,
    validation: Tensor | None = None,
) -> FactorAnalysis:
    """Maximum a posteriori factor analysis of f ``(member, row, feature)`` by EM.

    ``validation`` marks cells whose error ends EM early; they must not be visible.
    """
    complete, f = f, f * visible
    fa = _principal_components(f, n_latent)
    prior = torch.diag(f.new_tensor([ridge] * n_latent + [0.0]))
    # makes the equations of a feature without visible cells solvable: its loadings stay 0
    prior = prior + 1e-8 * torch.eye(n_latent + 1, dtype=f.dtype, device=f.device)
    count, square = visible.sum(1), f.square().sum(1)
    next_check, previous = FIRST_CHECK, torch.full_like(f[:, 0, 0], torch.inf)
    for n_steps in range(1, max_iter + 1):
        solved, explained = _regress_on_factors(fa, f, visible, prior)
        psi = (square - explained + PSI_WEIGHT * MIN_PSI) / (count + PSI_WEIGHT)
        change = (psi - fa.psi).abs().max()
        fa = FactorAnalysis(solved[..., -1], solved[..., :-1], psi.clamp(min=MIN_PSI))
        if change < TOL:
            break
        if validation is not None and n_steps == next_check:
            unexplained = 1 - r_squared(fa, complete, visible, validation)
            if bool((unexplained > (1 - WORTHWHILE_GAIN) * previous).all()):
                break
            next_check, previous = 2 * n_steps, unexplained
    return fa


def _principal_components(f: Tensor, n_latent: int) -> FactorAnalysis:
    """Initial parameters from a singular value decomposition, missing features set to 0."""
    n_factors = min(n_latent, *f.shape[1:])
    _, s, vt = torch.linalg.svd(f, full_matrices=False)
    # Rounding decides the sign of a singular vector, so it differs between numbers of threads.
    # Training from networks that are not symmetric in z would carry that on into the imputations.
    # The two features of a binary column have entries of the same size: the first has the sign.
    size = vt.abs()
    first = (size > (1 - SAME_SIZE) * size.amax(-1, keepdim=True)).int().argmax(-1, keepdim=True)
    vt = vt * torch.where(vt.gather(-1, first) < 0, -1.0, 1.0).to(vt)
    loading = (vt[:, :n_factors] * (s[:, :n_factors, None] / f.shape[1] ** 0.5)).transpose(1, 2)
    loading = nn.functional.pad(loading, (0, n_latent - n_factors))
    return FactorAnalysis(torch.zeros_like(f[:, 0]), loading, torch.full_like(f[:, 0], 0.5))


def _regress_on_factors(
    fa: FactorAnalysis, f: Tensor, visible: Tensor, prior: Tensor
) -> tuple[Tensor, Tensor]:
    """E-step and the M-step of (W, μ): ridge regression of each feature on (z, 1).

    Coefficients ``(member, feature, latent + 1)`` and explained sums ``(member, feature)``.
    """
    n_latent = fa.loading.shape[-1]
    mean_z, a = posterior(fa, f, visible)
    z1 = torch.cat([mean_z, torch.ones_like(mean_z[..., :1])], -1)
    second_moment = z1.unsqueeze(-1) * z1.unsqueeze(-2)
    second_moment[..., :n_latent, :n_latent] += a @ a.mT
    gram = visible.transpose(1, 2) @ second_moment.flatten(-2)
    gram = gram.unflatten(-1, second_moment.shape[-2:])
    cross = f.transpose(1, 2) @ z1
    solved = torch.linalg.solve(gram + prior, cross.unsqueeze(-1)).squeeze(-1)
    return solved, (solved * cross).sum(-1)


def r_squared(fa: FactorAnalysis, f: Tensor, visible: Tensor, validation: Tensor) -> Tensor:
    """R² of the validation features ``(member, row, feature)`` predicted from the visible ones.

    Returns ``(member,)``. Negative if 0, the mean of standardised features, predicts better.
    """
    mean_z, _ = posterior(fa, f * visible, visible)
    predicted = fa.mean.unsqueeze(1) + mean_z @ fa.loading.mT
    residual = ((f - predicted).square() * validation).sum((1, 2))
    return 1 - residual / (f.square() * validation).sum((1, 2)).clamp(min=1e-12)


def fit_with_validated_prior(
    f: Tensor, visible: Tensor, validation: Tensor, n_latent: int, max_iter: int = MAX_ITER
) -> FactorAnalysis:
    """`fit_factor_analysis`, with a stronger prior for members with R² ≤ 0 on validation cells."""
    has_validation_cells = bool(validation.any())
    cells = validation if has_validation_cells else None
    fa = fit_factor_analysis(f, visible, n_latent, max_iter=max_iter, validation=cells)
    best = r_squared(fa, f, visible, validation)
    for ridge in STRONGER_RIDGES:
        if bool((best > 0).all()) or not has_validation_cells:
            break
        other = fit_factor_analysis(f, visible, n_latent, ridge, max_iter, cells)
        found = r_squared(other, f, visible, validation)
        better = (found > best) & (best <= 0)
        where = [better.view(-1, *[1] * (value.ndim - 1)) for value in fa]
        fa = FactorAnalysis(*map(torch.where, where, other, fa))
        best = torch.where(better, found, best)
    return fa


class LinearPosterior(nn.Module):
    """The posterior of z under a fixed factor analysis: the initial q(z | x_obs).

    Features are standardised here, and clipped to ±``reach``: the largest absolute value that the
    factor analysis was fitted to, or MIN_REACH if that is larger. Otherwise a single outlier in a
    nearly constant column could move a row by thousands of standard deviations.
    """

    center: Tensor
    spread: Tensor
    reach: Tensor
    mean: Tensor
    loading: Tensor
    psi: Tensor

    def __init__(self, n_members: int, n_features: int, n_latent: int) -> None:
        super().__init__()
        size = (n_members, n_features)
        self.register_buffer("center", torch.zeros(size, dtype=torch.float32))
        self.register_buffer("spread", torch.ones(size, dtype=torch.float32))
        self.register_buffer("reach", torch.full(size, torch.inf, dtype=torch.float32))
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float32))
        self.register_buffer("loading", torch.zeros(*size, n_latent, dtype=torch.float32))
        self.register_buffer("psi", torch.ones(size, dtype=torch.float32))

    def start(
        self, f: Tensor, visible: Tensor, validation: Tensor, max_iter: int = MAX_ITER
    ) -> FactorAnalysis:
        """Fit the factor analysis to f ``(member, row, feature)``."""
        f, visible, validation = f.double(), visible.double(), validation.double()
        count = visible.sum(1).clamp(min=1)
        center = (f * visible).sum(1) / count
        spread = (((f - center[:, None]).square() * visible).sum(1) / count).sqrt()
        spread = torch.where(spread > 1e-6, spread, 1.0)
        standard = (f - center[:, None]) / spread[:, None]
        n_latent = self.loading.shape[-1]
        fa = fit_with_validated_prior(standard, visible, validation, n_latent, max_iter)
        reach = (standard.abs() * visible).amax(1).clamp(min=MIN_REACH)
        buffers = (self.center, self.spread, self.reach, self.mean, self.loading, self.psi)
        for buffer, value in zip(buffers, (center, spread, reach, *fa), strict=True):
            buffer.copy_(value)
        return FactorAnalysis(
            (center + spread * fa.mean).float(),
            (spread.unsqueeze(-1) * fa.loading).float(),
            (spread.square() * fa.psi).float(),
        )

    def forward(self, f: Tensor, visible: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, A and log det A of q(z | x_obs) = N(mean, A Aᵀ)."""
        center, spread, reach = (v.unsqueeze(1) for v in (self.center, self.spread, self.reach))
        standard = torch.clamp((f - center) / spread, -reach, reach) * visible
        mean, a = posterior(FactorAnalysis(self.mean, self.loading, self.psi), standard, visible)
        return mean, a, a.diagonal(dim1=-2, dim2=-1).log().sum(-1)
