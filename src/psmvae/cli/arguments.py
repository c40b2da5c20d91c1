"""Arguments and options of the commands as annotated types, with their help texts."""

from __future__ import annotations

import math
import re
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from psmvae.cli.methods import Method


class MaskModelName(StrEnum):
    """The mask models by name."""

    AUTO = "auto"
    SELF = "self"
    LATENT = "latent"
    NONE = "none"
    LOGISTIC_CEILING = "logistic-ceiling"
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


class OnError(StrEnum):
    """What to do with an input file that cannot be read or imputed."""

    STOP = "stop"
    SKIP = "skip"


class Engine(StrEnum):
    """Which processes do the work."""

    LOCAL = "local"
    RAY = "ray"


def _device(value: str) -> str:
    if re.fullmatch(r"auto|cpu|cuda(:\d+)?", value) is None:
        raise typer.BadParameter(f"{value!r} is not one of auto, cpu, cuda, cuda:N")
    return value


def _seconds(value: float | None) -> float | None:
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter(f"{value} is not a number of seconds above 0")
    return value


_file_option = partial(typer.Option, rich_help_panel="Files")
_model_option = partial(typer.Option, rich_help_panel="Model (not with -m)", show_default=False)
_cluster_option = partial(typer.Option, rich_help_panel="Cluster")
_run_option = partial(typer.Option, rich_help_panel="Run")

