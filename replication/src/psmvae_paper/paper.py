"""The printed results of the paper: mean and standard deviation of each cell of its tables.

They are in ``paper.csv``, under the names of the paper, which are translated to the names of the
methods here.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from typing import NamedTuple

__all__ = ["Figure", "PaperKey", "paper"]

# The tables of the file that an experiment reproduces.
_TABLES = {
    "rmse20": ("rmse20",),
    "rmse80": ("rmse80",),
    "grid": ("rmse20", "rmse80"),
    "printed20": ("rmse20",),
    "printed80": ("rmse80",),
    "pattern-sets": ("pattern_sets",),
    "printed-sets": ("pattern_sets",),
    "multiple": ("multiple_imputation",),
}

_MECHANISMS = {"MCAR": "mcar", "MNAR": "mnar", "MNAR+MCAR": "mnar-mcar"}

# The methods by the names of the paper's rows. Some tables omit K.
_METHODS = {
    "PSMVAE(a)": "psmvae-a",
    "PSMVAE(a) K=10000": "psmvae-a",
    "PSMVAE(b)": "psmvae-b",
    "PSMVAE(b) K=1": "psmvae-b",
    "PSMVAE(b) K=10000": "psmvae-b-10000",
    "PSMVAE w/o M K=1": "psmvae-none",
    "DLGM": "dlgm",
    "HIVAE": "hivae",
    "HIVAE with M": "hivae-mask",
    "VAE": "vae",
    "MIWAE K=1": "miwae",
    "MIWAE K=10000": "miwae-10000",
    "not-MIWAE": "not-miwae",
    "GAIN": "gain",
    "MICE": "mice",
    "MICE sample": "mice-sample",
    "MissForest": "missforest",
    "mean": "mean",
}
# The twenty imputations of MICE are draws from its posterior.
_METHODS_OF_TABLE = {"multiple_imputation": {"MICE": "mice-sample"}}


class PaperKey(NamedTuple):
    """A cell of the paper's tables: data set, mechanism, missing rate and method."""

    dataset: str
    mechanism: str
    rate: float
    method: str


class Figure(NamedTuple):
    """Printed mean and standard deviation over five seeds."""

    mean: float
    std: float


def paper(experiment: str) -> dict[PaperKey, Figure]:
    """Return the printed results for an experiment.

    Parameters
    ----------
    experiment : str
        The name of an experiment, as in ``psmvae-paper list``.

    Returns
    -------
    dict of PaperKey to Figure
        Empty if the paper has no table for it.

    Examples
    --------
    >>> paper("rmse20")["wine", "mcar", 0.2, "missforest"]
    Figure(mean=0.0738, std=0.0023)
    >>> paper("curve")
    {}
    """
    tables = _read()
    return {
        key: figure
        for name in _TABLES.get(experiment, ())
        for key, figure in tables.get(name, {}).items()
    }


@cache
def _read() -> dict[str, dict[PaperKey, Figure]]:
    text = resources.files("psmvae_paper").joinpath("paper.csv").read_text(encoding="utf-8")
    tables: dict[str, dict[PaperKey, Figure]] = {}
    for row in csv.DictReader(text.splitlines()):
        methods = _METHODS | _METHODS_OF_TABLE.get(row["table"], {})
        key = PaperKey(
            row["dataset"],
            _MECHANISMS[row["mechanism"]],
            float(row["rate"]),
            methods[row["row"]],
        )
        figure = Figure(float(row["mean"]), float(row["std"]))
        tables.setdefault(row["table"], {})[key] = figure
    return tables
