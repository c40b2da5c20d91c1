"""The options of ``psmvae analyse``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from psmvae.cli import arguments as a
from psmvae.cli import formula_options as f
from psmvae.cli.terminal import UsageError


class PooledTestMethod(StrEnum):
    """The tests of several terms."""

    D1 = "D1"
    D2 = "D2"
    D3 = "D3"


class DegreesOfFreedom(StrEnum):
    """The degrees of freedom of pooled estimates."""

    BARNARD_RUBIN = "barnard-rubin"
    RUBIN = "rubin"


@dataclass(frozen=True, kw_only=True)
class AnalyseOptions:
    """The long file, the model and how to pool and write its estimates."""

    table: f.LongTable
    formula: f.FormulaText
    family: f.FamilyOption = f.Family.GAUSSIAN
    exponentiate: Annotated[
        bool,
        f.analysis_option(
            "--exponentiate",
            help="Exponentiate estimates and intervals: odds ratios or rate ratios.",
        ),
    ] = False
    conf_level: f.ConfLevel = 0.95
    test: Annotated[
        str | None,
        f.analysis_option(
            "--test",
            metavar="HYPOTHESIS",
            show_default=False,
            help="Also test several terms at once, such as 'age = 0, chl = 0'.",
        ),
    ] = None
    method: Annotated[
        PooledTestMethod | None,
        f.analysis_option(
            "--method",
            show_default=False,
            help="The test of --test. D1 (default): pooled Wald test. D2: pooled Wald statistics. "
            "D3: likelihood ratio test.",
        ),
    ] = None
    df: Annotated[
        DegreesOfFreedom,
        f.analysis_option("--df", help="Degrees of freedom of the pooled estimates."),
    ] = DegreesOfFreedom.BARNARD_RUBIN
    format: f.FormatOption = None
    output: f.ReportOutput = None
    na: a.Na = None
    force: a.Force = False

    def __post_init__(self) -> None:
        """Check everything that can be checked without the table."""
        f.check_formula(self.formula)
        f.choose_format(self.format, self.output)
        if self.method is not None and self.test is None:
            raise UsageError("--method needs --test, the hypothesis it applies to")
