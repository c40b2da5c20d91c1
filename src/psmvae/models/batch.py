"""The inputs and outputs of a model: a batch of rows, its encoding and its log densities."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from psmvae.nn.columns import Cells
from psmvae.nn.factors import PZ, GaussianZ


@dataclass(frozen=True)
class Batch:
    """Rows for each member, in the model's column order.

    Parameters
    ----------
    x : Tensor of shape (member, row, column)
        Model values. Arbitrary where not observed.
    m : Tensor of shape (member, row, column)
        The mask: 1 observed, 0 missing.
    visible : Tensor of shape (member, row, column)
        1 for the cells that the encoders have as input, a subset of the observed cells.
    known : Tensor of shape (member, row, column)
        0 for validation cells, which count neither as observed nor as missing in p(m | ·).
    """

    x: Tensor
    m: Tensor
    visible: Tensor
    known: Tensor

    @classmethod
    def of(cls, x: Tensor, m: Tensor) -> Batch:
        """A batch for imputation, where all observed cells are visible."""
        return cls(torch.where(m > 0, x, 0.0), m, m, torch.ones_like(m))

    def rows(self, index: Tensor) -> Batch:
        """Select rows."""
        parts = (self.x, self.m, self.visible, self.known)
        return Batch(*(part[:, index] for part in parts))

    def cells(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return x, m and known with axes for draws and sets, ``(member, row, 1, 1, column)``."""
        x, m, known = (part[:, :, None, None, :] for part in (self.x, self.m, self.known))
        return x, m, known


@dataclass(frozen=True)
class Encoding:
    """The part of a model that does not depend on a draw of z.

    Parameters
    ----------
    log_q_r : Tensor of shape (member, row, set)
        log q(r | x_obs, m).
    q_z : GaussianZ
        q(z | r, x_obs, m).
    shift : Tensor of shape (member, row, 1, set, output) or None
        Added to the decoder outputs, so that their mean is that of the regression.
    """

    log_q_r: Tensor
    q_z: GaussianZ
    shift: Tensor | None

    def of(self, row: Tensor, set_: Tensor) -> Encoding:
        """Select pairs ``row, set_`` ``(pair,)``. A pair becomes a row with one set."""
        shift = None if self.shift is None else self.shift[:, row, 0, set_][:, :, None, None]
        return Encoding(self.log_q_r[:, row, set_].unsqueeze(-1), self.q_z.of(row, set_), shift)


@dataclass(frozen=True)
class LogDensities:
    """Log densities of a batch at draws of z, for every value of r.

    Parameters
    ----------
    log_q_r : Tensor of shape (member, row, set)
        log q(r | x_obs, m).
    log_p_r : Tensor of shape (member, 1, set)
        log p(r).
    q_z : GaussianZ
        q(z | r, x_obs, m).
    p_z : PZ
        p(z | r).
    epsilon : Tensor of shape (member, row, draw, set, latent)
        Standardised draws. Axes may have size one.
    z : Tensor of shape (member, row, draw, set, latent)
        ``q_z.at(epsilon)``.
    log_p_x_obs : Tensor of shape (member, row, draw, set)
        log p(x_obs | z, r).
    log_p_m : Tensor of shape (member, row, draw, set)
        log p(m | ·).
    p_x : Cells
        Distribution from which missing cells are imputed, before it is tilted by p(m | x, ·).
    shift : Tensor of shape (member, row, 1, set, output) or None
        As in `Encoding`.
    x_drawn : Tensor of shape (member, row, draw, set, column) or None
        x with drawn missing values, if p(m | ·) was evaluated at draws.
    auxiliary : Tensor of shape (member, row, draw, set) or None
        Terms of x_mis or w in the ELBO. They are no part of importance weights. None if they were
        not requested.
    sets : Tensor of shape (row,) or None
        If given, the batch has one set for each row: set axes have size one and ``log_p_r`` is
        ``(member, row, 1)``.
    """

    log_q_r: Tensor
    log_p_r: Tensor
    q_z: GaussianZ
    p_z: PZ
    epsilon: Tensor
    z: Tensor
    log_p_x_obs: Tensor
    log_p_m: Tensor
    p_x: Cells
    shift: Tensor | None = None
    x_drawn: Tensor | None = None
    auxiliary: Tensor | None = None
    sets: Tensor | None = None

    @property
    def kl_z(self) -> Tensor:
        """KL(q(z | r, ·) || p(z | r)), ``(member, row, set)``."""
        return self.q_z.kl(self.p_z)

    @property
    def log_q_z(self) -> Tensor:
        """Log q(z | r, ·), ``(member, row, draw, set)``."""
        return self.q_z.log_prob_at(self.epsilon)

    @property
    def log_p_z(self) -> Tensor:
        """Log p(z | r), ``(member, row, draw, set)``."""
        return self.p_z.log_prob(self.z, self.sets)
