"""Factor analysis: x = μ + W z + ε with z ~ N(0, I) and ε ~ N(0, diag ψ), holes allowed."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from psmvae.nn.settings import MAX_ITER

# Smallest noise variance (of standardised features): keeps a float32 Cholesky factor safe.
MIN_PSI = 1e-3
# A weak prior on the loadings (variance 1 / RIDGE of a noise variance) and on the noise (PSI_WEIGHT
# cells of variance MIN_PSI): without it EM overfits where rows are few and cells are sparse.
RIDGE = 3.0
PSI_WEIGHT = 10.0
# Priors that are tried where that one is worse than the mean: few cells with heavy tails.
STRONGER = (30.0, 300.0, 3000.0)
# Deviations that always count in full.
MIN_REACH = 4.0


class FactorAnalysis(NamedTuple):
    """Of each member: mean, psi ``(member, feature)``, loading ``(member, feature, latent)``."""

    mean: Tensor
    loading: Tensor
    psi: Tensor


def posterior(fa: FactorAnalysis, f: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    """p(z | visible features): its mean ``(member, row, k)`` and A with covariance A Aᵀ.

    The precision is I + Σ_f visible_f w_f w_fᵀ / ψ_f = L Lᵀ, so A = L⁻ᵀ, upper triangular.
    (Batches of triangular solves are fast everywhere; torch's batched inverses are not, on a CPU.)
    """
    n_latent = fa.loading.shape[-1]
    weight = visible / fa.psi.unsqueeze(1)
    outer = (fa.loading.unsqueeze(-1) * fa.loading.unsqueeze(-2)).flatten(-2)
    eye = torch.eye(n_latent, dtype=f.dtype, device=f.device)
    precision = (weight @ outer).unflatten(-1, (n_latent, n_latent)) + eye
    pull = (weight * (f - fa.mean.unsqueeze(1))) @ fa.loading
    # without the check, which would wait for the GPU: I + a sum of squares has a factor
    factor, _ = torch.linalg.cholesky_ex(precision)
    a = torch.linalg.solve_triangular(factor, eye.expand(factor.shape), upper=False).mT
    return rows_times(rows_times(pull, a.mT), a), a


def rows_times(v: Tensor, a: Tensor) -> Tensor:
    """A v for a matrix of each row: ``(..., k)`` and ``(..., k, k)``.

    Elementwise: a batched product of so small matrices spends its time on each one's overhead.
    """
    return (a * v.unsqueeze(-2)).sum(-1)


def fit_factor_analysis(
    f: Tensor,
    visible: Tensor,
    n_latent: int,
    *,
    ridge: float = RIDGE,
    max_iter: int = MAX_ITER,
    tol: float = 1e-4,
) -> FactorAnalysis:
    """Maximum a posteriori factor analysis by EM, each member on its own visible cells.

    Parameters
    ----------
    f : Tensor
        Standardised features, ``(member, row, feature)``, float64.
    visible : Tensor
        1 where a feature is seen, else 0; same shape.
    n_latent : int
        Number of factors.
    ridge : float
        Of the loadings: their prior variance is so many times smaller than the noise's.
    max_iter : int
        EM steps at most.
    tol : float
        Stops when no noise variance moves by more than this in a step.
    """
    f = f * visible
    n_rows = f.shape[1]
    n_factors = min(n_latent, *f.shape[1:])
    _, s, vt = torch.linalg.svd(f, full_matrices=False)
    loading = (vt[:, :n_factors] * (s[:, :n_factors, None] / n_rows**0.5)).transpose(1, 2)
    loading = nn.functional.pad(loading, (0, n_latent - n_factors))
    fa = FactorAnalysis(f.new_zeros(f.shape[0], f.shape[2]), loading, torch.full_like(f[:, 0], 0.5))
    count = visible.sum(1)
    square = f.square().sum(1)
    prior = torch.diag(f.new_tensor([ridge] * n_latent + [0.0]))
    # a feature seen nowhere has no equations of its own: leave its loadings at zero
    prior = prior + 1e-8 * torch.eye(n_latent + 1, dtype=f.dtype, device=f.device)
    for _ in range(max_iter):
        mean_z, a = posterior(fa, f, visible)
        one = torch.ones_like(mean_z[..., :1])
        z1 = torch.cat([mean_z, one], -1)
        second = z1.unsqueeze(-1) * z1.unsqueeze(-2)
        second[..., :n_latent, :n_latent] += a @ a.mT
        gram = (visible.transpose(1, 2) @ second.flatten(-2)).unflatten(-1, second.shape[-2:])
        cross = f.transpose(1, 2) @ z1
        solved = torch.linalg.solve(gram + prior, cross.unsqueeze(-1)).squeeze(-1)
        residual = square - (solved * cross).sum(-1)
        psi = (residual + PSI_WEIGHT * MIN_PSI) / (count + PSI_WEIGHT)
        moved = (psi - fa.psi).abs().max()
        fa = FactorAnalysis(solved[..., -1], solved[..., :-1], psi.clamp(min=MIN_PSI))
        if moved < tol:
            break
    return fa


def explained(fa: FactorAnalysis, f: Tensor, visible: Tensor, held: Tensor) -> Tensor:
    """Share of the held-out cells' squares that the visible ones explain, ``(member,)``.

    Below zero where zero, the mean of standardised features, is the better guess.
    """
    mean_z, _ = posterior(fa, f * visible, visible)
    guess = fa.mean.unsqueeze(1) + mean_z @ fa.loading.mT
    left = ((f - guess).square() * held).sum((1, 2))
    return 1 - left / (f.square() * held).sum((1, 2)).clamp(min=1e-12)


def fit_where_it_holds(
    f: Tensor, visible: Tensor, held: Tensor, n_latent: int, max_iter: int = MAX_ITER
) -> FactorAnalysis:
    """`fit_factor_analysis`, with a stronger prior for members where held-out cells ask for one."""
    fa = fit_factor_analysis(f, visible, n_latent, max_iter=max_iter)
    best = explained(fa, f, visible, held)
    for ridge in STRONGER:
        if bool((best > 0).all()) or not bool(held.any()):
            break
        other = fit_factor_analysis(f, visible, n_latent, ridge=ridge, max_iter=max_iter)
        found = explained(other, f, visible, held)
        better = (found > best) & (best <= 0)
        fa = FactorAnalysis(
            *(
                torch.where(better.view(-1, *[1] * (one.ndim - 1)), two, one)
                for one, two in zip(fa, other, strict=True)
            )
        )
        best = torch.where(better, found, best)
    return fa


class LinearPosterior(nn.Module):
    """The exact posterior of the starting factor analysis, frozen: where the encoder begins.

    Features enter as the encoder sees them and are standardised here. None counts for more than the
    largest that the factor analysis was fitted to, or MIN_REACH deviations (``reach``): in a column
    of zeros with an odd value among rows it did not see, one cell would otherwise carry its row
    thousands of deviations away.
    """

    center: Tensor
    spread: Tensor
    reach: Tensor
    mean: Tensor
    loading: Tensor
    psi: Tensor

    def __init__(self, n_members: int, n_features: int, n_latent: int) -> None:
        super().__init__()
        self.register_buffer("center", torch.zeros(n_members, n_features))
        self.register_buffer("spread", torch.ones(n_members, n_features))
        self.register_buffer("reach", torch.full((n_members, n_features), torch.inf))
        self.register_buffer("mean", torch.zeros(n_members, n_features))
        self.register_buffer("loading", torch.zeros(n_members, n_features, n_latent))
        self.register_buffer("psi", torch.ones(n_members, n_features))

    def start(
        self, f: Tensor, visible: Tensor, held: Tensor, max_iter: int = MAX_ITER
    ) -> FactorAnalysis:
        """Fit to ``(member, row, feature)`` in at most ``max_iter`` steps.

        ``held`` is 1 on features of cells that are held out to judge the fit. Returns the factor
        analysis in the features' own units.
        """
        f, visible, held = f.double(), visible.double(), held.double()
        count = visible.sum(1).clamp(min=1)
        center = (f * visible).sum(1) / count
        spread = (((f - center[:, None]).square() * visible).sum(1) / count).sqrt()
        spread = torch.where(spread > 1e-6, spread, 1.0)
        standard = (f - center[:, None]) / spread[:, None]
        fa = fit_where_it_holds(standard, visible, held, self.loading.shape[-1], max_iter)
        reach = (standard.abs() * visible).amax(1).clamp(min=MIN_REACH)
        names = ("center", "spread", "reach", "mean", "loading", "psi")
        for name, value in zip(names, (center, spread, reach, *fa), strict=True):
            getattr(self, name).copy_(value)
        return FactorAnalysis(
            (center + spread * fa.mean).float(),
            (spread.unsqueeze(-1) * fa.loading).float(),
            (spread.square() * fa.psi).float(),
        )

    def forward(self, f: Tensor, visible: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, A with covariance A Aᵀ, and log det A; rows ``(member, row, ...)``."""
        reach = self.reach.unsqueeze(1)
        standard = (f - self.center.unsqueeze(1)) / self.spread.unsqueeze(1)
        standard = torch.clamp(standard, -reach, reach) * visible
        mean, a = posterior(FactorAnalysis(self.mean, self.loading, self.psi), standard, visible)
        return mean, a, a.diagonal(dim1=-2, dim2=-1).log().sum(-1)
