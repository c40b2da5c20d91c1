"""Multilayer perceptrons with a leading member axis."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from psmvae.nn.architecture import Network
from psmvae.nn.noise import Noise


class Linear(nn.Module):
    """y = x W + b with weights of each member: ``(member, ..., in) -> (member, ..., out)``."""

    def __init__(
        self,
        n_members: int,
        n_in: int,
        n_out: int,
        noise: Noise,
        gain: float = 1.0,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(max(n_in, 1))

        def start(*shape: int) -> nn.Parameter:
            return nn.Parameter((2 * noise.uniform(*shape) - 1) * bound * gain)

        self.weight = start(n_members, n_in, n_out)
        self.bias = start(n_members, 1, n_out) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """One matrix product over all other axes, batched over members."""
        return affine(x, self.weight, self.bias)


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """X W + b with weights ``(member, in, out)`` and biases ``(member, 1, out)``."""
    if x.shape[0] == 1:
        # addmm is faster than a batched product of size one
        rows, single = x.flatten(0, -2), weight.squeeze(0)
        y = torch.mm(rows, single) if bias is None else torch.addmm(bias.flatten(), rows, single)
    else:
        rows = x.reshape(x.shape[0], -1, x.shape[-1])
        y = torch.bmm(rows, weight) if bias is None else torch.baddbmm(bias, rows, weight)
    return y.view(*x.shape[:-1], weight.shape[-1])


class Norm(nn.Module):
    """Layer normalisation with gain and shift of each member."""

    def __init__(self, n_members: int, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(n_members, width, dtype=torch.float32))
        self.shift = nn.Parameter(torch.zeros(n_members, width, dtype=torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis, ``(member, ..., unit)``."""
        if x.shape[0] == 1:
            gain, shift = self.gain.squeeze(0), self.shift.squeeze(0)
            return nn.functional.layer_norm(x, x.shape[-1:], gain, shift)
        shape = (x.shape[0],) + (1,) * (x.dim() - 2) + (x.shape[-1],)
        normed = nn.functional.layer_norm(x, x.shape[-1:])
        return torch.addcmul(self.shift.view(shape), normed, self.gain.view(shape))


class Residual(nn.Module):
    """h + W₂ SiLU(W₁ Norm(h)). Initially W₂ = 0, so the block is the identity."""

    def __init__(self, n_members: int, width: int, dropout: float, noise: Noise) -> None:
        super().__init__()
        self.norm = Norm(n_members, width)
        self.first = Linear(n_members, width, width, noise)
        self.second = Linear(n_members, width, width, noise, gain=0.0)
        self.dropout = dropout

    def forward(self, h: Tensor, noise: Noise | None) -> Tensor:
        """Apply the block to ``(member, ..., unit)``; ``noise`` is for dropout in training."""
        inner = activate(self.first(self.norm(h)), smooth=True)
        out: Tensor = h + self.second(dropout(inner, self.dropout, noise))
        return out


def dropout(h: Tensor, rate: float, noise: Noise | None) -> Tensor:
    """Apply dropout in training, where ``noise`` is given."""
    if noise is None or rate == 0.0:
        return h
    return h * noise.keep(h.shape, 1 - rate).to(h.dtype).div_(1 - rate)


class MLP(nn.Module):
    """A network of an input and r: ``(member, row, draw, set, in) -> (..., set, out)``.

    ``n_sets`` is 0 for a network that does not depend on r. With ``set_at="first"`` r is appended
    one-hot to the input (decoders, whose input z has a set axis). With "last" each set has a bias
    of the last hidden layer (encoders, whose earlier layers are then evaluated once for each row).
    ``start`` is the gain of the initial weights of the last layer.
    """

    one_hot: Tensor

    def __init__(
        self,
        n_members: int,
        n_in: int,
        n_out: int,
        network: Network,
        noise: Noise,
        *,
        n_sets: int = 0,
        set_at: Literal["first", "last"] = "last",
        start: float = 1.0,
    ) -> None:
        super().__init__()
        width, depth, self.dropout = network.width, network.depth, network.dropout
        self.residual = network.residual
        self.smooth = network.residual or network.smooth
        self.n_appended = n_sets if set_at == "first" else 0
        one_hot = torch.zeros(self.n_appended, self.n_appended, dtype=torch.float32)
        self.register_buffer("one_hot", one_hot.fill_diagonal_(1.0), persistent=False)
        # the weights of the one-hot r act as a bias
        n_first = n_in + self.n_appended
        self.first = Linear(n_members, n_first, width, noise, bias=self.n_appended == 0)
        if network.residual:
            if self.n_appended:
                with torch.no_grad():
                    self.first.weight[:, n_in:] = 2 * noise.uniform(n_members, n_sets, width) - 1
            blocks = [Residual(n_members, width, self.dropout, noise) for _ in range(depth)]
            self.hidden = nn.ModuleList(blocks)
            self.norm = Norm(n_members, width)
        else:
            layers = [Linear(n_members, width, width, noise) for _ in range(depth - 1)]
            self.hidden = nn.ModuleList(layers)
        self.last = Linear(n_members, width, n_out, noise, gain=start)
        self.set_bias: nn.Parameter | None = None
        if n_sets and not self.n_appended:
            bound = 1.0 if network.residual else 1.0 / math.sqrt(n_in + n_sets)
            uniform = noise.uniform(n_members, 1, 1, n_sets, width)
            self.set_bias = nn.Parameter((2 * uniform - 1) * bound)

    @property
    def output_bias(self) -> nn.Parameter:
        """Bias of the last layer, ``(member, 1, out)``."""
        if self.last.bias is None:
            raise ValueError("The last layer has no bias.")
        return self.last.bias

    def forward(
        self,
        x: Tensor,
        noise: Noise | None = None,
        sets: Tensor | None = None,
        once: Tensor | None = None,
    ) -> Tensor:
        """Evaluate the network at x ``(member, row, draw, set, in)``, for all sets or ``sets``.

        ``once`` ``(member, row, in)`` are inputs before x, the same for all draws and sets.
        """
        if self.n_appended:
            one_hot = self.one_hot.to(x.dtype)
            if sets is not None:
                one_hot = one_hot[sets][:, None, None]
            x = torch.cat([x, one_hot.expand(*x.shape[:-1], -1)], -1)
        if once is None:
            h = self.first(x)
        else:
            n_once = once.shape[-1]
            per_row = affine(once, self.first.weight[:, :n_once], self.first.bias)
            h = affine(x, self.first.weight[:, n_once:]) + per_row[:, :, None, None]
        for layer in self.hidden:
            h = layer(h, noise) if self.residual else layer(activate(h, smooth=self.smooth))
        if self.set_bias is not None:
            h = h + self.set_bias
        h = activate(self.norm(h) if self.residual else h, smooth=self.smooth)
        out: Tensor = self.last(dropout(h, self.dropout, noise))
        return out


def select_sets(per_set: Tensor, sets: Tensor) -> Tensor:
    """Select the set of each row: ``(member, 1, 1, set, ...) -> (member, row, 1, 1, ...)``."""
    return per_set[:, 0, 0, sets, None, None]


def activate(h: Tensor, *, smooth: bool) -> Tensor:
    """SiLU if smooth, otherwise ReLU; in place if no gradient is needed."""
    function = nn.functional.silu if smooth else nn.functional.relu
    return function(h, inplace=not torch.is_grad_enabled())
