"""The deep latent Gaussian model of the paper: a GMVAE with a second Gaussian latent variable w."""

from __future__ import annotations

from torch import Tensor

from psmvae.kinds import Column
from psmvae.models.batch import Batch
from psmvae.models.config import LatentConfig
from psmvae.models.gmvae import GMVAE, Heads, TrainingTerms
from psmvae.nn.columns import Layout
from psmvae.nn.factors import QXMis
from psmvae.nn.noise import Noise


class DLGM(GMVAE):
    r"""p(r) p(z|r) p(w|z,r) p(x|z,r) p(m|·) with q(r|·) q(z|r,·) q(w|z,r,·).

    w has one dimension for each column of x, and x does not depend on w: inference is that of the
    PSMVAE with w in place of x_mis. The ELBO is that of the GMVAE with the additional term

    .. math:: -E_{q(z, r|\cdot)}\, KL(q(w|z,r,\cdot) \| p(w|z,r)),

    the PSMVAE's term of x_mis at π' = 1, where observed cells carry no information about x_mis.
    (The paper's text calls this case π' = 0, but its formulas are those of π' = 1.)
    """

    def __init__(
        self, layout: Layout, config: LatentConfig, missing_rate: Tensor, noise: Noise
    ) -> None:
        n_columns = len(layout.columns)
        layout_w = Layout.of([Column(f"w{j}", "real", "Float64", 1) for j in range(n_columns)])
        super().__init__(layout, config, missing_rate, noise, second=layout_w)
        self.q_w = QXMis(self.sizes, self.n_in, layout_w, config.network.light(), noise)

    def training_terms(
        self, batch: Batch, inputs: Tensor, z: Tensor, p_x: Heads, noise: Noise | None
    ) -> TrainingTerms:
        """−KL(q(w | z, r, ·) || p(w | z, r)), and drawn values as in the GMVAE."""
        terms = super().training_terms(batch, inputs, z, p_x, noise)
        p_w = p_x[1]
        if p_w is None:
            return terms
        return terms._replace(auxiliary=-self.q_w(inputs, z, noise).kl(p_w).sum(-1))
