"""``psmvae simulate``: holes of a known cause in any table."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psmvae.cli.arguments import Seed
from psmvae.cli.terminal import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from psmvae.cli.options import Files
    from psmvae.cli.terminal import Terminal
    from psmvae.simulate import Simulated

# The column of the mask's file that holds the true pattern set of each row.
SET = "set"

_MECHANISM = "Mechanism"


class Mechanism(StrEnum):
    """The mechanisms by name."""

    MCAR = "mcar"
    MAR = "mar"
    MNAR = "mnar"
    MNAR_TWO = "mnar-two"
    MNAR_ALL = "mnar-all"
    MNAR_MCAR = "mnar-mcar"
    MNAR_SELF = "mnar-self"
    QUANTILE = "quantile"
    BLOCKS = "blocks"
    LABEL = "label"


class Tail(StrEnum):
    """The ends of a column."""

    LOW = "low"
    HIGH = "high"
    BOTH = "both"


def _share(value: float | None) -> float | None:
    if value is not None and not 0 <= value <= 1:
        message = f"{value} is not between 0 and 1"
        raise typer.BadParameter(message)
    return value


def _option(*names: str, text: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, show_default=False, rich_help_panel=_MECHANISM, **more)


@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    """Which holes are made."""

    mechanism: Annotated[
        Mechanism,
        _option(
            "--mechanism",
            metavar="NAME",
            text="Why cells go missing. By nothing: mcar, blocks (columns together). By columns "
            "that stay: mar, label. By their own values: mnar (above the median of one column), "
            "mnar-two, mnar-all, mnar-self (logistic), quantile (a tail). mnar-mcar: one column "
            "by its own values, the others by nothing.",
        ),
    ]
    rate: Annotated[
        float,
        _option(
            "--rate",
            metavar="SHARE",
            callback=_share,
            text="Share of the cells of each column that goes missing; of mnar, mnar-two and "
            "mnar-all, share of those above the median. Of mnar-mcar, share of the columns that go "
            "missing by nothing: of the one that goes by its own values it is half of those above "
            "the median.",
        ),
    ]
    columns: Annotated[
        list[str] | None,
        _option(
            "--columns",
            metavar="COLUMN",
            text="A column that may go missing (repeatable); any by default.",
        ),
    ] = None
    given: Annotated[
        list[str] | None,
        _option(
            "--given",
            metavar="COLUMN",
            text="A column that missingness depends on (repeatable), of mar; drawn by default.",
        ),
    ] = None
    label: Annotated[
        str | None,
        _option(
            "--label",
            metavar="COLUMN",
            text="The column whose values each have their own pattern, of label.",
        ),
    ] = None
    slope: Annotated[
        float | None,
        _option(
            "--slope",
            metavar="NUMBER",
            text="How steeply the logit of the chance rises (default 2; below 0 it falls) for a "
            "standard deviation, of mar and mnar-self.",
        ),
    ] = None
    tail: Annotated[
        Tail | None,
        _option("--tail", text="Which end goes missing (default high), of quantile."),
    ] = None
    probability: Annotated[
        float | None,
        _option(
            "--probability",
            metavar="SHARE",
            callback=_share,
            text="Chance of a cell of the tail (default 1), of quantile: the smaller, the longer "
            "the tail.",
        ),
    ] = None
    blocks: Annotated[
        int | None,
        _option("--blocks", metavar="N", min=1, text="Number of blocks (default 3), of blocks."),
    ] = None
    mask: Annotated[
        Path | None,
        typer.Option(
            "--mask",
            metavar="FILE",
            help="Also write which cells are observed (1), made missing (0) or were missing before "
            f"(empty), and the true pattern set of each row in a column {SET!r}.",
            rich_help_panel="Files",
        ),
    ] = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        """Refuse what the mechanism has no use for."""
        from psmvae.simulate import MECHANISMS

        known = inspect.signature(MECHANISMS[self.mechanism]).parameters
        refused = [option for option, name, _ in self._given() if name not in known]
        if refused:
            message = f"{', '.join(refused)}: not with --mechanism {self.mechanism}"
            raise UsageError(message)
        if "label" in known and self.label is None:
            message = f"--mechanism {self.mechanism} needs --label"
            raise UsageError(message)

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse an option that names a column the table does not have."""
        for option, columns in (
            ("--columns", self.columns or ()),
            ("--given", self.given or ()),
            ("--label", () if self.label is None else (self.label,)),
        ):
            unknown = [name for name in columns if name not in names]
            if unknown:
                message = f"{option}: no column {', '.join(map(repr, unknown))} in the table; "
                raise UsageError(message + f"its columns are {', '.join(map(repr, names))}")

    def simulated(self, table: Any) -> Simulated:
        """Run the mechanism on a table."""
        from psmvae.simulate import MECHANISMS
        from psmvae.simulate.table import generator

        parameters = {name: value for _, name, value in self._given()}
        return MECHANISMS[self.mechanism](table, self.rate, generator(self.seed), **parameters)

    def _given(self) -> list[tuple[str, str, Any]]:
        """The options that were given: as typed, the mechanism's parameter, the value."""
        options = [
            ("--columns", "columns", self.columns or None),
            ("--given", "given", self.given or None),
            ("--label", "label", self.label),
            ("--slope", "slope", self.slope),
            ("--tail", "tail", None if self.tail is None else self.tail.value),
            ("--probability", "probability", self.probability),
            ("--blocks", "n_blocks", self.blocks),
        ]
        return [option for option in options if option[2] is not None]


