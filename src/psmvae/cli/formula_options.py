"""Options of the commands that fit a formula to every imputation of a long file."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from psmvae.cli.terminal import UsageError
from psmvae.cli.text_tables import format_of


class Family(StrEnum):
    """The families of generalized linear models."""

    GAUSSIAN = "gaussian"
    BINOMIAL = "binomial"
    POISSON = "poisson"


class Format(StrEnum):
    """The formats of a table of estimates."""

    TABLE = "table"
    MARKDOWN = "md"
    CSV = "csv"
    LATEX = "tex"


def _level(value: float) -> float:
    if not 0 < value < 1:
        raise typer.BadParameter(f"{value} is not between 0 and 1")
    return value


analysis_option = partial(typer.Option, rich_help_panel="Analysis")
file_option = partial(typer.Option, rich_help_panel="Files", show_default=False)

LongTable = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="A long .csv, .tsv, .parquet or .feather file with columns .imp and .id, as "
        "written by psmvae impute --multiple or by R's mice.",
    ),
]
FormulaText = Annotated[
    str,
    analysis_option(
        "--formula",
        show_default=False,
        metavar="FORMULA",
        help="The model, such as 'bmi ~ age + chl'. C(x) makes x categorical, a:b is an "
        "interaction, log(x), exp(x) and sqrt(x) are transformations, and Q('a name') is a "
        "column whose name is not a Python name.",
    ),
]
FamilyOption = Annotated[
    Family,
    analysis_option(
        "--family",
        help="gaussian: linear regression; binomial: logistic regression; poisson: Poisson "
        "regression with log link.",
    ),
]
ConfLevel = Annotated[
    float,
    analysis_option(
        "--conf-level",
        metavar="LEVEL",
        callback=_level,
        help="Level of the confidence intervals.",
    ),
]
FormatOption = Annotated[
    Format | None,
    file_option(
        "--format",
        help="table (default): aligned text; md: Markdown; tex: LaTeX with booktabs; csv: all "
        "columns with all digits. By default that of the output's extension: .txt, .md, .tex or "
        ".csv.",
    ),
]
ReportOutput = Annotated[
    Path | None,
    file_option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the table to this file instead of standard output.",
    ),
]


def check_formula(formula: str) -> None:
    """Refuse a formula without a response or without terms."""
    left, tilde, right = formula.partition("~")
    if not tilde or not left.strip() or not right.strip() or "~" in right:
        raise UsageError(f"--formula {formula!r} is not of the form 'response ~ term + term'")


def choose_format(given: Format | None, output: Path | None) -> Format:
    """Return the format that was given, or that of the output's extension."""
    plain = {"": Format.TABLE, "txt": Format.TABLE}
    return given or format_of(
        output, {"md": Format.MARKDOWN, "csv": Format.CSV, "tex": Format.LATEX, **plain}
    )
