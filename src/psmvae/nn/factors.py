"""The factors of the model: p(r), p(z | r), p(x | z, r), q(r | ·), q(z | r, ·), q(x_mis | z, r, ·).

The conditions x_obs, m of the approximate posteriors q are written as a dot. Axes are
``(member, row, draw, set, ...)`` throughout. The mask factor p(m | ·) is in `psmvae.nn.mask`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from psmvae.kinds.base import Scale
from psmvae.kinds.numeric import LOG_2PI
from psmvae.nn.architecture import Network
from psmvae.nn.columns import Cells, Columns, Layout, joined
from psmvae.nn.latent_classes import ClassPosterior
from psmvae.nn.linear_gaussian import LinearPosterior, rows_times
from psmvae.nn.network import MLP, select_sets
from psmvae.nn.noise import Noise

MAX_LOG_SCALE = 5.0
# Up to so many vectors per row, an elementwise product is faster than a batched one.
FEW_VECTORS = 16


def bounded(log_scale: Tensor) -> Tensor:
    """Bound a log scale smoothly to ±MAX_LOG_SCALE."""
    return MAX_LOG_SCALE * torch.tanh(log_scale / MAX_LOG_SCALE)


@dataclass(frozen=True)
class Sizes:
    """Sizes that all factors share."""

    n_members: int
    n_sets: int
    n_latent: int
    n_features: int
    n_columns: int


class PR(nn.Module):
    """p(r): a learned categorical distribution."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.logits = nn.Parameter(
            torch.zeros(sizes.n_members, 1, sizes.n_sets, dtype=torch.float32)
        )

    def forward(self) -> Tensor:
        """Log p(r), ``(member, 1, set)``."""
        return torch.log_softmax(self.logits, -1)


class PZ(nn.Module):
    """p(z | r) = N(μ_r, diag σ_r²), and N(0, I) if there is one set.

    With one set p(x | z) can absorb any location and scale of z. ``spread`` is the standard
    deviation of the initial μ_r.
    """

    mean: Tensor
    log_scale: Tensor

    def __init__(self, sizes: Sizes, noise: Noise, spread: float) -> None:
        super().__init__()
        shape = (sizes.n_members, 1, 1, sizes.n_sets, sizes.n_latent)
        if sizes.n_sets == 1:
            self.register_buffer("mean", torch.zeros(shape, dtype=torch.float32))
            self.register_buffer("log_scale", torch.zeros(shape, dtype=torch.float32))
        else:
            self.mean = nn.Parameter(spread * noise.normal(*shape))
            self.log_scale = nn.Parameter(torch.zeros(shape, dtype=torch.float32))

    def log_prob(self, z: Tensor, sets: Tensor | None = None) -> Tensor:
        """Log p(z | r), ``(member, row, draw, set)``, for all sets or one of each row."""
        mean, log_scale = self.mean, bounded(self.log_scale)
        if sets is not None:
            mean, log_scale = select_sets(mean, sets), select_sets(log_scale, sets)
        standard = (z - mean) * torch.exp(-log_scale)
        # only the quadratic form depends on the draw
        constant = log_scale.sum(-1) + 0.5 * LOG_2PI * z.shape[-1]
        return -0.5 * standard.square().sum(-1) - constant


