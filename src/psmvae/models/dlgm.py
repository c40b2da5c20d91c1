"""The deep latent Gaussian model of the paper: a GMVAE with a second Gaussian latent w."""

from __future__ import annotations

from torch import Tensor

from psmvae.kinds import Column
from psmvae.models.batch import Batch
from psmvae.models.config import LatentConfig
from psmvae.models.gmvae import GMVAE
from psmvae.nn.columns import Cells, Layout
from psmvae.nn.factors import QXMis
from psmvae.nn.noise import Noise


class DLGM(GMVAE):
    """p(r) p(z|r) p(w|z,r) p(x|z,r) p(m|·) with q(r|·) q(z|r,·) q(w|z,r,·).

    w has a dimension for each column of x, and x does not depend on it: as the paper writes it,
    its inference is PSMVAE's with w for x_mis. The bound is the GMVAE's less
    KL(q(w|·) || p(w|z,r)), which is PSMVAE's at π' = 1, where nothing observed ever says anything
    about x_mis. (The paper's text calls this π' = 0; its formulas are those of 1.)
    """

    def __init__(
        self, layout: Layout, config: LatentConfig, missing_rate: Tensor, noise: Noise
    ) -> None:
        reals = [Column(f"w{j}", "real", "Float64", 1) for j in range(len(layout.columns))]
        layout_w = Layout.of(reals)
        super().__init__(layout, config, missing_rate, noise, second=layout_w)
        self.q_w = QXMis(self.sizes, self.n_in, layout_w, config.network.light(), noise)

    def auxiliary(
        self,
        batch: Batch,
        shown: Tensor,
        z: Tensor,
        p_x_mis: Cells,
        second: Cells | None,
        noise: Noise | None,
    ) -> tuple[Tensor | None, Tensor | None]:
        """−KL(q(w | ·) || p(w | z, r)); missing values are drawn as in the GMVAE."""
        _, x_drawn = super().auxiliary(batch, shown, z, p_x_mis, second, noise)
        if second is None:
            return None, x_drawn
        q_w = self.q_w(shown, z, noise)
        return -q_w.kl(second).sum(-1), x_drawn
