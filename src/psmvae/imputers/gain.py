"""GAIN as a scikit-learn imputer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from psmvae.imputers import checks
from psmvae.imputers.deep import DeepImputer
from psmvae.models.settings import GAINSettings
from psmvae.nn.settings import Network
from psmvae.training.settings import Training

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.models.batch import Batch
    from psmvae.models.gain import GAIN
    from psmvae.nn.columns import Layout
    from psmvae.nn.noise import Noise
    from psmvae.training.recipe import Recipe

ROWS_AT_ONCE = 8192


@dataclass(kw_only=True, repr=False, eq=False)
class GAINImputer(DeepImputer):
    """Fill in missing values with GAIN, generative adversarial imputation (Yoon et al. 2018).

    A generator fills in all cells at once; a discriminator, given a hint about the mask, says cell
    by cell what was filled in. Assumes that cells are missing completely at random. Differs from
    its authors' code: all rows are standardised rather than scaled to [0, 1], so generated numbers
    are not held inside the observed range; the losses are over the cells without a hint, as in
    their paper; both networks step together. ``transform`` of new rows never trains.

    Parameters
    ----------
    hint_rate : float, default=0.9
        Probability that the discriminator is told the truth about a cell; about one cell of each
        row it is never told. 1 is the definition in GAIN's paper.
    alpha : float, default=100
        Weight of the squared error of the observed cells.
    network : Network, "auto" or "columns", default="auto"
        Of both. "columns" is two hidden layers as wide as the table, as its authors have.
    **parameters
        Those of `DeepImputer`.

    Notes
    -----
    `sample` gives the generator other noise. This hardly moves what it fills in: GAIN's draws are
    no measure of uncertainty.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import GAINImputer
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(size=(100, 1)) + 0.1 * rng.normal(size=(100, 3))
    >>> table[rng.random(table.shape) < 0.2] = np.nan
    >>> filled = GAINImputer(max_epochs=2, random_state=0).fit_transform(table)
    >>> bool(np.isnan(filled).any())
    False
    """

    hint_rate: float = 0.9
    alpha: float = 100.0
    network: Any = "auto"

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """An imputer with the paper's hyperparameters, some of them overridden.

        Examples
        --------
        >>> GAINImputer.paper().network
        'columns'
        """
        settings: dict[str, Any] = {
            "network": "columns",
            "input_mask_rate": 0.0,
            "learning_rate": 1e-3,
            "max_epochs": 1000,
            "batch_size": 200,
            "validation_fraction": 0.0,
        }
        return cls(**(settings | overrides))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.number("hint_rate", self.hint_rate, 0.0, 1.0)
        checks.number("alpha", self.alpha, 0.0)

    def _check_network(self) -> None:
        if isinstance(self.network, str) and self.network == "columns":
            return
        super()._check_network()

    def _settings(self, n_rows: int, n_columns: int) -> GAINSettings:
        if isinstance(self.network, str) and self.network == "columns":
            network = Network(width=n_columns, depth=2, residual=False, linear=False)
        else:
            network = self._network(n_rows, n_columns)
        return GAINSettings(int(self.n_members), network, float(self.hint_rate), float(self.alpha))

    def _make(
        self, layout: Layout, settings: GAINSettings, missing_rate: Tensor, noise: Noise
    ) -> GAIN:
        from psmvae.models.gain import GAIN

        del missing_rate
        return GAIN(layout, settings, noise)

    def _recipe(self, training: Training) -> Recipe:
        from psmvae.training.gan_recipe import AdversarialRecipe

        del training
        return AdversarialRecipe(self.model_)

    def _expected(self, x: Tensor, m: Tensor) -> Tensor:
        import torch

        parts = [self.model_.predict(batch).mean(0) for batch in self._chunks(x, m)]
        return torch.cat(parts)

    def _sampled(self, x: Tensor, m: Tensor, n: int, seed: int) -> Tensor:
        import torch

        from psmvae.models.gain import NOISE
        from psmvae.nn.noise import Noise

        noise, model = Noise(seed, x.device), self.model_
        n_members = model.settings.n_members
        parts = []
        for batch in self._chunks(x, m):
            shape = (*batch.x.shape[:-1], model.inputs.n_features)
            drawn = [
                model.inputs.point(model.generate(batch, NOISE * noise.uniform(*shape)))
                for _ in range(-(-n // n_members))
            ]
            # (k, member, row, column) -> (row, k · member, column): members alternate
            parts.append(torch.stack(drawn).flatten(0, 1)[:n].transpose(0, 1))
        return torch.cat(parts)

    def _chunks(self, x: Tensor, m: Tensor) -> Iterator[Batch]:
        from psmvae.models.batch import Batch

        n_members = self.model_.settings.n_members
        for start in range(0, x.shape[0], ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            yield Batch.of(x[rows].expand(n_members, -1, -1), m[rows].expand(n_members, -1, -1))
