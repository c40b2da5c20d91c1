"""GAIN: a generator imputes cells, a discriminator classifies each cell as observed or imputed."""

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

# Missing cells enter the generator as noise from U(0, NOISE), as in the GAIN authors' code.
NOISE = 0.01


class GAIN(nn.Module):
    """A generator x̂ = G(x, m, noise) and a discriminator p(m_j = 1) = D(x̂, hint)."""

    statistic_column: Tensor

    def __init__(self, layout: Layout, config: GAINConfig, noise: Noise) -> None:
        super().__init__()
        self.config = config
        # the generator's output is the mean of these distributions; their scales are not used
        self.inputs = Columns(layout, config.n_members, 1.0)
        columns, n_members = self.inputs, config.n_members
        sizes = (columns.n_features + columns.n_columns, columns.n_outputs)
        self.generator = MLP(n_members, *sizes, config.network, noise)
        sizes = (columns.n_statistics + columns.n_columns, columns.n_columns)
        self.discriminator = MLP(n_members, *sizes, config.network, noise)
        # the column of each statistic
        repeats = [n for block in columns.blocks for n in [block.n_statistics] * block.n_columns]
        owner = torch.arange(columns.n_columns).repeat_interleave(
            torch.tensor(repeats), output_size=sum(repeats)
        )
        self.register_buffer("statistic_column", owner, persistent=False)

    def generate(self, batch: Batch, filler: Tensor | float) -> Tensor:
        """Generate E[statistics(x)], ``(member, row, statistic)``; ``filler`` replaces x_mis."""
        visible = self.inputs.per_feature(batch.visible)
        filled = torch.where(visible > 0, self.inputs.features(batch.x), filler)
        outputs: Tensor = self.generator(torch.cat([filled, batch.visible], -1))
        # distributions have axes for draws and sets, here of size one
        expected: Tensor = self.inputs(outputs[:, :, None, None]).expected()
        return expected[:, :, 0, 0]

    def predict(self, batch: Batch) -> Tensor:
        """Generate with the noise at its mean, ``(member, row, statistic)``."""
        return self.generate(batch, NOISE / 2)

    def hint(self, m: Tensor, noise: Noise) -> tuple[Tensor, Tensor]:
        """Draw the hint h: h_j = m_j where b_j = 1, and ½ where b_j = 0.

        b_j = 0 for one random column of each row, and for the others with probability
        1 − ``hint_rate``, so the discriminator never sees a complete mask. A rate of 1 is the
        definition in the GAIN paper. Returns h and b, ``(member, row, column)``.
        """
        n_columns = m.shape[-1]
        hidden = (noise.uniform(*m.shape[:-1], 1) * n_columns).long().clamp(max=n_columns - 1)
        b = noise.keep(m.shape, self.config.hint_rate).to(m.dtype).scatter(-1, hidden, 0.0)
        return b * m + 0.5 * (1 - b), b

    def loss(self, batch: Batch, noise: Noise) -> Tensor:
        """Sum of the losses of the discriminator and the generator, ``(member, row)``.

        Each loss treats the other network's weights as constants, so one backward pass gives both
        gradients.
        """
        m, columns = batch.visible, self.inputs
        filler = NOISE * noise.uniform(*batch.x.shape[:-1], columns.n_features)
        generated = self.generate(batch, filler)
        visible = m[..., self.statistic_column]
        completed = torch.where(visible > 0, columns.statistics(batch.x), generated)
        hint, b = self.hint(m, noise)
        # the discriminator's logits, with gradients for its own weights and for the generator's
        d_logits = self.discriminator(torch.cat([completed.detach(), hint], -1))
        fixed = {name: value.detach() for name, value in self.discriminator.named_parameters()}
        g_logits = functional_call(self.discriminator, fixed, (torch.cat([completed, hint], -1),))
        weight = (1 - b) / m.shape[-1]
        d_loss = -(weight * (m * logsigmoid(d_logits) + (1 - m) * logsigmoid(-d_logits))).sum(-1)
        g_loss = -(weight * (1 - m) * logsigmoid(g_logits)).sum(-1)
        error = (batch.m * columns.error(generated, batch.x)).sum(-1)
        error = error / batch.m.sum(-1).clamp(min=1)
        return d_loss + g_loss + self.config.alpha * error
