"""The mask factor p(m | ·) of a batch: log-likelihoods for any mask module."""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.nn.columns import Cells, LogTilt
from psmvae.nn.mask import MaskModule

# The order of the outputs of `MaskModule.forward`.
MISSING, OBSERVED = 0, 1


def log_missing(p_m: MaskModule, z: Tensor) -> LogTilt:
    """Return log p(m_j missing | x_j, z, r) as a function of x_j."""
    return lambda x, at: p_m(x, z, at)[MISSING]


def log_p_m_given_z(
    p_m: MaskModule, m: Tensor, known: Tensor, z: Tensor, sets: Tensor | None = None
) -> Tensor:
    """Log p(m | z, r), ``(member, row, draw, set)``, for masks that do not depend on x."""
    return (p_m.log_prob(m, z, sets) * known).sum(-1)


def log_p_m_given_x(
    p_m: MaskModule,
    x: Tensor,
    m: Tensor,
    known: Tensor,
    z: Tensor,
    p_x_mis: Cells,
    x_drawn: Tensor | None,
) -> Tensor:
    r"""Log p(m | x, ·), ``(member, row, draw, set)``, with missing x_j drawn or integrated out.

    Without ``x_drawn`` ``(member, row, draw, set, column)`` the term of a missing cell is
    :math:`\log \int p(x_j|z,r)\, p(m_j|x_j,r)\, dx_j` by quadrature.
    """
    if p_m.joint:
        missing, observed = p_m(x_drawn, z, slice(0, x.shape[-1]))
    else:
        slices = p_x_mis.columns.slices()
        observed = _log_p_of_cells(p_m, x, z, slices, OBSERVED)
        if x_drawn is None:
            missing = p_x_mis.log_expectation(log_missing(p_m, z), p_m.logistics)
        else:
            missing = _log_p_of_cells(p_m, x_drawn, z, slices, MISSING)
    return (torch.where(m > 0, observed, missing) * known).sum(-1)


def _log_p_of_cells(
    p_m: MaskModule, x: Tensor, z: Tensor, slices: list[slice], outcome: int
) -> Tensor:
    """Log p(m_j | x_j, ·) of one outcome at one x for each cell, ``(..., column)``."""
    blocks = [p_m(x[..., at].unsqueeze(-1), z, at)[outcome].squeeze(-1) for at in slices]
    return torch.cat(blocks, -1)
