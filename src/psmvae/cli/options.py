"""The options the commands share, and what they mean for the imputer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psmvae.cli.terminal import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from psmvae.imputers import PSMVAEImputer


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
        help="Also read this as missing (repeatable).",
        rich_help_panel=_FILES,
    ),
]
Mask = Annotated[
    MaskName | None,
    typer.Option(
        "--mask-model",
        help="What missingness depends on: latent (default) on what kind of row it is, "
        "self on the missing value itself, none on nothing.",
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
        "implies --mask-model self for these columns.",
        rich_help_panel=_MODEL,
    ),
]
Sets = Annotated[
    int | None,
    typer.Option(
        "--sets",
        metavar="N",
        min=1,
        help="Number of pattern sets.",
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


@dataclass(frozen=True)
class RunOptions:
    """How to compute: these may change from run to run with the same model."""

    seed: int = 0
    device: str = "auto"
    draws: int | None = None
    unseen: Unseen | None = None

    def parameters(self) -> dict[str, Any]:
        """The imputer's parameters that were given."""
        given = {
            "n_draws": self.draws,
            "unseen": None if self.unseen is None else self.unseen.value,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class ModelOptions:
    """What to fit: these are part of a fitted model."""

    mask_model: MaskName | None = None
    self_masked: tuple[str, ...] = ()
    sets: int | None = None
    members: int | None = None
    epochs: int | None = None
    kinds: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(
        cls,
        *,
        mask_model: MaskName | None,
        self_masked: Sequence[str] | None,
        sets: int | None,
        members: int | None,
        epochs: int | None,
        kinds: Sequence[str] | None,
    ) -> ModelOptions:
        """Check the options as far as that goes without the table."""
        if self_masked and mask_model not in (None, MaskName.SELF):
            message = f"--self-masked needs --mask-model self, not {mask_model.value}"
            raise UsageError(message)
        return cls(
            mask_model=mask_model,
            self_masked=tuple(self_masked or ()),
            sets=sets,
            members=members,
            epochs=epochs,
            kinds=tuple(_column_kind(text) for text in kinds or ()),
        )

    def given(self) -> list[str]:
        """The options that were given, by the name a user types."""
        values = {
            "--mask-model": self.mask_model,
            "--self-masked": self.self_masked,
            "--sets": self.sets,
            "--members": self.members,
            "--epochs": self.epochs,
            "--kind": self.kinds,
        }
        return [name for name, value in values.items() if value not in (None, ())]

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse an option that names a column the table does not have."""
        known = list(names)
        for option, columns in (
            ("--self-masked", self.self_masked),
            ("--kind", [name for name, _ in self.kinds]),
        ):
            unknown = [name for name in columns if name not in known]
            if unknown:
                message = f"{option}: no column {', '.join(map(repr, unknown))} in the table; "
                raise UsageError(message + f"its columns are {', '.join(map(repr, known))}")

    def imputer(self, run: RunOptions) -> PSMVAEImputer:
        """Make the imputer these options describe, not yet fitted."""
        from psmvae.imputers import PSMVAEImputer
        from psmvae.nn.mask import SelfMask

        given: dict[str, Any] = {
            "mask_model": None if self.mask_model is None else self.mask_model.value,
            "n_sets": self.sets,
            "n_members": self.members,
            "max_epochs": self.epochs,
            "kinds": dict(self.kinds) or None,
        }
        if self.self_masked:
            given["mask_model"] = SelfMask(columns=list(self.self_masked))
        chosen = {name: value for name, value in given.items() if value is not None}
        return PSMVAEImputer(**chosen, **run.parameters(), device=run.device, random_state=run.seed)


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


@dataclass(frozen=True)
class ModelSource:
    """Where the fitted imputer comes from: a file, or the table at hand.

    Parameters
    ----------
    options : ModelOptions
        What to fit, where there is no file.
    run : RunOptions
        How to compute, in both cases.
    file : Path, optional
        A model file to use instead of fitting.
    save : Path, optional
        Where to write the model that was fitted.
    """

    options: ModelOptions
    run: RunOptions
    file: Path | None = None
    save: Path | None = None

    def __post_init__(self) -> None:
        """Refuse options that a given model has already decided."""
        given = self.options.given() + ([] if self.save is None else ["--save-model"])
        if self.file is not None and given:
            message = f"{', '.join(given)}: not with --model, which is fitted already"
            raise UsageError(message)