Table = Annotated[
    Path, typer.Argument(metavar="TABLE", help="A .csv, .tsv, .parquet or .feather file.")
]
Output = Annotated[Path, _file_option("--output", "-o", metavar="FILE", help="The file to write.")]
Tables = Annotated[
    list[str],
    typer.Argument(
        metavar="TABLE...",
        help="A .csv, .tsv, .parquet or .feather file; or several files, folders, patterns or URIs "
        "(s3://...) that are parts of one table, which need not fit into memory.",
    ),
]
OutputOrFolder = Annotated[
    str,
    _file_option(
        "--output",
        "-o",
        metavar="FILE",
        help="The file to write, or the folder if there are several input files.",
    ),
]
SampleRows = Annotated[
    int | None,
    _file_option(
        "--sample-rows",
        metavar="N",
        min=1,
        show_default=False,
        help="Fit to a uniform sample of this many rows (500,000 of several files).",
    ),
]
RowsPerFile = Annotated[
    int | None,
    _file_option(
        "--rows-per-file",
        metavar="N",
        min=1,
        show_default=False,
        help="Write files of this many rows to the output folder, instead of one for each input.",
    ),
]
OnErrorOption = Annotated[
    OnError,
    _file_option(
        "--on-error",
        help="Stop at an input file that cannot be read or imputed, or skip it. Files that are "
        "done stay valid.",
    ),
]
EngineOption = Annotated[
    Engine,
    _cluster_option("--engine", help="This process, or the workers of a Ray cluster."),
]
Address = Annotated[
    str | None,
    _cluster_option(
        "--address",
        metavar="ADDRESS",
        show_default=False,
        help="The Ray cluster: auto for the one of this machine, or HOST:PORT. By default that in "
        "RAY_ADDRESS, or a new one on this machine.",
    ),
]
Workers = Annotated[
    int | None,
    _cluster_option(
        "--workers",
        metavar="N",
        min=1,
        show_default=False,
        help="Worker processes: by default one for each core or GPU of the cluster to impute, and "
        "2 to fit.",
    ),
]
ModelFile = Annotated[
    Path | None,
    _file_option(
        "--model", "-m", metavar="FILE", help="Use this fitted model instead of fitting one."
    ),
]
SaveModel = Annotated[
    Path | None,
    _file_option(
        "--save-model",
        metavar="FILE",
        help="Also write the fitted model to this .safetensors file.",
    ),
]
Force = Annotated[bool, _file_option("--force", help="Replace an existing output file.")]
Na = Annotated[
    list[str] | None,
    _file_option(
        "--na",
        metavar="TEXT",
        help="Another text that marks a missing cell (repeatable). Always missing: an empty cell "
        "and, in a text file, NA, N/A, n/a, #N/A, #NA, <NA>, NaN, nan, -NaN, -nan, null, "
        "NULL and None.",
    ),
]
MethodOption = Annotated[
    Method | None,
    _model_option(
        "--method",
        metavar="NAME",
        help=f"The imputer: psmvae (default), {', '.join(list(Method)[1:])}.",
    ),
]
MaskModel = Annotated[
    MaskModelName | None,
    _model_option(
        "--mask-model",
        metavar="NAME",
        help="Model of why cells are missing. none: at random (default of mice, missforest and "
        "gmvae). For psmvae, mice and missforest: auto (default of psmvae) compares, for each "
        "column, its own value with the other columns, and corrects for the value where it "
        "explains the missingness about as well; self: the value of each cell decides. For psmvae, "
        "gmvae and not-miwae: latent, p(m|z,r), and the models of p(m|x) logistic-ceiling, "
        "logistic (default of not-miwae), linear and network.",
    ),
]
SelfMasked = Annotated[
    list[str] | None,
    _model_option(
        "--self-masked",
        metavar="COLUMN",
        help="A column whose missingness depends on its own value (repeatable): the mask model is "
        "self for these columns, for psmvae, mice and missforest; logistic-ceiling for gmvae, "
        "logistic for not-miwae.",
    ),
]
SignOption = Annotated[
    Sign | None,
    _model_option(
        "--sign",
        help="Which values of the --self-masked columns are known to be missing more often: high "
        "or low ones.",
    ),
]
Sets = Annotated[
    int | None,
    _model_option(
        "--sets",
        metavar="N",
        min=1,
        help="Number of pattern sets, for psmvae (chosen from the masks by default), gmvae and "
        "dlgm.",
    ),
]
Members = Annotated[
    int | None,
    _model_option(
        "--members",
        metavar="N",
        min=1,
        help="Number of ensemble members to average: more is more accurate and slower.",
    ),
]
Epochs = Annotated[
    int | None,
    _model_option(
        "--epochs", metavar="N", min=1, help="Maximum number of epochs, for each training phase."
    ),
]
MaxTime = Annotated[
    float | None,
    _model_option(
        "--max-time",
        metavar="SECONDS",
        callback=_seconds,
        help="Stop training after about this time and keep the best weights so far.",
    ),
]
Kinds = Annotated[
    list[str] | None,
    _model_option(
        "--kind",
        metavar="COLUMN=KIND",
        help="Model a column as real, positive, integer, count, binary, ordinal or categorical "
        "(repeatable). Levels may follow in their order: edu=ordinal:low,middle,high.",
    ),
]
Bounds = Annotated[
    list[str] | None,
    _model_option(
        "--bounds",
        metavar="COLUMN=LOW:HIGH",
        help="Impute values of a numeric column between these bounds only (repeatable). An empty "
        "side is no bound: COLUMN=0: or COLUMN=:100. By default no negative value is imputed where "
        "none was observed.",
    ),
]
Derive = Annotated[
    list[str] | None,
    _model_option(
        "--derive",
        metavar="COLUMN=FORMULA",
        help="Leave a column out of the model and compute it from the others wherever one of them "
        "was filled (repeatable): 'bmi=wgt / (hgt / 100) ** 2'.",
    ),
]
Draws = Annotated[
    int | None,
    _run_option("--draws", metavar="N", min=1, help="Number of importance draws per row."),
]
HandleUnknownOption = Annotated[
    HandleUnknown | None,
    _run_option(
        "--handle-unknown",
        help="Levels that were not in the fitted table: raise an error (default), or treat the "
        "cells as missing in the model. The output keeps the cells.",
    ),
]
Ignore = Annotated[
    list[str] | None,
    _run_option(
        "--ignore",
        metavar="COLUMN",
        help="Do not model this column, such as an identifier or a date (repeatable): it is copied "
        "to the output. A model file stores these names: later tables may have the columns or not.",
    ),
]
Seed = Annotated[int, _run_option("--seed", metavar="N", min=0, help="Random seed.")]
Device = Annotated[
    str,
    _run_option("--device", metavar="NAME", callback=_device, help="auto, cpu, cuda or cuda:N."),
]
Quiet = Annotated[
    bool, _run_option("--quiet", "-q", help="Show no progress and no summary, only warnings.")
]
