"""The options of ``psmvae report``, beside those of the imputer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from psmvae.cli import formula_options as f
from psmvae.cli.options import check_known
from psmvae.cli.sensitivity_options import read_deltas
from psmvae.cli.terminal import UsageError

EXTENSIONS = (".html", ".md", ".json")

_option = partial(typer.Option, rich_help_panel="Report", show_default=False)


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What the report is made of."""

    imputations: Annotated[
        Path | None,
        f.file_option(
            "--imputations",
            metavar="FILE",
            help="Report on these imputations of the table, a long file as written by psmvae "
            "impute --multiple or by R's mice, instead of imputing.",
        ),
    ] = None
    multiple: Annotated[
        int | None,
        _option("--multiple", metavar="N", min=2, help="Number of imputations (default: 20)."),
    ] = None
    formula: Annotated[
        str | None,
        f.analysis_option(
            "--formula",
            show_default=False,
            metavar="FORMULA",
            help="Also fit this model to every imputation and pool the estimates; written as for "
            "psmvae analyse.",
        ),
    ] = None
    family: f.FamilyOption = f.Family.GAUSSIAN
    column: Annotated[
        str | None,
        _option(
            "--column",
            metavar="COLUMN",
            help="Also shift the imputed cells of this column by --delta, until the conclusion on "
            "--term turns; written as for psmvae sensitivity.",
        ),
    ] = None
    delta: Annotated[
        str | None, _option("--delta", metavar="START:STOP:N", help="The shifts, such as 0:20:21.")
    ] = None
    term: Annotated[
        str | None, _option("--term", metavar="TERM", help="The term that --delta is about.")
    ] = None
    pair: Annotated[
        list[str] | None,
        _option(
            "--pair",
            metavar="COLUMN,COLUMN",
            help="Draw a scatter plot of these two numeric columns (repeatable). By default the "
            "two with the strongest correlation.",
        ),
    ] = None
    title: Annotated[
        str | None, _option("--title", metavar="TEXT", help="Title (default: the file's name).")
    ] = None
    max_columns: Annotated[
        int,
        _option(
            "--max-columns",
            metavar="N",
            min=1,
            show_default=True,
            help="Columns that are shown in full, those with the most missing cells. The others "
            "are in a table.",
        ),
    ] = 60
    no_validation: Annotated[
        bool,
        _option(
            "--no-validation",
            help="Do not fit the imputer again with cells held out (up to 20 s of training).",
        ),
    ] = False

    def __post_init__(self) -> None:
        """Check everything that can be checked without the table."""
        if self.formula is not None:
            f.check_formula(self.formula)
        if (self.column is None) != (self.delta is None):
            given, missing = (
                ("--column", "--delta") if self.delta is None else ("--delta", "--column")
            )
            raise UsageError(f"{given} needs {missing}")
        if self.delta is not None:
            read_deltas(self.delta)
        for name, value in (("--column", self.column), ("--term", self.term)):
            if value is not None and self.formula is None:
                raise UsageError(f"{name} needs --formula, the analysis that it is about")
        if self.imputations is not None and self.multiple is not None:
            raise UsageError(
                "--multiple is the number of imputations to draw; --imputations has them"
            )

    @property
    def deltas(self) -> list[float]:
        """The shifts of --delta; empty if it is not given."""
        return [] if self.delta is None else read_deltas(self.delta)


def read_pairs(texts: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the columns of --pair; their names may contain commas."""
    return [_read_pair(text, names) for text in texts]


def _read_pair(text: str, names: Sequence[str]) -> tuple[str, str]:
    parts = text.split(",")
    if len(parts) < 2:
        raise UsageError(f"--pair: {text!r} is not of the form COLUMN,COLUMN")
    splits = [(",".join(parts[:k]), ",".join(parts[k:])) for k in range(1, len(parts))]
    known = [pair for pair in splits if set(pair) <= set(names)]
    check_known("--pair", (known or splits)[0], names)
    return known[0]


def check_extension(path: Path) -> None:
    """Refuse an output that is none of the formats of a report."""
    if path.suffix.lower() not in EXTENSIONS:
        raise UsageError(f"{path}: a report is written to a .html, .md or .json file")
