"""The options that several commands share, and the imputer that they describe."""

from __future__ import annotations

import dataclasses
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psmvae.cli import arguments as a
from psmvae.cli.methods import Method, check_options, has_parameter, imputer_class
from psmvae.cli.terminal import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from psmvae.imputers.base import Imputer

# The mask models of single columns, which --self-masked restricts to the named ones.
_SELF_MASKS = (
    a.MaskModelName.SELF,
    a.MaskModelName.LOGISTIC_CEILING,
    a.MaskModelName.LOGISTIC,
)
# Mask models of --self-masked for methods other than psmvae, mice and missforest.
_DEFAULTS = {
    Method.GMVAE: a.MaskModelName.LOGISTIC_CEILING,
    Method.NOT_MIWAE: a.MaskModelName.LOGISTIC,
}


@dataclass(frozen=True, kw_only=True)
class Files:
    """The input table and the output file."""

    table: a.Table
    output: a.Output
    na: a.Na = None
    force: a.Force = False


@dataclass(frozen=True, kw_only=True)
class TableFiles:
    """One input table and the output file, or the files of one table and the output."""

    tables: a.Tables
    output: a.OutputOrFolder
    na: a.Na = None
    force: a.Force = False

    @property
    def are_parts(self) -> bool:
        """Whether the input is several files, or named in a way that may be several."""
        first = self.tables[0]
        is_pattern = any(sign in first for sign in "*?[") and not Path(first).exists()
        return len(self.tables) > 1 or "://" in first or Path(first).is_dir() or is_pattern

    @property
    def to_folder(self) -> bool:
        """Whether the output is named as a folder."""
        return self.output.endswith(("/", os.sep)) or "://" in self.output

    def single(self) -> Files:
        """Return the options of a command with one input file."""
        return Files(
            table=Path(self.tables[0]), output=Path(self.output), na=self.na, force=self.force
        )


@dataclass(frozen=True, kw_only=True)
class PartOptions:
    """Options of the output of several input files."""

    rows_per_file: a.RowsPerFile = None
    on_error: a.OnErrorOption = a.OnError.STOP

    @property
    def given(self) -> bool:
        """Whether an option was given."""
        return self.rows_per_file is not None or self.on_error is not a.OnError.STOP


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Which processes do the work."""

    engine: a.EngineOption = a.Engine.LOCAL
    address: a.Address = None
    workers: a.Workers = None

    def __post_init__(self) -> None:
        """Refuse options of a cluster without one."""
        if self.engine is a.Engine.LOCAL and (self.address or self.workers):
            option = "--address" if self.address else "--workers"
            raise UsageError(f"{option} is an option of --engine ray")

    @property
    def given(self) -> bool:
        """Whether a cluster does the work."""
        return self.engine is not a.Engine.LOCAL


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """A model file to use instead of fitting, or a file for the model that is fitted."""

    model: a.ModelFile = None
    save_model: a.SaveModel = None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of a run, which may differ between runs of the same model."""

    draws: a.Draws = None
    handle_unknown: a.HandleUnknownOption = None
    ignore: a.Ignore = None
    seed: a.Seed = 0
    device: a.Device = "auto"

    def given(self) -> list[str]:
        """Names of the options that were given, of those that not every method has."""
        return _given(self, "ignore", "seed", "device")

    def parameters(self) -> dict[str, Any]:
        """The imputer's parameters that were given."""
        return _not_none(
            n_draws=self.draws,
            handle_unknown=None if self.handle_unknown is None else self.handle_unknown.value,
        )


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options of the model, which are fixed once it is fitted."""

    method: a.MethodOption = None
    mask_model: a.MaskModel = None
    self_masked: a.SelfMasked = None
    sign: a.SignOption = None
    sets: a.Sets = None
    members: a.Members = None
    epochs: a.Epochs = None
    max_time: a.MaxTime = None
    kind: a.Kinds = None
    bounds: a.Bounds = None
    derive: a.Derive = None

    def __post_init__(self) -> None:
        """Check everything that can be checked without the table."""
        if self.self_masked and self.mask_model not in (None, *_SELF_MASKS):
            message = f"--self-masked needs --mask-model {', '.join(_SELF_MASKS[:-1])} or "
            raise UsageError(f"{message}{_SELF_MASKS[-1]}, not {self.mask_model}")
        if self.sign is not None and not self.self_masked:
            raise UsageError("--sign needs --self-masked, the columns it applies to")
        self.kinds()
        self.limits()
        self.formulas()

    @property
    def chosen_method(self) -> Method:
        """The method, or the default one."""
        return self.method or Method.PSMVAE

    def kinds(self) -> dict[str, str]:
        """The kinds of columns that were given."""
        return dict(_column_kind(text) for text in self.kind or ())

    def limits(self) -> dict[str, tuple[float | None, float | None]]:
        """The bounds of columns that were given."""
        return dict(_column_bounds(text) for text in self.bounds or ())

    def formulas(self) -> dict[str, str]:
        """The formulas of derived columns that were given."""
        return read_formulas(self.derive)

    def given(self) -> list[str]:
        """Names of the options that were given, without --method."""
        return _given(self, "method")

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse an option that names a column the table does not have."""
        for option, columns in self._columns().items():
            check_known(option, columns, names)

    def check_modelled(self, ignored: Collection[str]) -> None:
        """Refuse an option that names a column to ignore."""
        for option, columns in self._columns().items():
            clash = [name for name in columns if name in ignored]
            if clash:
                raise UsageError(f"{option}: {', '.join(map(repr, clash))} is excluded by --ignore")

    def imputer(self, run: RunOptions) -> Imputer:
        """Return the imputer of these options, not yet fitted."""
        method = self.chosen_method
        given = _not_none(
            mask_model=self._mask_model(),
            n_sets=self.sets,
            n_members=self.members,
            max_epochs=self.epochs,
            max_time=self.max_time,
            kinds=self.kinds() or None,
            bounds=self.limits() or None,
            derived=self.formulas() or None,
            # --device has a default, so methods without a device ignore it instead of failing
            device=run.device if has_parameter(method, "device") else None,
        )
        return imputer_class(method)(**given, **run.parameters(), random_state=run.seed)

    def _columns(self) -> dict[str, list[str]]:
        """The columns that options name, by option."""
        return {
            "--self-masked": self.self_masked or [],
            "--kind": list(self.kinds()),
            "--bounds": list(self.limits()),
            "--derive": list(self.formulas()),
        }

    def _mask_model(self) -> Any:
        """The parameter `mask_model`: a name, or settings with columns and sign."""
        if not self.self_masked:
            return None if self.mask_model is None else self.mask_model.value
        sign: Any = None if self.sign is None else self.sign.value
        chosen = self.mask_model or _DEFAULTS.get(self.chosen_method, a.MaskModelName.SELF)
        if chosen is a.MaskModelName.SELF:
            from psmvae.mechanism.settings import SelfMask

            return SelfMask(columns=self.self_masked, sign=sign)
        from psmvae.nn.settings import mask_model

        settings: Any = mask_model(chosen.value)
        return dataclasses.replace(settings, columns=self.self_masked, sign=sign)


