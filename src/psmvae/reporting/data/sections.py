"""What the sections on methods and the summary are written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae._version import __version__
from psmvae.imputers.base import Imputer
from psmvae.multiple import Analyses, MultipleImputation, PooledResults
from psmvae.reporting.data import imputer_words
from psmvae.reporting.data.texts import listed
from psmvae.reporting.schema import (
    ImputedData,
    MechanismData,
    MissingData,
    ResultsData,
    TableData,
    ValidationData,
)

if TYPE_CHECKING:
    from psmvae.mechanism.column import Finding


@dataclass(frozen=True)
class Sections:
    """The sections of a report that are made from numbers, and the objects behind them."""

    table: TableData
    missing: MissingData
    mechanism: MechanismData
    imputed: ImputedData | None
    validation: ValidationData | None
    results: ResultsData | None
    imputer: Imputer | None = None
    mi: MultipleImputation | None = None
    analyses: Analyses | PooledResults | None = None

    @property
    def info(self) -> dict[str, Any]:
        """How the imputations were made, as far as they say."""
        return {} if self.mi is None else dict(self.mi.info)

    @property
    def imputer_name(self) -> str | None:
        """Class of the imputer, None where it is not known."""
        known = self.info.get("imputer")
        if self.imputer is not None:
            return type(self.imputer).__name__
        return None if known is None else str(known)

    @property
    def method(self) -> str:
        """What the imputer is called in an article."""
        name = self.imputer_name
        return "[method to be added]" if name is None else imputer_words.METHODS.get(name, name)

    @property
    def software(self) -> str:
        """Software that made the imputations, with its version."""
        made_by = self.info.get("psmvae")
        if made_by is None and self.imputer is not None:
            made_by = __version__
        return "[software and version to be added]" if made_by is None else f"psmvae {made_by}"

    @property
    def m(self) -> int | None:
        """Number of imputations."""
        if self.imputed is not None:
            return self.imputed["m"]
        return None if self.results is None else self.results["m"]

    @property
    def seed(self) -> int | None:
        """The `random_state` that repeats the fit; None where it was not an integer."""
        given = getattr(self.imputer, "random_state", None)
        return int(given) if isinstance(given, int | np.integer) else None

    @property
    def by_own_value(self) -> list[str]:
        """Columns whose cells are imputed as missing by their own values, shown or not."""
        return [*self.mechanism["own_value_assumed"], *self.mechanism["own_value_found"]]

    @property
    def assumption(self) -> str:
        """The assumption about missing cells, as the end of a sentence "cells were taken to be"."""
        if self.imputer is None:
            return "missing at random [to be confirmed: the imputer was not given]"
        texts = []
        if assumed := self.mechanism["own_value_assumed"]:
            texts.append(f"{listed(assumed)} (assumed by the analyst)")
        if found := self.mechanism["own_value_found"]:
            texts.append(f"{listed(found)} (chosen by a comparison of explanations of the masks)")
        if texts:
            return (
                f"missing depending on their own values in {' and in '.join(texts)}, and "
                f"{imputer_words.assumption(self.imputer)} in all other columns"
                f"{_narrowly(getattr(self.imputer, 'mechanism_', None) or {})}"
            )
        return _of_mask_model(self.imputer)


def _of_mask_model(imputer: Imputer) -> str:
    """Return the assumption of an imputer in which no column is missing by its own value."""
    mechanism, otherwise = getattr(imputer, "mechanism_", None), imputer_words.assumption(imputer)
    if mechanism is None:
        return otherwise
    if not len(mechanism):
        # `max_time` left no time for it, or no column had enough cells
        return f"{otherwise}; explanations of the masks were not compared"
    return (
        f"{otherwise}; in no column did the values explain which cells are missing as well as the "
        f"other columns do{_narrowly(mechanism)}"
    )


def _narrowly(mechanism: Mapping[str, Finding]) -> str:
    """Return in which share of the imputations the values of other columns decide, or nothing."""
    shares = [
        f"{name} ({finding.share_by_value:.0%})"
        for name, finding in mechanism.items()
        if finding.alternative is not None
    ]
    if not shares:
        return ""
    return (
        f", but they are excluded narrowly in {listed(shares)}: in this share of the imputations, "
        "cells are imputed as missing by their own values"
    )
