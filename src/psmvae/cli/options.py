"""The options the commands share, and what they mean for the imputer."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psmvae.cli.methods import Method, has_parameter, imputer_class
from psmvae.cli.terminal import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from psmvae.imputers.base import Imputer


class MaskName(StrEnum):
    """The mask models by name."""

    LATENT = "latent"
    SELF = "self"
    NONE = "none"


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
Epochs = Annotated[
    int | None,
    typer.Option(
        "--epochs",
        metavar="N",
        min=1,
        help="At most this many passes over the table.",
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
        "--unseen",
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


@dataclass(frozen=True, kw_only=True)
class Files:
    """The table that goes in and where the result goes."""

    table: Table
    output: Output
    na: Na = None
    force: Force = False


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """A model file to use instead of fitting, or where to write the model that was fitted."""

    model: ModelFile = None
    save_model: SaveModel = None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How to compute: these may change from run to run with the same model."""

    draws: Draws = None
    unseen: UnseenOption = None
    ignore: Ignore = None
    seed: Seed = 0
    device: Device = "auto"

    def given(self) -> list[str]:
        """The options that were given and not every method has, by the name a user types."""
        return _given({"--draws": self.draws, "--unseen": self.unseen})

    def parameters(self) -> dict[str, Any]:
        """The imputer's parameters that were given."""
        return _present(
            n_draws=self.draws, unseen=None if self.unseen is None else self.unseen.value
        )


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What to fit: these are part of a fitted model."""

    method: MethodOption = None
    mask_model: Mask = None
    self_masked: SelfMasked = None
    sets: Sets = None
    members: Members = None
    epochs: Epochs = None
    max_time: MaxTime = None
    kind: Kinds = None

    def __post_init__(self) -> None:
        """Check the options as far as that goes without the table."""
        if self.self_masked and self.mask_model not in (None, MaskName.SELF):
            message = f"--self-masked needs --mask-model self, not {self.mask_model.value}"
            raise UsageError(message)
        self.kinds()

    def chosen(self) -> Method:
        """The method, given or not."""
        return self.method or Method.PSMVAE

    def kinds(self) -> dict[str, str]:
        """The kinds of columns that were given."""
        return dict(_column_kind(text) for text in self.kind or ())

    def given(self) -> list[str]:
        """The options that were given, --method aside, by the name a user types."""
        return _given(
            {
                "--mask-model": self.mask_model,
                "--self-masked": self.self_masked,
                "--sets": self.sets,
                "--members": self.members,
                "--epochs": self.epochs,
                "--max-time": self.max_time,
                "--kind": self.kind,
            }
        )

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse an option that names a column the table does not have."""
        known = list(names)
        for option, columns in self._columns().items():
            unknown = [name for name in columns if name not in known]
            if unknown:
                message = f"{option}: no column {', '.join(map(repr, unknown))} in the table; "
                raise UsageError(message + f"its columns are {', '.join(map(repr, known))}")

    def check_modelled(self, ignored: Collection[str]) -> None:
        """Refuse an option that names a column to ignore."""
        for option, columns in self._columns().items():
            clash = [name for name in columns if name in ignored]
            if clash:
                message = f"{option}: {', '.join(map(repr, clash))} is set aside by --ignore"
                raise UsageError(message)

    def _columns(self) -> dict[str, list[str]]:
        """The columns that options name, by option."""
        return {"--self-masked": self.self_masked or [], "--kind": list(self.kinds())}

    def imputer(self, run: RunOptions) -> Imputer:
        """Make the imputer these options describe, not yet fitted."""
        method = self.chosen()
        given = _present(
            mask_model=self._mask(method),
            n_sets=self.sets,
            n_members=self.members,
            max_epochs=self.epochs,
            max_time=self.max_time,
            kinds=self.kinds() or None,
            # always told, so it is no mistake where there is no use for it
            device=run.device if has_parameter(method, "device") else None,
        )
        return imputer_class(method)(**given, **run.parameters(), random_state=run.seed)

    def _mask(self, method: Method) -> Any:
        if not self.self_masked:
            return None if self.mask_model is None else self.mask_model.value
        from psmvae.imputers.miwae import MASKS
        from psmvae.nn.mask import SelfMask

        if method is Method.NOT_MIWAE:
            own: Any = MASKS["self"]
            return dataclasses.replace(own, columns=self.self_masked)
        return SelfMask(columns=self.self_masked)


def _given(options: dict[str, Any]) -> list[str]:
    return [name for name, value in options.items() if value not in (None, [])]


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _column_kind(text: str) -> tuple[str, str]:
    from psmvae.kinds import KINDS

    # From the right: a column's name may hold an equals sign, a kind's does not.
    column, equals, kind = text.rpartition("=")
    if not equals or not column:
        message = f"--kind {text!r} is not of the form COLUMN=KIND"
        raise UsageError(message)
    if kind not in KINDS:
        message = f"--kind {text!r}: the kinds are {', '.join(sorted(KINDS))}, not {kind!r}"
        raise UsageError(message)
    return column, kind
