"""What the commands are told: their arguments and options as types, with the words of the help."""

from __future__ import annotations

import math
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from psmvae.cli.methods import Method


class MaskName(StrEnum):
    """The mask models by name."""

    LATENT = "latent"
    SELF = "self"
    NONE = "none"


class Sign(StrEnum):
    """Which values go missing more often."""

    HIGH = "high"
    LOW = "low"


class Unseen(StrEnum):
    """What to do with a category the model never saw."""

    ERROR = "error"
    MISSING = "missing"


def _device(value: str) -> str:
    if re.fullmatch(r"auto|cpu|cuda(:\d+)?", value) is None:
        message = f"{value!r} is none of auto, cpu, cuda, cuda:N"
        raise typer.BadParameter(message)
    return value


def _seconds(value: float | None) -> float | None:
    if value is not None and not 0 < value < math.inf:
        message = f"{value} is no number of seconds above 0"
        raise typer.BadParameter(message)
    return value


_MODEL, _RUN, _FILES = "Model (not with -m)", "Run", "Files"

Table = Annotated[
    Path, typer.Argument(metavar="TABLE", help="A .csv, .tsv, .parquet or .feather file.")
]
Output = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write.", rich_help_panel=_FILES),
]
ModelFile = Annotated[
    Path | None,
    typer.Option(
        "--model",
        "-m",
        metavar="FILE",
        help="Use this fitted model instead of fitting one.",
        rich_help_panel=_FILES,
    ),
]
SaveModel = Annotated[
    Path | None,
    typer.Option(
        "--save-model",
        metavar="FILE",
        help="Also write the fitted model (.safetensors) here.",
        rich_help_panel=_FILES,
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Overwrite existing output.", rich_help_panel=_FILES)
]
Na = Annotated[
    list[str] | None,
    typer.Option(
        "--na",
        metavar="TEXT",
        help="Also read this as missing (repeatable), beside an empty cell and, in a text file, "
        "NA, N/A, n/a, #N/A, #NA, <NA>, NaN, nan, -NaN, -nan, null, NULL and None.",
        rich_help_panel=_FILES,
    ),
]
MethodOption = Annotated[
    Method | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help=f"What is fitted: psmvae (default), {', '.join(list(Method)[1:])}.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
Mask = Annotated[
    MaskName | None,
    typer.Option(
        "--mask-model",
        help="What missingness depends on: latent (default) on what kind of row it is, "
        "self on the missing value itself, none on nothing. Of psmvae alone.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
SelfMasked = Annotated[
    list[str] | None,
    typer.Option(
        "--self-masked",
        metavar="COLUMN",
        help="A column that goes missing by its own value (repeatable); "
        "implies --mask-model self for these columns. Of psmvae and not-miwae.",
        rich_help_panel=_MODEL,
    ),
]
SignOption = Annotated[
    Sign | None,
    typer.Option(
        "--sign",
        help="What is known of --self-masked columns: high values go missing more often, or low "
        "ones. Of psmvae alone.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
Sets = Annotated[
    int | None,
    typer.Option(
        "--sets",
        metavar="N",
        min=1,
        help="Number of pattern sets, of psmvae (by default as many as the masks bear out), "
        "gmvae and dlgm.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
Members = Annotated[
    int | None,
    typer.Option(
        "--members",
        metavar="N",
        min=1,
        help="Number of members averaged: more is better and slower.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
Bootstrap = Annotated[
    bool | None,
    typer.Option(
        "--bootstrap",
        help="Train each member on rows drawn with replacement: for --multiple, with as many "
        "members as imputations.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option(
        "--epochs",
        metavar="N",
        min=1,
        help="At most this many passes over the table, for each part that is trained.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
MaxTime = Annotated[
    float | None,
    typer.Option(
        "--max-time",
        metavar="SECONDS",
        callback=_seconds,
        help="Stop training after about this long and keep what is learned.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="COLUMN=KIND",
        help="Treat a column as real, positive, integer, count, binary, ordinal or categorical "
        "(repeatable).",
        rich_help_panel=_MODEL,
    ),
]
Draws = Annotated[
    int | None,
    typer.Option(
        "--draws",
        metavar="N",
        min=1,
        help="Importance draws a row.",
        show_default=False,
        rich_help_panel=_RUN,
    ),
]
UnseenOption = Annotated[
    Unseen | None,
    typer.Option(
        "--handle-unknown",
        help="A category the model never saw is an error (default) or read as missing; "
        "the cell itself is kept.",
        show_default=False,
        rich_help_panel=_RUN,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="COLUMN",
        help="Set this column aside, such as an identifier or a date (repeatable): it is written "
        "as it is and not modelled. A model file remembers it: new rows may have it or not.",
        rich_help_panel=_RUN,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        min=0,
        help="The same seed gives the same result.",
        rich_help_panel=_RUN,
    ),
]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="NAME",
        callback=_device,
        help="auto, cpu, cuda or cuda:N.",
        rich_help_panel=_RUN,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="No progress and no summary; warnings stay.", rich_help_panel=_RUN
    ),
]
