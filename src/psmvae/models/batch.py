"""What a model is given and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from psmvae.nn.columns import Cells


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


@dataclass(frozen=True)
class Answer:
    """What a model says of a batch for given noise; sets are enumerated, never drawn.

    Shapes: ``log_q_r`` and ``kl_z`` ``(member, row, set)``, ``log_p_r`` ``(member, 1, set)``, the
    others ``(member, row, draw, set)``. ``p_x`` is the distribution missing cells are imputed from,
    before any tilt by the mask model. ``log_p_x_mis`` is what the x_mis factors add to the
    objective; it has no place in importance weights and is None where it was not asked for.
    """

    log_q_r: Tensor
    log_p_r: Tensor
    kl_z: Tensor
    log_q_z: Tensor
    log_p_z: Tensor
    log_p_x_obs: Tensor
    log_p_m: Tensor
    z: Tensor
    p_x: Cells
    log_p_x_mis: Tensor | None = None
