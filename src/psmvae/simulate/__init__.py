"""Simulated missingness with known true values.

Each mechanism takes a table, a missing rate and a random generator, and returns a `Simulated`: the
mask and the true pattern set of each row. `MECHANISMS` has them by name. `simulated_trial` makes a
whole table with dropout.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from psmvae.simulate.logistic import label_patterns, mar, mnar_self
from psmvae.simulate.mechanisms import mcar, mnar_above, mnar_column, mnar_mcar
from psmvae.simulate.patterns import blocks, quantile_cut
from psmvae.simulate.table import Simulated
from psmvae.simulate.trial import Trial, simulated_trial

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "MECHANISMS",
    "Simulated",
    "Trial",
    "blocks",
    "label_patterns",
    "mar",
    "mcar",
    "mnar_above",
    "mnar_column",
    "mnar_mcar",
    "mnar_self",
    "quantile_cut",
    "simulated_trial",
]

MECHANISMS: dict[str, Callable[..., Simulated]] = {
    "mcar": mcar,
    "mar": mar,
    "mnar": partial(mnar_above, n_columns=1),
    "mnar-two": partial(mnar_above, n_columns=2),
    "mnar-all": mnar_above,
    "mnar-mcar": mnar_mcar,
    "mnar-self": mnar_self,
    "quantile": quantile_cut,
    "blocks": blocks,
    "label": label_patterns,
}
"""The mechanisms by the name they have in ``psmvae simulate --mechanism``.

Each is called as ``mechanism(table, rate, rng, columns=None, ...)`` and returns a `Simulated`.
``label`` needs the parameter ``label`` as well.
"""
