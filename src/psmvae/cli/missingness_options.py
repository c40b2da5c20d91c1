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
        if self.part is not None and self.chosen_format is not ReportFormat.CSV:
            raise UsageError(f"--part needs --format csv, not {self.chosen_format}")

    @property
    def chosen_format(self) -> ReportFormat:
        """The format that was given, or that of the output's extension."""
        if self.format is not None:
            return self.format
        ending = "" if self.output is None else self.output.suffix.lower().removeprefix(".")
        return ReportFormat(ending) if ending in ("md", "csv", "json") else ReportFormat.TEXT
