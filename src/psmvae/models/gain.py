"""GAIN: a generator fills in, a discriminator says cell by cell what was filled in."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import logsigmoid

from psmvae.models.batch import Batch
from psmvae.models.config import GAINConfig
from psmvae.nn.columns import Columns, Layout
from psmvae.nn.network import MLP
from psmvae.nn.noise import Noise

# Missing cells enter the generator as noise from U(0, NOISE), as its authors have it.
NOISE = 0.01


class GAIN(nn.Module):
    """A generator x̂ = G(x, m, noise) and a discriminator p(m_j = 1) = D(x̂, hint).

    Parameters
    ----------
    layout : Layout
        The columns in the model's order.
    config : GAINConfig
        Sizes and weights.
    noise : Noise
        Where first weights come from.
    """

    statistic_column: Tensor

    def __init__(self, layout: Layout, config: GAINConfig, noise: Noise) -> None:
        super().__init__()
        self.config = config
        # the distributions' means are what the generator says of x; their scales play no part
        self.inputs = Columns(layout, config.n_members, 1.0)
        columns, network = self.inputs, config.network
        self.generator = MLP(
            config.n_members,
            columns.n_features + columns.n_columns,
            columns.n_outputs,
            network=network,
            noise=noise,
        )
        self.discriminator = MLP(
            config.n_members,
            columns.n_statistics + columns.n_columns,
            columns.n_columns,
            network=network,
            noise=noise,
        )

        # the column each statistic is of
        sizes = [n for block in columns.blocks for n in [block.n_statistics] * block.n_columns]
        owner = torch.arange(columns.n_columns).repeat_interleave(torch.tensor(sizes))
        self.register_buffer("statistic_column", owner, persistent=False)

    def generate(self, batch: Batch, filler: Tensor | float) -> Tensor:
        """E[statistics(x)] of every cell, ``(member, row, statistic)``.

        ``filler`` is what the generator sees in place of cells that are not visible.
        """
        seen = self.inputs.per_feature(batch.visible)
        filled = torch.where(seen > 0, self.inputs.features(batch.x), filler)
        outputs: Tensor = self.generator(torch.cat([filled, batch.visible], -1))
        # distributions have axes for draws and sets, of which there are none here
        expected: Tensor = self.inputs(outputs[:, :, None, None]).expected()
        return expected[:, :, 0, 0]

    def predict(self, batch: Batch) -> Tensor:
        """What the generator says with its noise at the middle."""
        return self.generate(batch, NOISE / 2)

    def hint(self, m: Tensor, noise: Noise) -> tuple[Tensor, Tensor]:
        """The hint h and b: h_j is m_j where b_j = 1, and ½ (nothing told) where b_j = 0.

        b_j = 0 for one column of each row drawn at random, and for the others with probability
        1 − `hint_rate`: the discriminator never sees a whole mask. A rate of 1 is the definition of
        GAIN's authors.
        """
        n_columns = m.shape[-1]
        untold = (noise.uniform(*m.shape[:-1], 1) * n_columns).long().clamp(max=n_columns - 1)
        b = noise.keep(m.shape, self.config.hint_rate).to(m.dtype).scatter(-1, untold, 0.0)
        return b * m + 0.5 * (1 - b), b

    def loss(self, batch: Batch, noise: Noise) -> Tensor:
        """The discriminator's and the generator's losses added up, ``(member, row)``.

        Each sees the other's weights as constants, so one backward pass gives both gradients.
        """
        m, columns = batch.visible, self.inputs
        filler = NOISE * noise.uniform(*batch.x.shape[:-1], columns.n_features)
        made = self.generate(batch, filler)
        seen = m[..., self.statistic_column]
        completed = torch.where(seen > 0, columns.statistics(batch.x), made)
        hint, b = self.hint(m, noise)
        judged = self.discriminator(torch.cat([completed.detach(), hint], -1))
        fixed = {name: value.detach() for name, value in self.discriminator.named_parameters()}
        fooled = functional_call(self.discriminator, fixed, (torch.cat([completed, hint], -1),))
        untold = (1 - b) / m.shape[-1]
        d_loss = -(untold * (m * logsigmoid(judged) + (1 - m) * logsigmoid(-judged))).sum(-1)
        g_loss = -(untold * (1 - m) * logsigmoid(fooled)).sum(-1)
        error = (batch.m * columns.error(made, batch.x)).sum(-1) / batch.m.sum(-1).clamp(min=1)
        return d_loss + g_loss + self.config.alpha * error
