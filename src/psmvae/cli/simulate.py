"""``psmvae simulate``: make cells of a table missing by a known mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from psmvae.cli.files import check_input, check_table_output, is_text_file, read_input
from psmvae.cli.simulate_options import SET
from psmvae.cli.terminal import UsageError
from psmvae.simulate import MECHANISMS
from psmvae.simulate.table import generator
from psmvae.table.io import write_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from psmvae.cli.options import Files
    from psmvae.cli.simulate_options import SimulateOptions
    from psmvae.cli.terminal import Terminal
    from psmvae.simulate import Simulated

_WITHOUT_ORDER = (
    pa.types.is_nested,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)


def simulate(files: Files, options: SimulateOptions, terminal: Terminal) -> None:
    """Write a table with simulated missing cells and, if requested, the mask."""
    _check_paths(files, options.mask)
    source = read_input(files)
    table = source.table
    options.check_columns(table.column_names)
    if options.mask is not None and SET in table.column_names:
        message = f"{files.table} has a column named {SET!r}, which --mask would add; rename it"
        raise UsageError(message)

    mechanism = MECHANISMS[options.mechanism]
    rng = generator(options.seed)
    simulated = mechanism(_numeric(table), options.rate, rng, **options.parameters())
    observed = _observed(table)
    removed = observed & ~simulated.m
    as_text = source.text is not None and is_text_file(files.output)
    result = _without(source.as_written() if as_text else table, removed)
    write_table(result, files.output, force=files.force, inputs=[files.table])
    if options.mask is not None:
        mask = _mask_table(table.column_names, observed, simulated)
        write_table(mask, options.mask, force=files.force, inputs=[files.table])
    columns = [name for name, lost in zip(table.column_names, removed.T, strict=True) if lost.any()]
    where = f" in {', '.join(columns)}" if columns else ""
    terminal.say(f"{files.table}: {len(observed):,} rows, {observed.sum():,} cells observed")
    terminal.say(f"made {removed.sum():,} of them missing{where}")
    terminal.say(f"wrote {files.output}{'' if options.mask is None else f' and {options.mask}'}")


def _check_paths(files: Files, mask: Path | None) -> None:
    for path in (files.output,) if mask is None else (files.output, mask):
        check_table_output(path, force=files.force, inputs=[files.table])
    if mask is not None and mask.resolve() == files.output.resolve():
        raise UsageError(f"{mask}: --mask and --output are the same file; choose another name")
    check_input(files.table)


def _observed(table: Any) -> NDArray[np.bool_]:
    """The mask of a table, (row, column)."""
    missing = [pc.is_null(column, nan_is_null=True).to_numpy() for column in table.columns]
    return ~np.column_stack(missing)


def _numeric(table: Any) -> Any:
    """The table with times as numbers, and 1 for each observed cell of a type without an order."""
    columns = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
            columns.append(column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()))
        elif any(is_one(kind) for is_one in _WITHOUT_ORDER):
            valid = column.is_valid().to_numpy()
            columns.append(pa.array(valid.astype(float), mask=~valid))
        else:
            columns.append(column)
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def _without(table: Any, removed: NDArray[np.bool_]) -> Any:
    """The table with null in the removed cells; all types and the other cells are kept."""
    rows = np.arange(table.num_rows)
    # `take` gives null for a null index, whatever the type
    columns = [
        column.take(pa.array(rows, mask=lost)) if lost.any() else column
        for column, lost in zip(table.columns, removed.T, strict=True)
    ]
    fields = [
        field.with_nullable(True) if lost.any() else field
        for field, lost in zip(table.schema, removed.T, strict=True)
    ]
    schema = pa.schema(fields, metadata=table.schema.metadata)
    return pa.Table.from_arrays(columns, schema=schema)


def _mask_table(names: Sequence[str], observed: NDArray[np.bool_], simulated: Simulated) -> Any:
    masks = {
        name: pa.array(m.astype(np.int8), mask=~before)
        for name, m, before in zip(names, simulated.m.T, observed.T, strict=True)
    }
    return pa.table({**masks, SET: simulated.sets})
