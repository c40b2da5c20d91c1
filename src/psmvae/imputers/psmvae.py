"""The pattern-set mixture VAE as a scikit-learn imputer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

from psmvae.imputers import checks
from psmvae.imputers.base import Bools, Floats
from psmvae.imputers.docstrings import complete
from psmvae.imputers.latent import PAPER, ELBOImputer
from psmvae.imputers.nonignorable import AUTO, SELF, asks, questions_of, warn_of_complete
from psmvae.imputers.options import Advanced
from psmvae.imputers.residual_trees import fit_seconds
from psmvae.imputers.resolve import (
    FEW_ROWS,
    NONLINEAR_GAIN_SAMPLE,
    averaged_columns,
    corrected_columns,
    latent_config,
    resolve_mask_model,
    resolve_mixture_gain,
    resolve_regression,
)
from psmvae.imputers.sets import SetsMixin
from psmvae.mechanism.settings import SelfMask
from psmvae.models.config import LatentConfig
from psmvae.nn.architecture import Network
from psmvae.nn.settings import LatentMask, LogisticMask, MaskModel, NoMask

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.mechanism.question import Question
    from psmvae.mechanism.risk import RiskSets
    from psmvae.nn.columns import Layout
    from psmvae.nn.noise import Noise
    from psmvae.table.codec import Encoded

# Upper limit of n_sets="auto".
MAX_SETS = 4


@complete
@dataclass(kw_only=True, repr=False, eq=False)
class PSMVAEImputer(SetsMixin, ELBOImputer):
    """Impute missing values with a deep pattern-set mixture model.

    A variational autoencoder models the data and the missingness mask jointly. A categorical latent
    r groups rows into missingness pattern sets, a Gaussian latent z models the dependence between
    columns, and a mask model p(m | ·) describes why cells are missing. The default differs from the
    paper: β = 0.5 instead of 1, imputation from the decoder head p(x_obs|z,r) instead of
    p(x_mis|z,r), a factor analysis from which the networks start, and a regression for the
    conditional mean: a network on tables of 2,000 rows or more, a linear one on smaller tables.
    `PSMVAEImputer.paper` has its settings.

    Tables may be pandas, polars or pyarrow frames or NumPy arrays. The output has the type, dtypes
    and index of the input, and observed cells are unchanged.

    Parameters
    ----------
    mask_model : str, SelfMask or mask model, default="auto"
        Why cells are missing. "auto": the model is "latent". After training, two explanations of
        the mask of each column are compared: its own value and the other columns. Where the value
        is chosen, imputations are corrected for it; see `mechanism_`.
        "self": the value of each cell decides whether it is missing; `SelfMask` says so for some
        columns, and takes what is known, such as the sign. "latent": p(m|z,r), the paper's
        model (b).
        "none": ignorable missingness. "logistic-ceiling": p(m_j|x_j,r), the paper's model (a),
        with options in `LogisticMask`. "logistic", "linear" and "network" are the selection models
        of `NotMIWAEImputer`. An object with ``build(shape, noise)`` is your own mask model, see
        `psmvae.nn.mask`.
    pi : float or "rate", default=0.5
        π' of the probabilistic semi-supervision: the probability that an observed value gives no
        information about x_mis. 0 ties x_mis to the observed data, 1 leaves it free. "rate" is
        P(m_j=1) / (1 + P(m_j=1)) for each column.
    n_sets : int or "auto", default="auto"
        Number of pattern sets, the values of r, at most 1,000. "auto" chooses one to four by the
        BIC of a latent class model of the masks, and one if ``mask_model="none"``. Where values
        were found to explain their masks, sets are rows at risk of the same columns, at most this
        many.
    regression : Network, "auto" or None, default="auto"
        Network that predicts the conditional mean of x_mis from x_obs; z and r then model the
        residuals around it. It is pre-trained, and combined with factor analysis by weights that
        minimise the error of the validation cells of each column. "auto" uses one sized to the
        table for 2,000 rows or more, and for 500 or more where nonlinear terms improve linear
        regressions of the columns on each other; with the mask models "latent" and "none", unless
        ``validation_fraction`` is 0 or ``scale="student"``. With fewer than 2,000 rows, single
        imputations of numbers are averaged with the conditional means of a multivariate Normal;
        see `linear_mean_`. In larger tables, they are averaged with those of mixtures of
        multivariate Normals, where these predict better than one; see `mixture_mean_`. In larger
        tables with one to three incomplete columns of numbers, they are corrected by trees that
        are grown on the residuals; see `residual_trees_`.
    patience : int, default=5
        Training without a regression stops after this many epochs in which the validation error has
        not fallen by 0.2 %. The default of other deep imputers is 10.

    Attributes
    ----------
    risk_sets_ : RiskSets or None
        Sets of rows at risk of the same columns, None where sets are the values of r.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import PSMVAEImputer
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> X[::4, 0] = np.nan
    >>> imputer = PSMVAEImputer(max_epochs=5, random_state=0).fit(X)
    >>> bool(np.isnan(imputer.transform(X)).any())
    False
    >>> len(imputer.sample(X, n=3))
    3
    """

    mask_model: str | SelfMask | MaskModel = field(default="auto", kw_only=False)
    pi: float | Literal["rate"] = 0.5
    n_sets: int | Literal["auto"] = "auto"
    regression: Network | Literal["auto"] | None = "auto"
    patience: int = 5

    @classmethod
    def paper(cls, model: Literal["a", "b"] = "b", **overrides: Any) -> Self:
        """Return an imputer with the hyperparameters of the paper.

        Parameters
        ----------
        model : {"a", "b"}, default="b"
            (a) models the mask from x, (b) from z.
        **overrides
            Parameters of the constructor that replace the paper's.

        Returns
        -------
        PSMVAEImputer
            An imputer that is not fitted yet.

        Examples
        --------
        >>> PSMVAEImputer.paper("b", max_epochs=10).n_sets
        10
        """
        checks.choice("model", model, ("a", "b"))
        of_x = LogisticMask(ceiling=False, integrate="draw", tilt=False)
        settings = PAPER | {
            "mask_model": of_x if model == "a" else "latent",
            "n_sets": 10,
            "n_draws": 10_000,
            "scale": 0.5,
            "beta": 1.0,
            "regression": None,
            "advanced": Advanced(target_ess=None, weight_observed=True, impute_from="x_mis"),
        }
        return cls(**(settings | overrides))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.number("pi", self.pi, 0.0, 1.0, words=("rate",))
        self._network_mask()
        network = self.regression
        if not (network is None or isinstance(network, Network) or network == "auto"):
            raise TypeError(f"regression must be a Network, 'auto' or None, got {network!r}.")
        if isinstance(network, Network) and self.scale == "student":
            raise ValueError("regression needs a scale that is a number or 'learned'.")

    def _network_mask(self) -> MaskModel:
        """Return the mask model of the networks."""
        if asks(self.mask_model):
            return LatentMask()
        return resolve_mask_model(self.mask_model, (AUTO, SELF))

    def _fit_sets(self, encoded: Encoded) -> None:
        """Replace the sets of the model by those of the mechanism, if there is one."""
        if self.mechanism_ is None or not self.mechanism_.tilts:
            return
        from psmvae.mechanism.risk import RiskSets

        n_sets = None if self.n_sets == "auto" else int(self.n_sets)
        at_risk = self._at_risk(encoded.x, encoded.m)
        self.risk_sets_: RiskSets | None = RiskSets.of(self.mechanism_, at_risk, n_sets)
        self.n_sets_, self.set_sizes_ = len(self.risk_sets_.size), self.risk_sets_.size

    def _at_risk(self, x: Floats, m: Bools) -> Floats:
        mechanism: Any = self.mechanism_
        found: Floats = mechanism.at_risk(x, m, self._predictions(x, m))
        return found

    def _set_proba(self, x: Floats, m: Bools) -> Floats:
        if self.risk_sets_ is None:
            return super()._set_proba(x, m)
        return self.risk_sets_.proba(self._at_risk(x, m))

    def _set_words(self) -> list[str]:
        if self.risk_sets_ is None or self.mechanism_ is None:
            return super()._set_words()
        return self.risk_sets_.words(self.mechanism_)

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, plain = super()._state()
        if self.risk_sets_ is not None:
            own = {"columns": self.risk_sets_.columns, "at_risk": self.risk_sets_.at_risk}
            arrays |= {f"risk_sets.{name}": value for name, value in own.items()}
        return arrays, plain | {"risk_sets": self.risk_sets_ is not None}

    def _set_state(self, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        self.risk_sets_ = None
        parts = [arrays.pop(f"risk_sets.{name}", None) for name in ("columns", "at_risk")]
        super()._set_state(arrays, plain)
        if plain["risk_sets"]:
            from psmvae.mechanism.risk import RiskSets

            if any(part is None for part in parts) or self.mechanism_ is None:
                raise ValueError("The file lacks the sets of its mechanism.")
            columns, at_risk = (part.numpy() for part in parts)
            checks.shape("risk_sets.at_risk", at_risk, (self.n_sets_, len(columns)))
            if not ((columns >= 0) & (columns < len(self.mechanism_.tilts))).all():
                raise ValueError("The sets of the file name columns without a mechanism.")
            self.risk_sets_ = RiskSets(columns, at_risk, self.set_sizes_)

    def _questions(self, m: Bools) -> dict[int, Question]:
        return questions_of(self.mask_model, tuple(self.schema_.modelled), m)

    def _averaged(self, encoded: Encoded, began: float) -> list[int]:
        if self.regression != "auto" or self.validation_fraction == 0 or self._out_of_time(began):
            return []
        return averaged_columns(self._network_mask(), tuple(self.schema_.modelled), encoded.m)

    def _corrected(self, encoded: Encoded, began: float) -> list[int]:
        if self.regression != "auto" or self.validation_fraction == 0:
            return []
        mask, columns = self._network_mask(), tuple(self.schema_.modelled)
        found = corrected_columns(mask, columns, encoded.m)
        if self.max_time is None or not found:
            return found
        left = began + float(self.max_time) - time.perf_counter()
        return found if fit_seconds(encoded.m, found) < left else []

    def _check_sets(self) -> None:
        if isinstance(self.n_sets, str) and self.n_sets != "auto":
            raise ValueError(f"n_sets must be a whole number >= 1 or 'auto', got {self.n_sets!r}.")
        if not isinstance(self.n_sets, str):
            super()._check_sets()

    def _read(self, X: Any) -> Encoded:
        self.risk_sets_ = None
        encoded = super()._read(X)
        # an unknown column is an error before training
        self._questions(encoded.m)
        warn_of_complete(self.mask_model, tuple(self.schema_.modelled), encoded.m)
        return encoded

    def _resolve(self, encoded: Encoded) -> LatentConfig:
        mask = self._network_mask()
        return latent_config(
            self,
            *encoded.m.shape,
            mask_model=mask,
            n_sets=self._count_sets(encoded.m, mask) if self.n_sets == "auto" else int(self.n_sets),
            pi=self.pi if isinstance(self.pi, str) else float(self.pi),
            regression=resolve_regression(
                self.regression,
                mask,
                self,
                len(encoded.m),
                lambda: self._nonlinear_gain(encoded),
            ),
            mixture_gain=self._mixture_gain(encoded, mask),
        )

    def _mixture_gain(self, encoded: Encoded, mask: MaskModel) -> float:
        from psmvae.imputers.mixture_mean import mixture_gain

        if self.regression != "auto" or self.validation_fraction == 0 or encoded.m.all():
            return 0.0
        columns = tuple(self.schema_.modelled)
        return resolve_mixture_gain(
            mask,
            columns,
            encoded.m,
            self._mixture_seconds(),
            lambda: mixture_gain(columns, encoded.x, encoded.m, self._seed(11)),
        )

    def _nonlinear_gain(self, encoded: Encoded) -> float:
        from psmvae.chained.nonlinearity import nonlinear_gain

        columns = tuple(self.schema_.modelled)
        sample = NONLINEAR_GAIN_SAMPLE if len(encoded.m) >= FEW_ROWS else {}
        return nonlinear_gain(columns, encoded.x, encoded.m, self._seed(8), **sample)

    def _count_sets(self, m: Bools, mask: MaskModel) -> int:
        import torch

        from psmvae.nn.latent_classes import count_classes
        from psmvae.nn.noise import Noise

        if isinstance(mask, NoMask):
            return 1
        return count_classes(torch.as_tensor(m), MAX_SETS, Noise(self._seed(4)))

    def _make_model(self, layout: Layout, missing_rate: Tensor, noise: Noise) -> Any:
        from psmvae.models.psmvae import PSMVAE

        return PSMVAE(layout, self.config_, missing_rate, noise)
