"""A cell of an experiment: one method on one incomplete table, with one seed."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, Literal, Self, get_args

Measure = Literal["impute", "sets", "multiple", "curve", "inpaint"]
Masks = Literal["own", "paper"]
Value = float | int | str | bool | None
Settings = tuple[tuple[str, Value], ...]

MEASURES: tuple[str, ...] = get_args(Measure)
MASKS: tuple[str, ...] = get_args(Masks)
_KEY_LENGTH = 16


@dataclass(frozen=True)
class Cell:
    """One run of a method; equal cells give equal results on the same device.

    Parameters
    ----------
    dataset : str
        A name known to `psmvae_paper.datasets.load`, or the path of a file.
    mechanism : str
        One of `psmvae.simulate.MECHANISMS`.
    rate : float
        The missing rate, from 0 to 1.
    seed : int
        The seed of the mask, of the split and of the method.
    method : str
        A name in `psmvae_paper.METHODS`.
    measure : {"impute", "sets", "multiple", "curve", "inpaint"}, default="impute"
        What is measured: the error of imputations; also the pattern sets ("sets") or a classifier
        on multiple imputations ("multiple"); the error during training; images.
    n_rows, n_columns : int, optional
        The size of a random part of the table, drawn with the seed; the whole table by default.
    epochs : int, optional
        Epochs of training; by default the method's own.
    settings : tuple of (name, value), default=()
        Parameters of the imputer that differ from the method's.
    masks : {"own", "paper"}, default="own"
        The masks and splits: drawn by this package, or those that the paper's program draws from
        the same seed (`psmvae_paper.paper_masks`).

    Examples
    --------
    >>> cell = Cell("breast", "mcar", 0.2, 0, "psmvae-b", settings=(("pi", 0.1),))
    >>> cell == Cell.from_json(cell.to_json())
    True
    >>> cell.key
    'c4964ce42292db76'
    """

    dataset: str
    mechanism: str
    rate: float
    seed: int
    method: str
    measure: Measure = "impute"
    n_rows: int | None = None
    n_columns: int | None = None
    epochs: int | None = None
    settings: Settings = ()
    masks: Masks = "own"

    def __post_init__(self) -> None:
        for name in ("dataset", "mechanism", "method"):
            if not isinstance(value := getattr(self, name), str) or not value:
                raise TypeError(f"{name} must be a name, got {value!r}")
        if self.measure not in MEASURES:
            raise ValueError(f"measure must be one of {', '.join(MEASURES)}, got {self.measure!r}")
        if self.masks not in MASKS:
            raise ValueError(f"masks must be one of {', '.join(MASKS)}, got {self.masks!r}")
        if not _is(Real, self.rate) or not 0.0 <= self.rate <= 1.0:
            raise ValueError(f"rate must be a number between 0 and 1, got {self.rate!r}")
        if not _is(Integral, self.seed) or not 0 <= self.seed < 2**32:
            raise ValueError(f"seed must be a whole number from 0 to 2**32 - 1, got {self.seed!r}")
        for name in ("n_rows", "n_columns", "epochs"):
            count = getattr(self, name)
            if count is not None and (not _is(Integral, count) or count < 1):
                raise ValueError(f"{name} must be a whole number from 1 or None, got {count!r}")
            if count is not None:
                object.__setattr__(self, name, int(count))
        # the key must not depend on the order of the settings, nor on whether numbers are Python's
        # or numpy's
        object.__setattr__(self, "seed", int(self.seed))
        object.__setattr__(self, "rate", float(self.rate))
        object.__setattr__(self, "settings", _checked(self.settings))

    @property
    def key(self) -> str:
        """A short stable identifier: a hash of the fields that differ from their defaults."""
        plain = self.to_json()
        given = {f.name: plain[f.name] for f in fields(self) if plain[f.name] != f.default}
        text = json.dumps(given, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]

    def to_json(self) -> dict[str, Any]:
        """Return the cell as a dictionary of plain values, settings as a dictionary."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return plain | {"settings": dict(self.settings)}

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Self:
        """Restore a cell from the result of `to_json`.

        Parameters
        ----------
        plain : dict
            As `to_json` returns it.

        Raises
        ------
        ValueError, TypeError
            If it is not a valid cell.
        """
        if not isinstance(plain, dict):
            raise TypeError(f"a cell must be an object, got {plain!r}")
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(plain) - known):
            raise ValueError(f"a cell has no {', '.join(unknown)}")
        if missing := sorted({"dataset", "mechanism", "rate", "seed", "method"} - set(plain)):
            raise ValueError(f"a cell needs {', '.join(missing)}")
        settings = plain.get("settings", {})
        if not isinstance(settings, dict):
            raise TypeError(f"settings must be an object, got {settings!r}")
        return cls(**(plain | {"settings": tuple(settings.items())}))


def _is(kind: type, value: object) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _checked(settings: Any) -> Settings:
    """Settings sorted by name; an error unless all values are plain and finite."""
    pairs = list(settings)
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise TypeError(f"settings must be pairs (name, value), got {settings!r}")
    for name, value in pairs:
        plain = value is None or isinstance(value, str | bool | int | float)
        if not isinstance(name, str) or not plain:
            raise TypeError(f"settings must be names with plain values, got {(name, value)!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"settings: {name} must be finite, got {value!r}")
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"settings must name a parameter once, got {settings!r}")
    return tuple(sorted(pairs))
