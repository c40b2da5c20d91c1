"""Where training starts: simple models fitted to the table, and the mask before the networks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from psmvae.models.psmvae import PSMVAE
from psmvae.nn.noise import Noise
from psmvae.training.heldout import Table

# Rows that the simple models are fitted to.
MAX_LINEAR_ROWS = 3000
MAX_CLASS_ROWS = 20_000


@torch.no_grad()
def start_simple(model: PSMVAE, table: Table, m: Tensor, noise: Noise) -> None:
    """Start from simple models fitted to the table: classes of masks, and factor analysis."""
    if model.q_r.classes is not None:
        classes = model.q_r.classes.start(m[:MAX_CLASS_ROWS], noise)
        model.p_r.logits.copy_(classes.share.log().unsqueeze(1))
        if hasattr(model.p_m, "start"):
            model.p_m.start(classes.rate)
    if model.q_z.linear is None:
        return
    rows = slice(0, MAX_LINEAR_ROWS)
    batch = table.all_rows(rows)
    features = model.inputs.features(batch.x)
    visible = model.inputs.spread(batch.m)
    fa = model.q_z.linear.start(features, visible, max_rows=MAX_LINEAR_ROWS)
    model.p_x.start_linear(fa.mean, fa.loading.transpose(1, 2), fa.psi.sqrt())


def warm_parameters(model: PSMVAE) -> list[nn.Parameter]:
    """What a mask that depends on x is trained with before the networks move.

    The error on held-out cells cannot judge such a mask (they are all observed), so it must not
    wait for networks that may stop early. With ``trust_normal`` all that is linear in x moves with
    it.
    """
    mask = [*model.p_m.parameters(), *model.p_r.parameters()]
    if not getattr(model.p_m, "trust_normal", False) or model.p_x.loading is None:
        return mask
    x = [*model.p_x.x_obs.parameters(), *model.p_x.x_mis.parameters(), model.p_x.loading]
    return mask + x + [net.last.bias for net in model.p_x.nets] + [*model.p_z.parameters()]
