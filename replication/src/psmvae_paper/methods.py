"""The methods that are compared: the rows of the paper's tables, and methods that a user adds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from psmvae_paper.cell import Settings


@dataclass(frozen=True)
class Method:
    """An imputation method, a row of a table.

    Parameters
    ----------
    name : str
        The name on the command line.
    label : str
        The name in tables.
    fit : str
        The name of the training. Methods with the same `fit` differ only in `n_draws` and share one
        training.
    make : callable
        ``make(seed, device, **overrides)`` returns the unfitted imputer, which needs ``fit`` and
        ``transform``. With several processes `make` must be picklable, as a function of a module
        is.
    deep : bool, default=False
        Whether it is a `DeepImputer`, trained on the device in epochs.
    n_draws : int, optional
        K, the number of importance draws at imputation; by default the imputer's own.
    draws : bool, default=False
        Whether its multiple imputations (``sample``) are scored by CRPS and coverage.
    real : bool, default=False
        Whether every column is declared "real" (``kinds``), as for the paper's methods.

    Examples
    --------
    A user's method is added to `METHODS`, here one of scikit-learn:

    >>> from psmvae_paper import METHODS, Method
    >>> def nearest(seed, device, **overrides):
    ...     from sklearn.impute import KNNImputer
    ...     return KNNImputer(**overrides)
    >>> METHODS["nearest"] = Method("nearest", "nearest rows", fit="nearest", make=nearest)
    >>> find_method("nearest").make(0, "cpu", n_neighbors=3)
    KNNImputer(n_neighbors=3)
    >>> del METHODS["nearest"]
    """

    name: str
    label: str
    fit: str
    make: Callable[..., Any]
    deep: bool = False
    n_draws: int | None = None
    draws: bool = False
    real: bool = False


@dataclass(frozen=True)
class Maker:
    """Makes an imputer.

    The class is looked up by name when it is needed, so that scikit-learn is imported late.

    Parameters
    ----------
    imputer : str
        The name of the class.
    parameters : tuple of (name, value)
        Fixed parameters.
    model : str, optional
        The positional argument of ``paper``, if it has one.
    plain : bool, default=False
        Use the defaults of the class instead of its ``paper``.
    module : str, default="psmvae.imputers"
        The module of the class.

    Examples
    --------
    >>> Maker("MeanImputer")(0, "cpu").random_state
    0
    """

    imputer: str
    parameters: tuple[tuple[str, Any], ...] = ()
    model: str | None = None
    plain: bool = False
    module: str = "psmvae.imputers"

    def has_parameter(self, parameter: str) -> bool:
        """Whether the imputer has a parameter of this name.

        Parameters
        ----------
        parameter : str
            The name.

        Returns
        -------
        bool
            True if it has.
        """
        return parameter in self._class().__dataclass_fields__

    def _class(self) -> Any:
        return getattr(import_module(self.module), self.imputer)

    def __call__(self, seed: int, device: str, **overrides: Any) -> Any:
        """Return the unfitted imputer.

        Parameters
        ----------
        seed : int
            The random state.
        device : str
            The torch device, for imputers that have one.
        **overrides
            Parameters that replace the fixed ones.
        """
        cls = self._class()
        make = cls if self.plain else cls.paper
        parameters = dict(self.parameters) | {"random_state": seed} | overrides
        if "device" in cls.__dataclass_fields__:
            parameters["device"] = device
        return make(*([] if self.model is None else [self.model]), **parameters)


def _psmvae(model: str, **parameters: Any) -> Maker:
    return Maker("PSMVAEImputer", tuple(parameters.items()), model=model)


_MANY = 10_000
_LATENT: dict[str, Any] = {"deep": True, "draws": True, "real": True}

_ROWS = (
    Method("psmvae-a", "PSMVAE(a) K=10000", "psmvae-a", _psmvae("a"), n_draws=_MANY, **_LATENT),
    Method("psmvae-b", "PSMVAE(b) K=1", "psmvae-b", _psmvae("b"), n_draws=1, **_LATENT),
    Method(
        "psmvae-b-10000", "PSMVAE(b) K=10000", "psmvae-b", _psmvae("b"), n_draws=_MANY, **_LATENT
    ),
    Method(
        "psmvae-none",
        "PSMVAE w/o M K=1",
        "psmvae-none",
        _psmvae("b", mask_model="none"),
        n_draws=1,
        **_LATENT,
    ),
    Method("dlgm", "DLGM", "dlgm", Maker("DLGMImputer"), n_draws=1, **_LATENT),
    Method("hivae", "HIVAE", "hivae", Maker("GMVAEImputer"), n_draws=1, **_LATENT),
    Method(
        "hivae-mask",
        "HIVAE with M",
        "hivae-mask",
        Maker("GMVAEImputer", (("mask_model", "latent"),)),
        n_draws=1,
        **_LATENT,
    ),
    Method("vae", "VAE", "vae", Maker("VAEImputer"), n_draws=1, **_LATENT),
    Method("miwae", "MIWAE K=1", "miwae", Maker("MIWAEImputer"), n_draws=1, **_LATENT),
    Method(
        "miwae-10000", "MIWAE K=10000", "miwae", Maker("MIWAEImputer"), n_draws=_MANY, **_LATENT
    ),
    Method(
        "not-miwae", "not-MIWAE", "not-miwae", Maker("NotMIWAEImputer"), n_draws=_MANY, **_LATENT
    ),
    # the multiple imputations of GAIN hardly differ, so they are not scored
    Method("gain", "GAIN", "gain", Maker("GAINImputer"), deep=True, real=True),
    Method("mice", "MICE", "mice", Maker("MICEImputer"), real=True),
    Method(
        "mice-sample",
        "MICE sample",
        "mice-sample",
        Maker("MICESampleImputer", module="psmvae_paper.mice_sample"),
        draws=True,
        real=True,
    ),
    # one core for each worker process
    Method(
        "missforest",
        "MissForest",
        "missforest",
        Maker("MissForestImputer", (("n_jobs", 1),)),
        real=True,
    ),
    Method("mean", "mean", "mean", Maker("MeanImputer"), real=True),
    Method(
        "psmvae",
        "PSMVAE default",
        "psmvae",
        # draws of the trained model, as in the rows above and in the records
        Maker("PSMVAEImputer", (("draws", "model"),), plain=True),
        deep=True,
        draws=True,
    ),
    Method(
        "psmvae-rate",
        "PSMVAE(b) π' by rate",
        "psmvae-rate",
        _psmvae("b", pi="rate"),
        n_draws=_MANY,
        **_LATENT,
    ),
)

METHODS: dict[str, Method] = {row.name: row for row in _ROWS}


def find_method(name: str) -> Method:
    """Return a method by its name.

    Parameters
    ----------
    name : str
        A key of `METHODS`.

    Returns
    -------
    Method
        The method.

    Raises
    ------
    ValueError
        If the name is unknown; the message lists the known ones.

    Examples
    --------
    >>> find_method("psmvae-b").label
    'PSMVAE(b) K=1'
    """
    check_methods([name])
    return METHODS[name]


def label_of(method: str, settings: Settings = ()) -> str:
    """Return the name of a method in tables, with the K of the settings.

    Parameters
    ----------
    method : str
        The name; an unknown one is its own label.
    settings : tuple of (name, value), default=()
        The settings of the cell.

    Returns
    -------
    str
        The label.

    Examples
    --------
    >>> label_of("miwae-10000"), label_of("miwae-10000", (("n_draws", 20),))
    ('MIWAE K=10000', 'MIWAE K=20')
    """
    label = METHODS[method].label if method in METHODS else method
    draws = dict(settings).get("n_draws")
    return label if draws is None else re.sub(r"\bK=\d+", f"K={draws}", label)


def check_methods(names: Iterable[str]) -> None:
    """Raise an error for names that are not in `METHODS`.

    Parameters
    ----------
    names : iterable of str
        The names.

    Raises
    ------
    ValueError
        If one is unknown.

    Examples
    --------
    >>> check_methods(["mean", "median"])
    Traceback (most recent call last):
        ...
    ValueError: unknown method 'median'; known are psmvae-a, ...
    """
    for name in names:
        if name not in METHODS:
            raise ValueError(f"unknown method {name!r}; known are {', '.join(METHODS)}")


def added_methods(names: Iterable[str]) -> list[Method]:
    """Return the methods among these names that a user added to `METHODS` or changed there.

    Parameters
    ----------
    names : iterable of str
        Names in `METHODS`.

    Returns
    -------
    list of Method
        Those that are not the package's own.

    Examples
    --------
    >>> added_methods(["mean"])
    []
    """
    return [METHODS[name] for name in names if METHODS[name] not in _ROWS]
