"""The options of ``psmvae simulate``."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psmvae.cli.arguments import Seed
from psmvae.cli.options import check_known
from psmvae.cli.terminal import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

# The column of the mask file that holds the true pattern set of each row.
SET = "set"


class Mechanism(StrEnum):
    """The mechanisms by name."""

    MCAR = "mcar"
    MAR = "mar"
    MNAR = "mnar"
    MNAR_TWO = "mnar-two"
    MNAR_ALL = "mnar-all"
    MNAR_MCAR = "mnar-mcar"
    MNAR_SELF = "mnar-self"
    QUANTILE = "quantile"
    BLOCKS = "blocks"
    LABEL = "label"


class Tail(StrEnum):
    """The tails of a column."""

    LOW = "low"
    HIGH = "high"
    BOTH = "both"


def _probability(value: float | None) -> float | None:
    if value is not None and not 0 <= value <= 1:
        raise typer.BadParameter(f"{value} is not between 0 and 1")
    return value


_option = partial(typer.Option, show_default=False, rich_help_panel="Mechanism")


@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    """The mechanism and its parameters."""

    mechanism: Annotated[
        Mechanism,
        _option(
            metavar="NAME",
            help="The missingness mechanism. Independent of all values: mcar, blocks (groups of "
            "columns together). Dependent on fully observed columns: mar, label. Dependent on the "
            "missing values: mnar (one column above its median), mnar-two, mnar-all (two, all "
            "columns above their medians), mnar-self (logistic), quantile (a tail). mnar-mcar: "
            "mnar for one column and mcar for the others.",
        ),
    ]
    rate: Annotated[
        float,
        _option(
            metavar="SHARE",
            callback=_probability,
            help="Share of each column's cells to make missing. For mnar, mnar-two and mnar-all: "
            "share of the cells above the median. For mnar-mcar: share in the mcar columns; the "
            "mnar column loses half of its cells above the median.",
        ),
    ]
    columns: Annotated[
        list[str] | None,
        _option(
            metavar="COLUMN",
            help="A column that may get missing cells (repeatable); all columns by default.",
        ),
    ] = None
    given: Annotated[
        list[str] | None,
        _option(
            metavar="COLUMN",
            help="For mar: a column that missingness depends on (repeatable); drawn at random by "
            "default.",
        ),
    ] = None
    label: Annotated[
        str | None,
        _option(
            metavar="COLUMN",
            help="For label: the column that defines the groups; each has its own missing rates.",
        ),
    ] = None
    slope: Annotated[
        float | None,
        _option(
            metavar="NUMBER",
            help="For mar and mnar-self: change in the logit of the missingness probability per "
            "standard deviation (default 2); negative if low values are missing.",
        ),
    ] = None
    tail: Annotated[
        Tail | None, _option(help="For quantile: the tail that is missing (default high).")
    ] = None
    probability: Annotated[
        float | None,
        _option(
            metavar="SHARE",
            callback=_probability,
            help="For quantile: probability that a cell in the tail is missing (default 1). The "
            "smaller it is, the longer the tail.",
        ),
    ] = None
    blocks: Annotated[
        int | None,
        _option(metavar="N", min=1, help="For blocks: number of column groups (default 3)."),
    ] = None
    mask: Annotated[
        Path | None,
        typer.Option(
            "--mask",
            metavar="FILE",
            help="Also write the mask: 1 for an observed cell, 0 for one made missing, empty for "
            f"one that was missing before. A column {SET!r} holds the true pattern set of each "
            "row.",
            rich_help_panel="Files",
        ),
    ] = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        """Refuse options that the mechanism does not have."""
        from psmvae.simulate import MECHANISMS

        known = inspect.signature(MECHANISMS[self.mechanism]).parameters
        refused = [option for option, (name, _) in self._given().items() if name not in known]
        if refused:
            raise UsageError(f"{', '.join(refused)}: not with --mechanism {self.mechanism}")
        if "label" in known and self.label is None:
            raise UsageError(f"--mechanism {self.mechanism} needs --label")

    def parameters(self) -> dict[str, Any]:
        """The mechanism's parameters that were given."""
        return dict(self._given().values())

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse an option that names a column the table does not have."""
        check_known("--columns", self.columns or (), names)
        check_known("--given", self.given or (), names)
        check_known("--label", () if self.label is None else (self.label,), names)

    def _given(self) -> dict[str, tuple[str, Any]]:
        """The options that were given, with the mechanism's parameter and its value."""
        options = {
            "--columns": ("columns", self.columns or None),
            "--given": ("given", self.given or None),
            "--label": ("label", self.label),
            "--slope": ("slope", self.slope),
            "--tail": ("tail", None if self.tail is None else self.tail.value),
            "--probability": ("probability", self.probability),
            "--blocks": ("n_blocks", self.blocks),
        }
        return {option: given for option, given in options.items() if given[1] is not None}
