"""The inputs and outputs of a model: a batch of rows, its encoding and its log densities."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from psmvae.nn.columns import Cells
from psmvae.nn.factors import PZ, GaussianZ


@dataclass(frozen=True)
class Batch:
    """Rows for each member, in the model's column order, ``(member, row, column)``."""

    # model values, arbitrary where not observed
    x: Tensor
    # the mask: 1 observed, 0 missing
    m: Tensor
    # 1 for the cells that the encoders have as input, a subset of the observed cells
    visible: Tensor
    # 0 for validation cells, which count neither as observed nor as missing in p(m | ·)
    known: Tensor

    @classmethod
    def of(cls, x: Tensor, m: Tensor) -> Batch:
        """A batch for imputation, where all observed cells are visible."""
        return cls(torch.where(m > 0, x, 0.0), m, m, torch.ones_like(m))

    def rows(self, index: Tensor) -> Batch:
        """Select rows."""
        return Batch(*(part[:, index] for part in (self.x, self.m, self.visible, self.known)))

    def cells(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return x, m and known with axes for draws and sets, ``(member, row, 1, 1, column)``."""
        x, m, known = (part[:, :, None, None, :] for part in (self.x, self.m, self.known))
        return x, m, known


@dataclass(frozen=True)
class Encoding:
    """The part of a model that does not depend on a draw of z."""

    # log q(r | ·) (member, row, set), and q(z | r, ·)
    log_q_r: Tensor
    q_z: GaussianZ
    # moves the mean of the decoder outputs to the regression's, shape (member, row, 1, set, output)
    shift: Tensor | None

    def of(self, row: Tensor, set_: Tensor) -> Encoding:
        """Select pairs ``row, set_`` ``(pair,)``. A pair becomes a row with one set."""
        shift = None if self.shift is None else self.shift[:, row, 0, set_][:, :, None, None]
        return Encoding(self.log_q_r[:, row, set_].unsqueeze(-1), self.q_z.of(row, set_), shift)


@dataclass(frozen=True)
class LogDensities:
    """Log densities of a batch at draws of z, ``(member, row, draw, set)``, for every value of r.

    With ``sets (row,)`` the batch has one set for each row: set axes have size one.
    """

    # log q(r | ·) (member, row, set), and log p(r) (member, 1, set), or (member, row, 1) with sets
    log_q_r: Tensor
    log_p_r: Tensor
    # q(z | r, ·), and p(z | r)
    q_z: GaussianZ
    p_z: PZ
    # standardised draws, whose axes may have size one, and z = q_z.at(epsilon)
    epsilon: Tensor
    z: Tensor
    # log p(x_obs | z, r), and log p(m | ·)
    log_p_x_obs: Tensor
    log_p_m: Tensor
    # the distribution from which missing cells are imputed, before it is tilted by p(m | x, ·)
    p_x: Cells
    # as in `Encoding`
    shift: Tensor | None = None
    # x with drawn missing values, if p(m | ·) was evaluated at draws
    x_drawn: Tensor | None = None
    # terms of x_mis or w in the ELBO, no part of importance weights; None if not requested
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
