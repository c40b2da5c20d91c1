"""The options of ``psmvae analyse``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from psmvae.cli import arguments as a
from psmvae.cli.terminal import UsageError


class Family(StrEnum):
    """The families of generalized linear models."""

    GAUSSIAN = "gaussian"
    BINOMIAL = "binomial"
    POISSON = "poisson"


class PooledTestMethod(StrEnum):
    """The tests of several terms."""

    D1 = "D1"
    D2 = "D2"
    D3 = "D3"


class DegreesOfFreedom(StrEnum):
    """The degrees of freedom of pooled estimates."""

    BARNARD_RUBIN = "barnard-rubin"
    RUBIN = "rubin"


class Format(StrEnum):
    """The formats of a pooled table."""

    TABLE = "table"
    MARKDOWN = "md"
    CSV = "csv"
    LATEX = "tex"


def _level(value: float) -> float:
    if not 0 < value < 1:
        raise typer.BadParameter(f"{value} is not between 0 and 1")
    return value


_option = partial(typer.Option, rich_help_panel="Analysis")
_file_option = partial(typer.Option, rich_help_panel="Files", show_default=False)


@dataclass(frozen=True, kw_only=True)
class AnalyseOptions:
    """The long file, the model and how to pool and write its estimates."""

    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="A long .csv, .tsv, .parquet or .feather file with columns .imp and .id, as "
            "written by psmvae impute --multiple or by R's mice.",
        ),
    ]
    formula: Annotated[
        str,
        _option(
            "--formula",
            show_default=False,
            metavar="FORMULA",
            help="The model, such as 'bmi ~ age + chl'. C(x) makes x categorical, a:b is an "
            "interaction, log(x), exp(x) and sqrt(x) are transformations, and Q('a name') is a "
            "column whose name is not a Python name.",
        ),
    ]
    family: Annotated[
        Family,
        _option(
            "--family",
            help="gaussian: linear regression; binomial: logistic regression; poisson: Poisson "
            "regression with log link.",
        ),
    ] = Family.GAUSSIAN
    exponentiate: Annotated[
        bool,
        _option(
            "--exponentiate",
            help="Exponentiate estimates and intervals: odds ratios or rate ratios.",
        ),
    ] = False
    conf_level: Annotated[
        float,
        _option(
            "--conf-level",
            metavar="LEVEL",
            callback=_level,
            help="Level of the confidence intervals.",
        ),
    ] = 0.95
    test: Annotated[
        str | None,
        _option(
            "--test",
            metavar="HYPOTHESIS",
            show_default=False,
            help="Also test several terms at once, such as 'age = 0, chl = 0'.",
        ),
    ] = None
    method: Annotated[
        PooledTestMethod | None,
        _option(
            "--method",
            show_default=False,
            help="The test of --test. D1 (default): pooled Wald test. D2: pooled Wald statistics. "
            "D3: likelihood ratio test.",
        ),
    ] = None
    df: Annotated[
        DegreesOfFreedom, _option("--df", help="Degrees of freedom of the pooled estimates.")
    ] = DegreesOfFreedom.BARNARD_RUBIN
    format: Annotated[
        Format | None,
        _file_option(
            "--format",
            help="table (default): aligned text; md: Markdown; tex: LaTeX with booktabs; csv: all "
            "columns with all digits. By default that of the output's extension.",
        ),
    ] = None
    output: Annotated[
        Path | None,
        _file_option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the table to this file instead of standard output.",
        ),
    ] = None
    na: a.Na = None
    force: a.Force = False

    def __post_init__(self) -> None:
        """Check everything that can be checked without the table."""
        left, tilde, right = self.formula.partition("~")
        if not tilde or not left.strip() or not right.strip() or "~" in right:
            raise UsageError(
                f"--formula {self.formula!r} is not of the form 'response ~ term + term'"
            )
        if self.method is not None and self.test is None:
            raise UsageError("--method needs --test, the hypothesis it applies to")

    @property
    def chosen_format(self) -> Format:
        """The format that was given, or that of the output's extension."""
        if self.format is not None:
            return self.format
        ending = "" if self.output is None else self.output.suffix.lower().removeprefix(".")
        return Format(ending) if ending in ("md", "csv", "tex") else Format.TABLE
