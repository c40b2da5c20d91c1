"""Options of the imputers with latent variables that few users need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from psmvae.imputers import checks


@dataclass(frozen=True, kw_only=True)
class Advanced:
    """Options of the imputers with latent variables that few users need.

    Parameters
    ----------
    target_ess : float or None, default=10
        Effective sample size at which a row gets no further importance draws. Draws come in
        antithetic pairs and in blocks, the first of 20. None gives every row all ``n_draws``.
    max_memory : int or "auto", default="auto"
        MiB that imputation may allocate at once beside the table. "auto" is 256 on a CPU and 8192
        on a GPU.
    weight_observed : bool, default=False
        Weight log p(x_obs|z,r) by 1 / (1 - missing rate) in the training objective, as the paper
        does.
    impute_from : {"x_obs", "x_mis"}, default="x_obs"
        Decoder head from which `PSMVAEImputer` imputes where the mask does not depend on x; where
        it does, always "x_mis", as in the paper. "x_obs" is trained on every observed cell.

    Examples
    --------
    >>> from psmvae import Advanced, PSMVAEImputer
    >>> imputer = PSMVAEImputer(n_draws=1000, advanced=Advanced(target_ess=None))
    >>> imputer.advanced.impute_from
    'x_obs'
    """

    target_ess: float | None = 10.0
    max_memory: int | Literal["auto"] = "auto"
    weight_observed: bool = False
    impute_from: Literal["x_obs", "x_mis"] = "x_obs"

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.target_ess is not None:
            checks.number("target_ess", self.target_ess, 1.0)
        if self.max_memory != "auto":
            checks.whole_number("max_memory", self.max_memory, low=1)
        checks.yes_or_no("weight_observed", self.weight_observed)
        checks.choice("impute_from", self.impute_from, ("x_obs", "x_mis"))