@dataclass(frozen=True)
class GaussianZ:
    """q(z | r, x_obs, m) = N(μ, A diag(s²) Aᵀ).

    μ and log s are ``(member, row, 1, set, latent)``, the triangular A is ``(member, row, latent,
    latent)`` and log det A ``(member, row)``, both None for the identity.
    """

    mean: Tensor
    log_s: Tensor
    a: Tensor | None
    log_det_a: Tensor | None

    def at(self, epsilon: Tensor) -> Tensor:
        """Return z = μ + A (s · ε) for ε ``(member, row, draw, set, latent)``; axes may be 1."""
        scaled = epsilon * torch.exp(self.log_s)
        return self.mean + (scaled if self.a is None else self._times(scaled, self.a))

    def of(self, row: Tensor, set_: Tensor) -> GaussianZ:
        """Select pairs ``row, set_`` ``(pair,)``. A pair becomes a row with one set."""
        mean, log_s = (part[:, row, :, set_].transpose(0, 1) for part in (self.mean, self.log_s))
        a = None if self.a is None else self.a[:, row]
        log_det_a = None if self.log_det_a is None else self.log_det_a[:, row]
        return GaussianZ(mean.unsqueeze(3), log_s.unsqueeze(3), a, log_det_a)

    @staticmethod
    def _times(v: Tensor, a: Tensor) -> Tensor:
        """A v, with A ``(member, row, latent, latent)`` of each row."""
        if v.shape[2] * v.shape[3] <= FEW_VECTORS:
            return rows_times(v, a[:, :, None, None])
        return (v.flatten(2, 3) @ a.mT).reshape(v.shape)

    def _log_det(self) -> Tensor:
        """Log det A diag(s), ``(member, row, 1, set)``."""
        log_det = self.log_s.sum(-1)
        return log_det if self.log_det_a is None else log_det + self.log_det_a[..., None, None]

    def log_prob_at(self, epsilon: Tensor) -> Tensor:
        """Log q(z | r, ·) at z = μ + A (s · ε), ``(member, row, draw, set)``."""
        constant = 0.5 * LOG_2PI * epsilon.shape[-1]
        return -0.5 * epsilon.square().sum(-1) - constant - self._log_det()

    def kl(self, p_z: PZ) -> Tensor:
        """KL(q(z | r, ·) || p(z | r)) in closed form, ``(member, row, set)``."""
        log_scale = bounded(p_z.log_scale)
        variance = torch.exp(2 * self.log_s)
        if self.a is not None:
            # the diagonal of A diag(s²) Aᵀ
            variance = self._times(variance, self.a.square())
        distance = (self.mean - p_z.mean).square()
        inside = (variance + distance) * torch.exp(-2 * log_scale) - 1 + 2 * log_scale
        return (0.5 * inside.sum(-1) - self._log_det()).squeeze(2)


class QR(nn.Module):
    """q(r | x_obs, m) = softmax(f(x_obs, m) + log p_0(r | m)); without a network for one set.

    p_0(r | m) is a latent class analysis of the masks. With it f is initially 0.
    """

    def __init__(
        self,
        sizes: Sizes,
        n_in: int,
        network: Network,
        noise: Noise,
        classes: ClassPosterior | None,
    ) -> None:
        super().__init__()
        self.classes = classes
        self.net: MLP | None = None
        if sizes.n_sets > 1:
            start = 0.0 if classes is not None else 1.0
            self.net = MLP(sizes.n_members, n_in, sizes.n_sets, network, noise, start=start)

    def forward(self, inputs: Tensor, m: Tensor, noise: Noise | None) -> Tensor:
        """Log q(r | ·) ``(member, row, set)`` from inputs ``(member, row, input)`` and the mask."""
        if self.net is None:
            return torch.zeros_like(inputs[..., :1])
        logits = self.net(inputs, noise)
        if self.classes is not None:
            logits = logits + self.classes(m)
        return torch.log_softmax(logits, -1)


class QZ(nn.Module):
    """q(z | r, x_obs, m), relative to the posterior of a factor analysis if there is one.

    The network then models the residual of its mean and of its scales, initially 0.
    """

    def __init__(
        self,
        sizes: Sizes,
        n_in: int,
        network: Network,
        noise: Noise,
        linear: LinearPosterior | None,
    ) -> None:
        super().__init__()
        self.linear = linear
        start = 1.0 if linear is None else 0.0
        shape = (n_in if linear is None else n_in + sizes.n_latent, 2 * sizes.n_latent)
        self.net = MLP(sizes.n_members, *shape, network, noise, n_sets=sizes.n_sets, start=start)

    def forward(
        self, inputs: Tensor, features: Tensor, visible: Tensor, noise: Noise | None
    ) -> GaussianZ:
        """The Gaussian of each row and set; features and visible are for the factor analysis."""
        a = log_det_a = start = None
        if self.linear is not None:
            start, a, log_det_a = self.linear(features, visible)
            inputs = torch.cat([inputs, start], -1)
        mean, log_s = self.net(inputs[:, :, None, None, :], noise).chunk(2, -1)
        if start is not None:
            mean = mean + start[:, :, None, None, :]
        return GaussianZ(mean, bounded(log_s), a, log_det_a)


class QXMis(nn.Module):
    """q(x_mis | z, r, x_obs, m), independent across cells."""

    def __init__(
        self, sizes: Sizes, n_in: int, layout: Layout, network: Network, noise: Noise
    ) -> None:
        super().__init__()
        self.columns = Columns(layout, sizes.n_members, scale="network")
        shape = (sizes.n_members, n_in + sizes.n_latent, self.columns.n_outputs)
        self.net = MLP(*shape, network, noise, n_sets=sizes.n_sets, set_at="first")

    def forward(self, inputs: Tensor, z: Tensor, noise: Noise | None) -> Cells:
        """Distribution of every cell, with ``inputs (member, row, input)`` beside z."""
        cells: Cells = self.columns(self.net(z, noise, once=inputs))
        return cells


