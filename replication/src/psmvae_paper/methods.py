"""The methods that are compared: the rows of the paper's tables, and those a user adds."""

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
    """A method of imputation, as a row of a table.

    Parameters
    ----------
    name : str
        What a user types.
    label : str
        What a table shows.
    fit : str
        The training; methods with the same differ only in `n_draws`, and one training serves all.
    make : callable
        ``make(seed, device, **overrides)`` gives the imputer, unfitted. It needs ``fit`` and
        ``transform``; where several processes are used it must be picklable, as a function of a
        module is.
    deep : bool, default=False
        Whether it is a `DeepImputer` of this package, trained on the device in epochs.
    n_draws : int, optional
        K, the importance draws at imputation; by default the imputer's own.
    draws : bool, default=False
        Whether its multiple imputations (``sample``) tell how sure it is, so that they are
        measured.
    real : bool, default=False
        Whether it is told that every column is "real" (``kinds``), as the paper's methods are.

    Examples
    --------
    A method of one's own takes part once it is in `METHODS`, here scikit-learn's:

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
    """Makes an imputer of this package.

    The class is looked up by name, so that scikit-learn is loaded late.

    Parameters
    ----------
    imputer : str
        The name of the class.
    parameters : tuple of (name, value)
        What is fixed.
    model : str, optional
        The argument of ``paper``, where there is one.
    plain : bool, default=False
        The class with its defaults rather than its ``paper``.

    Examples
    --------
    >>> Maker("MeanImputer")(0, "cpu").random_state
    0
    """

    imputer: str
    parameters: tuple[tuple[str, Any], ...] = ()
    model: str | None = None
    plain: bool = False

    def knows(self, parameter: str) -> bool:
        """Whether the imputer has a parameter of this name."""
        return parameter in self._class().__dataclass_fields__

    def _class(self) -> Any:
        return getattr(import_module("psmvae.imputers"), self.imputer)

    def __call__(self, seed: int, device: str, **overrides: Any) -> Any:
        """Return the unfitted imputer."""
        cls = self._class()
        make = cls if self.plain else cls.paper
        told = dict(self.parameters) | {"random_state": seed} | overrides
        if "device" in cls.__dataclass_fields__:
            told["device"] = device
        return make(*([] if self.model is None else [self.model]), **told)


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
        Maker("GMVAEImputer", (("mask", True),)),
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
    # its draws hardly differ
    Method("gain", "GAIN", "gain", Maker("GAINImputer"), deep=True, real=True),
    Method("mice", "MICE", "mice", Maker("MICEImputer"), real=True),
    Method(
        "mice-sample",
        "MICE sample",
        "mice-sample",
        Maker("MICEImputer", (("sample_posterior", True),)),
        draws=True,
        real=True,
    ),
    # one core a process
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
        Maker("PSMVAEImputer", plain=True),
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
    """Return the method of a name.

    Raises
    ------
    ValueError
        If there is none; the message names those there are.

    Examples
    --------
    >>> find_method("psmvae-b").label
    'PSMVAE(b) K=1'
    """
    check_methods([name])
    return METHODS[name]


def label_of(method: str, settings: Settings = ()) -> str:
    """The name of a method in a table, with its K; its own where this process does not know it.

    Examples
    --------
    >>> label_of("miwae-10000"), label_of("miwae-10000", (("n_draws", 20),))
    ('MIWAE K=10000', 'MIWAE K=20')
    """
    label = METHODS[method].label if method in METHODS else method
    draws = dict(settings).get("n_draws")
    return label if draws is None else re.sub(r"\bK=\d+", f"K={draws}", label)


def check_methods(names: Iterable[str]) -> None:
    """Refuse names that are no methods.

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
    """Return those methods of these names that a user put into `METHODS`, or changed there.

    Examples
    --------
    >>> added_methods(["mean"])
    []
    """
    return [METHODS[name] for name in names if METHODS[name] not in _ROWS]
