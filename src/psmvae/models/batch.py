"""What a model is given and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from psmvae.nn.columns import Cells
from psmvae.nn.factors import PZ, GaussianZ


@dataclass(frozen=True)
class Batch:
    """Rows for each member, all ``(member, row, column)`` in the model's column order.

    ``x`` holds model values (anything where not observed), ``m`` is the paper's mask (1 observed, 0
    missing). ``visible`` is what the encoders may see (at most m), ``known`` is 0 where even the
    mask is not to be scored: a cell held out to measure the error is neither observed nor missing.
    """

    x: Tensor
    m: Tensor
    visible: Tensor
    known: Tensor

    @classmethod
    def of(cls, x: Tensor, m: Tensor) -> Batch:
        """A batch as met at imputation: all that is observed is visible."""
        return cls(torch.where(m > 0, x, 0.0), m, m, torch.ones_like(m))

    def rows(self, which: Tensor) -> Batch:
        """Some of the rows."""
        parts = (self.x, self.m, self.visible, self.known)
        return Batch(*(part[:, which] for part in parts))


@dataclass(frozen=True)
class Encoding:
    """What is said of a batch before any z: log q(r), q(z | r, ·) and the outputs' `shift`.

    ``log_q_r`` is ``(member, row, set)``, ``shift`` ``(member, row, 1, set, output)``.
    """

    log_q_r: Tensor
    q_z: GaussianZ
    shift: Tensor | None

    def of(self, row: Tensor, set_: Tensor) -> Encoding:
        """That of some pairs of a row and a set, as rows with one set."""
        shift = None if self.shift is None else self.shift[:, row, 0, set_][:, :, None, None]
        return Encoding(self.log_q_r[:, row, set_].unsqueeze(-1), self.q_z.of(row, set_), shift)


@dataclass(frozen=True)
class LogDensities:
    """What a model says of a batch for given noise; sets are enumerated, never drawn.

    Shapes: ``log_q_r`` ``(member, row, set)``, ``log_p_r`` ``(member, 1, set)``, the other log
    densities ``(member, row, draw, set)``. ``epsilon`` is the noise and ``z`` what q_z makes of it.
    ``p_x`` is the distribution missing cells are imputed from, before any tilt by the mask model;
    ``shift`` is what a regression on x_obs moved its outputs by, where there is one; ``x_drawn``
    the missing cells drawn from it where the mask model needs all of x. ``auxiliary`` is what
    further factors (x_mis, w) add to the objective; it has no place in importance weights and is
    None where it was not asked for. ``sets`` ``(row,)``, where given, is the one set that was asked
    for of each row: set axes then have size one, and ``log_p_r`` a value a row.
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
        """KL(q(z|r,·) || p(z|r)), ``(member, row, set)``."""
        return self.q_z.kl(self.p_z)

    @property
    def log_q_z(self) -> Tensor:
        """Log q(z|r,·), ``(member, row, draw, set)``."""
        return self.q_z.log_prob_at(self.epsilon)

    @property
    def log_p_z(self) -> Tensor:
        """Log p(z|r), ``(member, row, draw, set)``."""
        return self.p_z.log_prob(self.z, self.sets)
