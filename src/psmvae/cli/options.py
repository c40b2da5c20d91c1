"""The options the commands share, and what they mean for the imputer."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psmvae.cli.arguments import (
    Bootstrap,
    Device,
    Draws,
    Epochs,
    Force,
    Ignore,
    Kinds,
    Mask,
    MaskName,
    MaxTime,
    Members,
    MethodOption,
    ModelFile,
    Na,
    Output,
    SaveModel,
    Seed,
    SelfMasked,
    Sets,
    SignOption,
    Table,
    UnseenOption,
)
from psmvae.cli.methods import Method, has_parameter, imputer_class
from psmvae.cli.terminal import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from psmvae.imputers.base import Imputer


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
    handle_unknown: UnseenOption = None
    ignore: Ignore = None
    seed: Seed = 0
    device: Device = "auto"

    def given(self) -> list[str]:
        """The options that were given and not every method has, by the name a user types."""
        return _given({"--draws": self.draws, "--handle-unknown": self.handle_unknown})

    def parameters(self) -> dict[str, Any]:
        """The imputer's parameters that were given."""
        return _present(
            n_draws=self.draws,
            handle_unknown=None if self.handle_unknown is None else self.handle_unknown.value,
        )


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What to fit: these are part of a fitted model."""

    method: MethodOption = None
    mask_model: Mask = None
    self_masked: SelfMasked = None
    sign: SignOption = None
    sets: Sets = None
    members: Members = None
    bootstrap: Bootstrap = None
    epochs: Epochs = None
    max_time: MaxTime = None
    kind: Kinds = None

    def __post_init__(self) -> None:
        """Check the options as far as that goes without the table."""
        if self.self_masked and self.mask_model not in (None, MaskName.SELF):
            message = f"--self-masked needs --mask-model self, not {self.mask_model.value}"
            raise UsageError(message)
        if self.sign is not None and not self.self_masked:
            message = "--sign needs --self-masked: the columns it is about"
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
                "--sign": self.sign,
                "--sets": self.sets,
                "--members": self.members,
                "--bootstrap": self.bootstrap,
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
            bootstrap=self.bootstrap,
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
        from psmvae.nn.settings import SelfMask

        if method is Method.NOT_MIWAE:
            own: Any = MASKS["self"]
            return dataclasses.replace(own, columns=self.self_masked)
        sign: Any = None if self.sign is None else self.sign.value
        return SelfMask(columns=self.self_masked, sign=sign)


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