class PX(nn.Module):
    """p(x_obs | z, r) and a second factor, p(x_mis | z, r) or p(w | z, r), by one decoder.

    Outputs are f(z, r), or b + W z + f(z, r) if ``network.linear``, with b and W initialised by
    factor analysis and f initially 0. ``second`` are the columns of the second factor: ``layout``
    itself for x_mis.
    """

    output_column: Tensor

    def __init__(
        self,
        sizes: Sizes,
        layout: Layout,
        network: Network,
        noise: Noise,
        scale: Scale,
        *,
        second: Layout | None = None,
    ) -> None:
        super().__init__()
        self.x_obs = Columns(layout, sizes.n_members, scale)
        self.second = None if second is None else Columns(second, sizes.n_members, scale)
        self.n_outputs = [head.n_outputs for head in self.heads]
        # the column of x of each output, -1 for outputs of w
        self.second_is_x = second is layout
        owners = [self.x_obs.output_column]
        if self.second is not None:
            others = torch.full((self.n_outputs[1],), -1)
            owners.append(self.second.output_column if self.second_is_x else others)
        self.register_buffer("output_column", torch.cat(owners), persistent=False)
        shape = (sizes.n_members, sizes.n_latent, sum(self.n_outputs))
        start = 0.0 if network.linear else 1.0
        self.net = MLP(*shape, network, noise, n_sets=sizes.n_sets, set_at="first", start=start)
        self.loading = (
            nn.Parameter(torch.zeros(shape, dtype=torch.float32)) if network.linear else None
        )

    @property
    def heads(self) -> list[Columns]:
        """The columns of each factor."""
        return [self.x_obs] if self.second is None else [self.x_obs, self.second]

    def forward(
        self,
        z: Tensor,
        noise: Noise | None,
        *,
        both: bool,
        sets: Tensor | None = None,
        shift: Tensor | None = None,
    ) -> tuple[Cells, Cells | None]:
        """Distributions of x_obs and, if ``both``, of the second factor at outputs(z) + shift."""
        outputs = self.outputs(z, noise, sets)
        if shift is not None:
            outputs = outputs + shift
        if self.second is None:
            return self.x_obs(outputs), None
        first, second = outputs.split(self.n_outputs, -1)
        return self.x_obs(first), self.second(second) if both else None

    def outputs(self, z: Tensor, noise: Noise | None, sets: Tensor | None = None) -> Tensor:
        """Parameters of the distributions, ``(member, row, draw, set, output)``."""
        outputs: Tensor = self.net(z, noise, sets)
        if self.loading is not None:
            outputs = outputs + (z.flatten(1, -2) @ self.loading).reshape(outputs.shape)
        return outputs

    def shift(self, z: Tensor, target: Tensor, weight: Tensor) -> Tensor:
        """Return weight · (target − outputs(z)), which moves the outputs at z towards a target.

        Axes: target ``(member, row, 1, set, output of x)``; weight ``(member, row, column)``.
        """
        # the appended column has index -1: the outputs of w
        weight = torch.cat([weight, torch.zeros_like(weight[..., :1])], -1)
        weight = weight[:, :, None, None, self.output_column]
        targets = [target]
        if self.second is not None:
            zeros = target.new_zeros(*target.shape[:-1], self.n_outputs[1])
            targets.append(target if self.second_is_x else zeros)
        return torch.where(weight > 0, weight * (joined(targets) - self.outputs(z, None)), 0.0)

    @torch.no_grad()
    def start_linear(self, mean: Tensor, loading: Tensor, scale: Tensor) -> None:
        """Initialise the factors of x at E[features | z] = mean + loading z.

        Axes: mean, scale ``(member, feature)``; loading ``(member, latent, feature)``.
        """
        if self.loading is None:
            return
        start = 0
        for head in (head for head in self.heads if head.n_features == mean.shape[-1]):
            parts = [head.split(value, "features") for value in (mean, loading, scale)]
            for block, of_mean, of_loading, of_scale in zip(head.blocks, *parts, strict=True):
                bias, weight = block.linear_start(of_mean, of_loading)
                at = slice(start, start + block.n_columns * block.n_outputs)
                self.loading[..., at] = weight.flatten(-2)
                self.net.output_bias[..., at] = bias.flatten(-2).unsqueeze(1)
                block.start_scale(of_scale[..., 0])
                start = at.stop
