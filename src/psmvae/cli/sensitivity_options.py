"""The options of ``psmvae sensitivity``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from psmvae.cli import arguments as a
from psmvae.cli import formula_options as f
from psmvae.cli.options import read_formulas, read_orders
from psmvae.cli.terminal import UsageError

PICTURES = ("png", "pdf", "svg")
_OPERATIONS = ("add", "multiply", "odds")

_option = partial(typer.Option, rich_help_panel="Shift", show_default=False)


@dataclass(frozen=True, kw_only=True)
class SensitivityOptions:
    """The long file, the model, the shifts, and how to write the results."""

    table: f.LongTable
    formula: f.FormulaText
    column: Annotated[
        str, _option("--column", metavar="COLUMN", help="Shift the imputed cells of this column.")
    ]
    delta: Annotated[
        str,
        _option(
            "--delta",
            metavar="START:STOP:N",
            help="The shifts: N values from START to STOP, or a list such as 0,2,5. For a negative "
            "start write --delta=-20:0:21.",
        ),
    ]
    operation: Annotated[
        str,
        _option(
            "--operation",
            show_default=True,
            metavar="NAME",
            help="add: the shift is added to the imputed values. multiply: it multiplies them. "
            "odds: it multiplies the odds of their levels (the second of two, or of being higher); "
            "'odds of LEVEL': the odds of one level.",
        ),
    ] = "add"
    by: Annotated[
        str | None,
        _option(
            "--by",
            metavar="COLUMN",
            help="Shift each group of this column by itself, such as the treatment arm: all "
            "combinations are analysed.",
        ),
    ] = None
    kind: Annotated[
        list[str] | None,
        _option(
            "--kind",
            metavar="COLUMN=ordinal:LEVELS",
            help="The levels of a column in their order, for odds (repeatable): "
            "edu=ordinal:low,middle,high. A long file does not store them.",
        ),
    ] = None
    derive: Annotated[
        list[str] | None,
        _option(
            "--derive",
            metavar="COLUMN=FORMULA",
            help="Compute a column again from the others wherever one of them was imputed "
            "(repeatable): 'bmi=wgt / (hgt / 100) ** 2'. Give the formulas of psmvae impute: a "
            "long file does not store them.",
        ),
    ] = None
    term: Annotated[
        str | None,
        f.analysis_option(
            "--term",
            metavar="TERM",
            show_default=False,
            help="The term of interest, as psmvae analyse names it. Needed if the formula has "
            "several.",
        ),
    ] = None
    family: f.FamilyOption = f.Family.GAUSSIAN
    conf_level: f.ConfLevel = 0.95
    seed: a.Seed = 0
    format: f.FormatOption = None
    output: f.ReportOutput = None
    plot: Annotated[
        Path | None,
        f.file_option(
            "--plot", metavar="FILE", help="Also draw the results: a .png, .pdf or .svg file."
        ),
    ] = None
    na: a.Na = None
    force: a.Force = False

    def __post_init__(self) -> None:
        """Check everything that can be checked without the table."""
        f.check_formula(self.formula)
        f.choose_format(self.format, self.output)
        # parsed to be checked
        self.deltas  # noqa: B018
        self.formulas  # noqa: B018
        self.levels  # noqa: B018
        if self.operation not in _OPERATIONS and not self.operation.startswith("odds of "):
            raise UsageError(
                f"--operation {self.operation!r} is not add, multiply, odds or 'odds of LEVEL'"
            )
        if self.operation.startswith("odds") and min(self.deltas) <= 0:
            raise UsageError("--delta: odds are multiplied by factors above 0")
        if self.plot is not None and self.plot.suffix.lower().removeprefix(".") not in PICTURES:
            raise UsageError(f"--plot {self.plot}: a plot is a .png, .pdf or .svg file")

    @property
    def deltas(self) -> list[float]:
        """The shifts."""
        return read_deltas(self.delta)

    @property
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """The levels of ordinal columns, in their order."""
        return read_orders(self.kind)

    @property
    def formulas(self) -> dict[str, str]:
        """The formulas of derived columns."""
        return read_formulas(self.derive)


def read_deltas(text: str) -> list[float]:
    """Return the shifts of --delta."""
    try:
        return _grid(text) if ":" in text else _list(text)
    except ValueError as error:
        raise UsageError(
            f"--delta {text!r} is neither START:STOP:N with at least 2 values, such as 0:20:21, "
            "nor a list of numbers, such as 0,2,5"
        ) from error


def _grid(text: str) -> list[float]:
    start, stop, n = text.split(":")
    ends, steps = _list(f"{start},{stop}"), int(n) - 1
    if steps < 1:
        raise ValueError(text)
    return [ends[0] + k * (ends[1] - ends[0]) / steps for k in range(steps + 1)]


def _list(text: str) -> list[float]:
    values = [float(part) for part in text.split(",")]
    if len(set(values)) < 2 or not all(map(math.isfinite, values)):
        raise ValueError(text)
    return values
