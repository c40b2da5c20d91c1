"""Arguments and options of the commands as annotated types, with their help texts."""

from __future__ import annotations

import math
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from psmvae.cli.methods import Method


class MaskModelName(StrEnum):
    """The mask models by name."""

    NONE = "none"
    LATENT = "latent"
    SELF = "self"
    LOGISTIC = "logistic"
    LINEAR = "linear"
    NETWORK = "network"


class Sign(StrEnum):
    """Which values go missing more often."""

    HIGH = "high"
    LOW = "low"


class HandleUnknown(StrEnum):
    """What to do with a level that was not in the fitted table."""

    ERROR = "error"
    MISSING = "missing"


def _device(value: str) -> str:
    if re.fullmatch(r"auto|cpu|cuda(:\d+)?", value) is None:
        message = f"{value!r} is not one of auto, cpu, cuda, cuda:N"
        raise typer.BadParameter(message)
    return value


def _seconds(value: float | None) -> float | None:
    if value is not None and not 0 < value < math.inf:
        message = f"{value} is not a number of seconds above 0"
        raise typer.BadParameter(message)
    return value


_MODEL, _RUN, _FILES = "Model (not with -m)", "Run", "Files"

Table = Annotated[
    Path, typer.Argument(metavar="TABLE", help="A .csv, .tsv, .parquet or .feather file.")
]
Output = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FILE", help="The file to write.", rich_help_panel=_FILES
    ),
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
        help="Also write the fitted model to this .safetensors file.",
        rich_help_panel=_FILES,
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace an existing output file.", rich_help_panel=_FILES)
]
Na = Annotated[
    list[str] | None,
    typer.Option(
        "--na",
        metavar="TEXT",
        help="Another text that marks a missing cell (repeatable). Always missing: an empty cell "
        "and, in a text file, NA, N/A, n/a, #N/A, #NA, <NA>, NaN, nan, -NaN, -nan, null, "
        "NULL and None.",
        rich_help_panel=_FILES,
    ),
]
MethodOption = Annotated[
    Method | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help=f"The imputer: psmvae (default), {', '.join(list(Method)[1:])}.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
MaskModel = Annotated[
    MaskModelName | None,
    typer.Option(
        "--mask-model",
        metavar="NAME",
        help="The model of the missingness mask m. none: missing at random (default of gmvae). "
        "latent: p(m|z,r) (default of psmvae). self: p(m|x), each column by its own value. "
        "logistic: the same as a plain logistic regression (default of not-miwae). linear, "
        "network: p(m|x), each column by all values. For psmvae, gmvae and not-miwae.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
SelfMasked = Annotated[
    list[str] | None,
    typer.Option(
        "--self-masked",
        metavar="COLUMN",
        help="A column whose missingness depends on its own value (repeatable): the mask model is "
        "self (logistic for not-miwae) for these columns. For psmvae, gmvae and not-miwae.",
        rich_help_panel=_MODEL,
    ),
]
SignOption = Annotated[
    Sign | None,
    typer.Option(
        "--sign",
        help="Which values of the --self-masked columns are known to be missing more often: high "
        "or low ones.",
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
        help="Number of pattern sets, for psmvae (chosen from the masks by default), gmvae and "
        "dlgm.",
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
        help="Number of ensemble members to average: more is more accurate and slower.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
Bootstrap = Annotated[
    bool | None,
    typer.Option(
        "--bootstrap",
        help="Train each member on a bootstrap sample of the rows. Use it with --multiple and as "
        "many --members as imputations.",
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
        help="Maximum number of epochs, for each training phase.",
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
        help="Stop training after about this time and keep the best weights so far.",
        show_default=False,
        rich_help_panel=_MODEL,
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="COLUMN=KIND",
        help="Model a column as real, positive, integer, count, binary, ordinal or categorical "
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
        help="Number of importance draws per row.",
        show_default=False,
        rich_help_panel=_RUN,
    ),
]
HandleUnknownOption = Annotated[
    HandleUnknown | None,
    typer.Option(
        "--handle-unknown",
        help="Levels that were not in the fitted table: raise an error (default), or treat the "
        "cells as missing in the model. The output keeps the cells.",
        show_default=False,
        rich_help_panel=_RUN,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="COLUMN",
        help="Do not model this column, such as an identifier or a date (repeatable): it is copied "
        "to the output. A model file stores these names: later tables may have the columns or not.",
        rich_help_panel=_RUN,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        min=0,
        help="Random seed.",
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
        "--quiet",
        "-q",
        help="Show no progress and no summary, only warnings.",
        rich_help_panel=_RUN,
    ),
]
