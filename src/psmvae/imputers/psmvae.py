"""The PSMVAE as a scikit-learn imputer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

from psmvae.imputers import checks
from psmvae.imputers.latent import PAPER, LatentImputer, SetsMixin
from psmvae.imputers.sizing import FAST_PRETRAINED, FEWEST_ROWS, Preset, standard_pretrained
from psmvae.models.settings import PSMVAESettings, Settings
from psmvae.nn.settings import LatentMask, MaskModel, Network, NoMask, SelfMask, mask_model
from psmvae.table.codec import Encoded

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.nn.columns import Layout
    from psmvae.nn.noise import Noise

# What "auto" stands for at most.
MOST_SETS = 4


@dataclass(kw_only=True, repr=False, eq=False)
class PSMVAEImputer(SetsMixin, LatentImputer):
    """Fill in missing values with a deep pattern-set mixture model.

    A variational autoencoder models the data and the missingness mask together. A categorical
    latent r groups rows into missingness pattern sets, a Gaussian latent z ties the columns, and a
    mask model says why cells go missing. Tables may be pandas, polars or pyarrow frames or NumPy
    arrays, with numbers, strings, categories and bools; what comes in goes out, with the same types
    and index, observed cells untouched.

    Parameters
    ----------
    mask_model : {"latent", "self", "none"} or object, default="latent"
        Why cells are missing. "latent": p(m|z,r), the paper's (b). "self": p(m_j|x_j,r), the
        paper's (a): a value decides on its own missingness; `SelfMask` takes options, such as the
        columns for which this holds. "none": ignored. Or an object of your own, see
        `psmvae.nn.mask`.
    pi : float or "rate", default=0.5
        π', the probability that an observed value says nothing about x_mis: 0 ties x_mis to the
        observed data, 1 leaves it free. "rate" is P(m_j=1) / (1 + P(m_j=1)) for each column.
    beta : float, default=0.5
        Weight of the KL terms of z and r; 1 trains the evidence bound itself. Less lets z say more
        and lowers the error; the width of draws is corrected on held-out cells either way.
    n_sets : int or "auto", default="auto"
        Number of pattern sets, the values of r. "auto": as many as the masks of the table bear out
        (by the BIC of latent classes), four at most; one where cells go missing by themselves, and
        where the mask is ignored.
    regression : Network, "auto" or None, default="auto"
        A network that says what the observed cells tell of the missing ones directly: the middle of
        p(x_mis | z, r, x_obs), of which z and r then say how it varies. It is learned first, and
        believed as far as held-out cells of each column bear it out against the start of the rest
        (factor analysis); the rest then has few steps. "auto": one sized to the table, for 2,000
        rows or more, with the mask models "latent" and "none", unless `validation_fraction` is 0. Not with
        ``scale="student"``. It has a batch, a learning rate and a share of hidden cells of its own,
        and beside it cells are held out in 2,048 rows only (1,024 in a hurry).
    impute_from : {"x_obs", "x_mis"}, default="x_obs"
        Which of the two distributions missing values are imputed from where the mask does not
        depend on x (where it does, always "x_mis"). "x_mis" is the model's own and where `pi` has a
        say; "x_obs" has learned from every observed cell.
    **parameters
        Those of `LatentImputer` (n_latent, n_draws, target_ess, max_memory, scale,
        weight_observed) and `DeepImputer` (n_members, bootstrap, kinds, handle_unknown, network, input_mask_rate,
        max_epochs, batch_size, learning_rate, validation_fraction, patience, max_time, device, random_state,
        verbose).

    Attributes
    ----------
    schema_, history_, best_validation_error_, n_epochs_, fast_preset_
        As in `DeepImputer` and `LatentImputer`.
    n_sets_ : int
        Number of pattern sets.
    set_sizes_ : ndarray of shape (n_sets_,)
        Share of the training rows in each set, largest first.

    Notes
    -----
    A column with nothing observed is warned about and left missing: the output has the columns of
    the input.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import PSMVAEImputer
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(size=(200, 1)) + 0.1 * rng.normal(size=(200, 4))
    >>> table[rng.random(table.shape) < 0.2] = np.nan
    >>> imputer = PSMVAEImputer(max_epochs=5, random_state=0).fit(table)
    >>> filled = imputer.transform(table)
    >>> bool(np.isnan(filled).any())
    False
    >>> len(imputer.sample(table, n=3))
    3
    """

    mask_model: str | MaskModel = field(default="latent", kw_only=False)
    pi: float | Literal["rate"] = 0.5
    beta: float = 0.5
    n_sets: int | Literal["auto"] = "auto"
    regression: Network | Literal["auto"] | None = "auto"
    impute_from: Literal["x_obs", "x_mis"] = "x_obs"

    @classmethod
    def paper(cls, model: Literal["a", "b"] = "b", **overrides: Any) -> Self:
        """An imputer with the paper's hyperparameters.

        Parameters
        ----------
        model : {"a", "b"}
            (a) models the mask from x, (b) from z.
        **overrides
            Any parameter of the constructor.

        Examples
        --------
        >>> PSMVAEImputer.paper("b", max_epochs=10).n_sets
        10
        """
        checks.choice("model", model, ("a", "b"))
        of_x = SelfMask(ceiling=False, integrate="draw", tilt=False)
        mask = of_x if model == "a" else "latent"
        settings = PAPER | {
            "mask_model": mask,
            "n_sets": 10,
            "n_draws": 10_000,
            "scale": 0.5,
            "beta": 1.0,
            "weight_observed": True,
            "regression": None,
            "impute_from": "x_mis",
        }
        return cls(**(settings | overrides))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.number("pi", self.pi, 0.0, 1.0, words=("rate",))
        checks.choice("impute_from", self.impute_from, ("x_obs", "x_mis"))
        if isinstance(self.mask_model, type):
            raise TypeError(
                f"mask_model must be an object and not a class: {self.mask_model.__name__}(...)."
            )
        mask_model(self.mask_model)
        network = self.regression
        if not (network is None or isinstance(network, Network) or network == "auto"):
            raise TypeError(f"regression must be a Network, 'auto' or None, got {network!r}.")
        if isinstance(network, Network) and self.scale == "student":
            raise ValueError("regression needs a scale that is a number or 'learned'.")

    @property
    def _pace(self) -> Preset:
        if not self._may_regress:
            return super()._pace
        # a small table teaches a regression less than it does factor analysis, and without held-out
        # cells nobody knows which one is better
        pays = self.n_rows_ >= FEWEST_ROWS and self.validation_fraction > 0
        if self.regression == "auto" and not pays:
            return super()._pace
        return FAST_PRETRAINED if self.fast_preset_ else standard_pretrained(self.n_rows_)

    @property
    def _may_regress(self) -> bool:
        """Whether a regression is wanted where it pays."""
        if self.regression != "auto":
            return self.regression is not None
        of_x = not isinstance(mask_model(self.mask_model), LatentMask | NoMask)
        return self.scale != "student" and not of_x

    def _check_sets(self) -> None:
        if isinstance(self.n_sets, str) and self.n_sets != "auto":
            raise ValueError(f"n_sets must be a whole number >= 1 or 'auto', got {self.n_sets!r}.")
        if not isinstance(self.n_sets, str):
            super()._check_sets()

    def _read(self, X: Any) -> Encoded:
        import torch

        from psmvae.nn.latent_classes import count_classes
        from psmvae.nn.noise import Noise

        encoded: Encoded = super()._read(X)
        if self.n_sets == "auto":
            ignored = isinstance(mask_model(self.mask_model), NoMask)
            m, noise = torch.as_tensor(encoded.m), Noise(self._seed(4))
            self.n_sets_ = 1 if ignored else count_classes(m, MOST_SETS, noise)
        return encoded

    def _settings(self, n_rows: int, n_columns: int) -> PSMVAESettings:
        shared = self._shared_settings(n_rows, n_columns)
        n_sets = self.n_sets_ if self.n_sets == "auto" else int(self.n_sets)
        regression = self._pace.regression if self.regression == "auto" else self.regression
        own = {"n_sets": n_sets, "mask": mask_model(self.mask_model), "regression": regression}
        pi = self.pi if isinstance(self.pi, str) else float(self.pi)
        return PSMVAESettings(**(shared | own), pi=pi, impute_from=self.impute_from)

    def _make(self, layout: Layout, settings: Settings, missing_rate: Tensor, noise: Noise) -> Any:
        from psmvae.models.psmvae import PSMVAE

        if not isinstance(settings, PSMVAESettings):
            raise TypeError(f"a PSMVAE needs PSMVAESettings, got {type(settings).__name__}.")
        return PSMVAE(layout, settings, missing_rate, noise)