def put_holes(files: Files, options: SimulateOptions, terminal: Terminal) -> None:
    """Write a table with holes, and where they are."""
    _check_paths(files, options.mask)
    from psmvae.table.io import read_table, read_text, write_table
    from psmvae.table.paths import SEPARATORS, extension

    na = files.na or ()
    table = read_table(files.table, na=na)
    if table.num_rows == 0:
        message = f"{files.table}: the table has no rows"
        raise UsageError(message)
    options.check_columns(table.column_names)
    if options.mask is not None and SET in table.column_names:
        message = f"{files.table} has a column named {SET!r}, which --mask would add; rename it"
        raise UsageError(message)

    simulated = options.simulated(_plain(table))
    before = _present(table)
    gone = before & ~simulated.m
    # cells that stay are written as they were, down to the digits
    texts = [extension(path) in SEPARATORS for path in (files.table, files.output)]
    whole = read_text(files.table, na=na) if all(texts) else table
    inputs = [files.table]
    write_table(_without(whole, gone), files.output, force=files.force, inputs=inputs)
    if options.mask is not None:
        mask = _mask_table(table.column_names, before, simulated)
        write_table(mask, options.mask, force=files.force, inputs=inputs)

    lost = [name for name, n in zip(table.column_names, gone.sum(axis=0), strict=True) if n]
    n_before, n_gone = int(before.sum()), int(gone.sum())
    terminal.say(f"{files.table}: {table.num_rows:,} rows, {n_before:,} cells observed")
    where = f" in {', '.join(lost)}" if lost else ""
    terminal.say(f"made {n_gone:,} of them missing{where}")
    terminal.say(f"wrote {files.output}{'' if options.mask is None else f' and {options.mask}'}")


def _check_paths(files: Files, mask: Path | None) -> None:
    from psmvae.cli.paths import check_input, check_table_output

    for path in (files.output,) if mask is None else (files.output, mask):
        check_table_output(path, force=files.force, inputs=[files.table])
    if mask is not None and mask.resolve() == files.output.resolve():
        message = f"{mask}: --mask and --output are the same file; choose another name"
        raise UsageError(message)
    check_input(files.table)


def _present(table: Any) -> NDArray[np.bool_]:
    """Where a cell is there, (row, column)."""
    import numpy as np
    import pyarrow.compute as pc

    missing = [pc.is_null(column, nan_is_null=True).to_numpy() for column in table.columns]
    return ~np.column_stack(missing)


def _plain(table: Any) -> Any:
    """The table with times as numbers; of what has no order, only whether it is there."""
    import pyarrow as pa

    unordered = (
        pa.types.is_nested,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
    )
    columns = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
            columns.append(column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()))
        elif any(is_one(kind) for is_one in unordered):
            there = column.is_valid().to_numpy()
            columns.append(pa.array(there.astype(float), mask=~there))
        else:
            columns.append(column)
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def _without(table: Any, gone: NDArray[np.bool_]) -> Any:
    """The table with null where a cell is gone; every other cell and all types are kept."""
    import numpy as np
    import pyarrow as pa

    rows = np.arange(table.num_rows)
    # to take no row is null, whatever the type
    columns = [
        column.take(pa.array(rows, mask=lost)) if lost.any() else column
        for column, lost in zip(table.columns, gone.T, strict=True)
    ]
    fields = [
        field.with_nullable(True) if lost.any() else field
        for field, lost in zip(table.schema, gone.T, strict=True)
    ]
    schema = pa.schema(fields, metadata=table.schema.metadata)
    return pa.Table.from_arrays(columns, schema=schema)


def _mask_table(names: Sequence[str], before: NDArray[np.bool_], simulated: Simulated) -> Any:
    import numpy as np
    import pyarrow as pa

    masks = {
        name: pa.array(seen.astype(np.int8), mask=~there)
        for name, seen, there in zip(names, simulated.m.T, before.T, strict=True)
    }
    return pa.table({**masks, SET: simulated.sets})
