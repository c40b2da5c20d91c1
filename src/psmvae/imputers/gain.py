"""GAIN as a scikit-learn imputer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psmvae.imputers import checks
from psmvae.imputers.deep import PAPER_TRAINING, DeepImputer
from psmvae.imputers.docstrings import complete
from psmvae.imputers.resolve import gain_config
from psmvae.models.config import GAINConfig

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.models.batch import Batch
    from psmvae.models.gain import GAIN
    from psmvae.nn.columns import Layout
    from psmvae.nn.noise import Noise
    from psmvae.table.codec import Encoded
    from psmvae.training.recipe import Recipe

ROWS_AT_ONCE = 8192


@complete
@dataclass(kw_only=True, repr=False, eq=False)
class GAINImputer(DeepImputer):
    """Impute missing values with GAIN, generative adversarial imputation (Yoon et al. 2018).

    A generator fills in all cells at once. A discriminator, which gets a hint about the mask,
    classifies each cell as observed or generated. Cells are assumed to be missing completely at
    random. The implementation differs from the authors' code: columns are standardised instead of
    scaled to [0, 1], so generated numbers may leave the observed range; the losses are over the
    cells without a hint, as in their paper; both networks take each step together. ``transform``
    does not train.

    Parameters
    ----------
    hint_rate : float, default=0.9
        Probability that the hint reveals the mask of a cell. One cell of each row is never
        revealed. 1 is the definition in GAIN's paper.
    alpha : float, default=100
        Weight of the squared error of the observed cells.
    network : Network, "auto" or "columns", default="auto"
        Architecture of both networks. "auto" sizes it to the table. "columns" is two hidden layers
        as wide as the table, as its authors use.

    Notes
    -----
    `sample` varies the generator's input noise, which hardly changes its output: draws of GAIN do
    not measure uncertainty.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import GAINImputer
    >>> table = np.random.default_rng(0).normal(size=(100, 3))
    >>> table[::4, 0] = np.nan
    >>> bool(np.isnan(GAINImputer(max_epochs=2, random_state=0).fit_transform(table)).any())
    False
    """

    hint_rate: float = 0.9
    alpha: float = 100.0
    network: Any = "auto"

    _paper = PAPER_TRAINING | {"network": "columns"}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.number("hint_rate", self.hint_rate, 0.0, 1.0)
        checks.number("alpha", self.alpha, 0.0)

    def _check_network(self) -> None:
        if not isinstance(self.network, str) or self.network != "columns":
            super()._check_network()

    def _resolve(self, encoded: Encoded) -> GAINConfig:
        return gain_config(self, *encoded.m.shape)

    def _make_model(self, layout: Layout, missing_rate: Tensor, noise: Noise) -> GAIN:
        from psmvae.models.gain import GAIN

        del missing_rate
        return GAIN(layout, self.config_, noise)

    def _recipe(self) -> Recipe:
        from psmvae.training.gan_recipe import AdversarialRecipe

        return AdversarialRecipe(self.model_)

    def _expected(self, x: Tensor, m: Tensor) -> Tensor:
        import torch

        return torch.cat([self.model_.predict(batch).mean(0) for batch in self._chunks(x, m)])

    def _sampled(self, x: Tensor, m: Tensor, n: int, seed: int) -> Tensor:
        import torch

        from psmvae.models.gain import NOISE
        from psmvae.nn.noise import Noise

        noise, model, parts = Noise(seed, x.device), self.model_, []
        for batch in self._chunks(x, m):
            shape = (*batch.x.shape[:-1], model.inputs.n_features)
            drawn = [
                model.inputs.point(model.generate(batch, NOISE * noise.uniform(*shape)))
                for _ in range(-(-n // model.config.n_members))
            ]
            # (k, member, row, column) -> (row, k · member, column): members alternate
            parts.append(torch.stack(drawn).flatten(0, 1)[:n].transpose(0, 1))
        return torch.cat(parts)

    def _chunks(self, x: Tensor, m: Tensor) -> Iterator[Batch]:
        from psmvae.models.batch import Batch

        n_members = self.config_.n_members
        for start in range(0, x.shape[0], ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            yield Batch.of(x[rows].expand(n_members, -1, -1), m[rows].expand(n_members, -1, -1))
