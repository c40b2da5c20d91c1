"""The PSMVAE as a scikit-learn imputer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np

from psmvae.imputers import checks, sizing
from psmvae.imputers.deep import DeepImputer
from psmvae.models.psmvae import Settings
from psmvae.nn.mask import MaskModel, SelfMask, mask_model
from psmvae.nn.network import Network
from psmvae.training import Training

# Decay of the running mean of the weights, where a held-out error chooses among them.
AVERAGE = 0.99


class PSMVAEImputer(DeepImputer):
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
    n_sets : int, default=4
        Number of pattern sets, the values of r.
    n_latent : int or "auto", default="auto"
        Dimension of z.
    pi : float or "rate", default=0.5
        π', the probability that an observed value says nothing about x_mis: 0 ties x_mis to the
        observed data, 1 leaves it free. "rate" is P(m_j=1) / (1 + P(m_j=1)) for each column.
    n_members : int, default=1
        Members trained side by side and combined: imputations are averaged, draws are dealt out.
    n_draws : int, default=100
        Importance draws of z for each row and set.
    kinds : mapping of str to str, optional
        The kind of a column ("real", "integer", "binary", "categorical") where the inferred one is
        not wanted.
    unseen : {"error", "missing"}, default="error"
        What to do with a category that was not there at fit.
    network : Network or "auto", default="auto"
        The networks' architecture; "auto" sizes it to the table.
    scale : float or "learned", default="learned"
        Standard deviation of numeric likelihoods on standardised data.
    beta : float, default=0.5
        Weight of the KL terms of z and r; 1 trains the evidence bound itself. Less lets z say more
        and lowers the error; the width of draws is corrected on held-out cells either way.
    hide : float, default=0.25
        Observed cells are hidden from the encoder while training, a share of each row drawn from
        U(0, hide).
    weight_observed : bool, default=False
        Weight log p(x_obs|z,r) by 1 / (1 - missing rate), as the paper does.
    max_epochs : int or "auto", default="auto"
        Epochs of training at most.
    batch_size : int or "auto", default="auto"
        Rows of a training step.
    learning_rate : float, default=1e-3
        Of Adam.
    held_out : float, default=0.1
        Share of the observed cells held out to measure the error that stops training; 0 trains for
        `max_epochs` and keeps the last weights.
    patience : int, default=20
        Epochs without a better held-out error before training stops.
    device : str, default="auto"
        "auto" (CUDA where there is one), "cpu", "cuda" or "cuda:N".
    random_state : int, RandomState or None, default=None
        One number gives the same result twice on the same device.
    verbose : bool, default=False
        Show a progress bar in a terminal.

    Attributes
    ----------
    schema_ : Schema
        What each column is.
    history_ : list of Progress
        One entry an epoch.
    best_error_ : float or None
        Error of the held-out cells, in standard deviations, of the weights that were kept.
    n_epochs_ : int
        Epochs trained.
    set_sizes_ : ndarray of shape (n_sets,)
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

    def __init__(
        self,
        mask_model: str | MaskModel = "latent",
        *,
        n_sets: int = 4,
        n_latent: int | Literal["auto"] = "auto",
        pi: float | Literal["rate"] = 0.5,
        n_members: int = 1,
        n_draws: int = 100,
        kinds: Mapping[str, str] | None = None,
        unseen: Literal["error", "missing"] = "error",
        network: Network | Literal["auto"] = "auto",
        scale: float | Literal["learned"] = "learned",
        beta: float = 0.5,
        hide: float = 0.25,
        weight_observed: bool = False,
        max_epochs: int | Literal["auto"] = "auto",
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: float = 1e-3,
        held_out: float = 0.1,
        patience: int = 20,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.mask_model = mask_model
        self.n_sets = n_sets
        self.n_latent = n_latent
        self.pi = pi
        self.n_members = n_members
        self.n_draws = n_draws
        self.kinds = kinds
        self.unseen = unseen
        self.network = network
        self.scale = scale
        self.beta = beta
        self.hide = hide
        self.weight_observed = weight_observed
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.held_out = held_out
        self.patience = patience
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

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
        mask = SelfMask(ceiling=False, integrate="draw") if model == "a" else "latent"
        settings: dict[str, Any] = {
            "mask_model": mask,
            "n_sets": 10,
            "n_latent": 20,
            "n_draws": 10_000,
            "network": Network.paper(),
            "scale": 0.5,
            "beta": 1.0,
            "hide": 0.0,
            "weight_observed": True,
            "max_epochs": 1000,
            "batch_size": 200,
            "held_out": 0.0,
        }
        return cls(**(settings | overrides))

    def _check_parameters(self) -> None:
        """Check every parameter."""
        for name, low in (("n_sets", 1), ("n_members", 1), ("n_draws", 1), ("patience", 1)):
            checks.whole_number(name, getattr(self, name), low=low)
        for name in ("n_latent", "batch_size", "max_epochs"):
            if not isinstance(value := getattr(self, name), str) or value != "auto":
                checks.whole_number(name, value, low=1)
        if not isinstance(self.pi, str) or self.pi != "rate":
            checks.number("pi", self.pi, 0.0, 1.0)
        if not isinstance(self.scale, str) or self.scale != "learned":
            checks.number("scale", self.scale, 0.0, open_low=True)
        if not isinstance(self.network, Network) and self.network != "auto":
            raise TypeError(f"network must be a Network or 'auto', got {self.network!r}.")
        checks.number("beta", self.beta, 0.0, open_low=True)
        checks.number("hide", self.hide, 0.0, 1.0, open_high=True)
        checks.number("held_out", self.held_out, 0.0, 0.5)
        checks.number("learning_rate", self.learning_rate, 0.0, open_low=True)
        checks.choice("unseen", self.unseen, ("error", "missing"))
        for name in ("weight_observed", "verbose"):
            checks.yes_or_no(name, getattr(self, name))
        if self.kinds is not None and not isinstance(self.kinds, Mapping):
            raise TypeError(
                f"kinds must map names of columns to their kinds, or be None, got {self.kinds!r}."
            )
        if isinstance(self.mask_model, type):
            raise TypeError(
                f"mask_model must be an object and not a class: {self.mask_model.__name__}(...)."
            )
        mask_model(self.mask_model)

    def _settings(self, n_rows: int, n_columns: int) -> tuple[Settings, Training]:
        """What the parameters come to for a table of this size."""
        size, latent, epochs = self.batch_size, self.n_latent, self.max_epochs
        batch_size = sizing.batch_size_for(n_rows) if size == "auto" else int(size)
        most_epochs = sizing.max_epochs_for(n_rows, batch_size) if epochs == "auto" else int(epochs)
        model = Settings(
            n_members=int(self.n_members),
            n_sets=int(self.n_sets),
            n_latent=sizing.n_latent_for(n_columns) if latent == "auto" else int(latent),
            network=sizing.network_for(n_rows) if self.network == "auto" else self.network,
            mask=mask_model(self.mask_model),
            scale=None if self.scale == "learned" else float(self.scale),
            pi="rate" if self.pi == "rate" else float(self.pi),
        )
        training = Training(
            max_epochs=most_epochs,
            batch_size=batch_size,
            learning_rate=float(self.learning_rate),
            held_out=float(self.held_out),
            patience=int(self.patience),
            hide=float(self.hide),
            beta=float(self.beta),
            average=AVERAGE if self.held_out > 0 else 0.0,
            weight_observed=bool(self.weight_observed),
        )
        return model, training