@dataclass(frozen=True)
class ModelSource:
    """Where the fitted imputer of a command comes from: a model file, or the input table.

    ``options`` is what to fit without a model file, ``run`` holds in both cases, and ``files`` has
    the model file, or where to write the model that is fitted.
    """

    options: ModelOptions
    run: RunOptions
    files: ModelFiles = field(default_factory=ModelFiles)

    def __post_init__(self) -> None:
        """Refuse options that the method does not have, or that a model file has fixed."""
        options = self.options
        options.check_modelled(self.run.ignore or ())
        if self.files.model is None:
            method = options.chosen_method
            check_options(method, options.given() + self.run.given(), where=f"--method {method}")
            return
        fixed = _given(options) + _given(self.files, "model")
        if fixed:
            raise UsageError(f"{', '.join(fixed)}: not with --model, which is already fitted")

    def given(self) -> list[str]:
        """Names of the options that were given: those of the model, its file and its draws."""
        return _given(self.options) + _given(self.files) + self.run.given()


def check_known(option: str, columns: Iterable[str], names: Iterable[str]) -> None:
    """Refuse an option that names a column the table does not have."""
    known = list(names)
    unknown = [name for name in columns if name not in known]
    if unknown:
        raise UsageError(
            f"{option}: no column {', '.join(map(repr, unknown))} in the table; "
            f"its columns are {', '.join(map(repr, known))}"
        )


def read_formulas(derive: Iterable[str] | None) -> dict[str, str]:
    """Return the formulas of --derive by column."""
    return dict(_column_formula(text) for text in derive or ())


def read_orders(kind: Iterable[str] | None) -> dict[str, tuple[Any, ...]]:
    """Return the levels of --kind COLUMN=ordinal:LEVEL,LEVEL by column, in their order."""
    from psmvae.table.declared import parse_kind

    orders = {}
    for text in kind or ():
        column, given = _column_kind(text)
        declared = parse_kind(column, given)
        if declared.kind != "ordinal" or not declared.levels:
            raise UsageError(
                f"--kind {text!r}: only the order of levels has an effect here, such as "
                f"{column}=ordinal:low,middle,high"
            )
        orders[column] = declared.levels
    return orders


def _given(options: RunOptions | ModelOptions | ModelFiles, *left_out: str) -> list[str]:
    """Names of the options that were given, in the order of the fields."""
    fields = {name: value for name, value in vars(options).items() if name not in left_out}
    return [f"--{name.replace('_', '-')}" for name in _not_none(**fields) if fields[name] != []]


def _not_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _column_kind(text: str) -> tuple[str, str]:
    from psmvae.kinds import KINDS
    from psmvae.table.declared import parse_kind

    # the names of columns and of levels may contain an equals sign
    splits = [match.start() for match in re.finditer("=", text)]
    pairs = [(text[:at], text[at + 1 :]) for at in splits if at > 0]
    if not pairs:
        raise UsageError(f"--kind {text!r} is not of the form COLUMN=KIND")
    for column, kind in reversed(pairs):
        if kind.partition(":")[0] in KINDS:
            try:
                parse_kind(column, kind)
            except ValueError as error:
                raise UsageError(f"--kind {text!r}: {error}") from error
            return column, kind
    kind = pairs[-1][1]
    raise UsageError(f"--kind {text!r}: the kinds are {', '.join(sorted(KINDS))}, not {kind!r}")


def _column_bounds(text: str) -> tuple[str, tuple[float | None, float | None]]:
    column, _, pair = text.rpartition("=")
    low, colon, high = pair.partition(":")
    try:
        if not column or not colon:
            raise ValueError
        sides = (float(low) if low.strip() else None, float(high) if high.strip() else None)
    except ValueError as error:
        message = f"--bounds {text!r} is not of the form COLUMN=LOW:HIGH, such as age=0:120"
        raise UsageError(message) from error
    if sides[0] is not None and sides[1] is not None and sides[0] > sides[1]:
        raise UsageError(f"--bounds {text!r}: the lower bound is above the upper one")
    return column, sides


def _column_formula(text: str) -> tuple[str, str]:
    column, equals, formula = text.partition("=")
    if not equals or not column.strip() or not formula.strip():
        message = f"--derive {text!r} is not of the form COLUMN=FORMULA, such as 'bmi=wgt/hgt**2'"
        raise UsageError(message)
    return column.strip(), formula.strip()
