"""The options of ``psmvae missingness``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from psmvae.cli import arguments as a
from psmvae.cli.terminal import UsageError
from psmvae.cli.text_tables import format_of


class ReportFormat(StrEnum):
    """The formats of the report."""

    TEXT = "text"
    MARKDOWN = "md"
    CSV = "csv"
    JSON = "json"


class Part(StrEnum):
    """The tables of the report."""

    RATES = "rates"
    PATTERNS = "patterns"
    FLUX = "flux"
    LITTLE = "little"
    PREDICTORS = "predictors"
    JOINT = "joint"


_file_option = partial(typer.Option, rich_help_panel="Files", show_default=False)


@dataclass(frozen=True, kw_only=True)
class MissingnessOptions:
    """The table, and how to write the report."""

    table: a.Table
    format: Annotated[
        ReportFormat | None,
        _file_option(
            "--format",
            help="text (default): tables and sentences; md: the same as Markdown; csv: one table "
            "with all digits, see --part; json: everything. By default that of the output's "
            "extension.",
        ),
    ] = None
    part: Annotated[
        Part | None,
        _file_option("--part", help="The table of --format csv: rates (default) or another."),
    ] = None
    output: Annotated[
        Path | None,
        _file_option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to this file instead of standard output.",
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        _file_option(
            "--ignore",
            metavar="COLUMN",
            help="Leave this column out, such as an identifier or a date (repeatable).",
        ),
    ] = None
    na: a.Na = None
    force: a.Force = False
    seed: a.Seed = 0

    def __post_init__(self) -> None:
        """Check everything that can be checked without the table."""
        chosen = self.chosen_format
        if self.part is not None and chosen is not ReportFormat.CSV:
            raise UsageError(f"--part needs --format csv, not {chosen}")

    @property
    def chosen_format(self) -> ReportFormat:
        """The format that was given, or that of the output's extension."""
        endings = {one.value: one for one in ReportFormat if one is not ReportFormat.TEXT}
        plain = {"": ReportFormat.TEXT, "txt": ReportFormat.TEXT}
        return self.format or format_of(self.output, endings | plain)
