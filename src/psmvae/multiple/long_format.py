"""The long format of R's mice: tables stacked, with the columns ``.imp`` and ``.id`` in front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae.table.libraries import is_arrow_table, is_pandas_frame

KEYS = IMPUTATION, ROW = ".imp", ".id"


def stack_tables(tables: Sequence[Any]) -> Any:
    """Stack an incomplete table, which is imputation 0, and its completed tables."""
    frames = [_with_keys(table, k) for k, table in enumerate(tables)]
    # an incomplete integer column may be of floats, a completed one of integers
    completed = frames[1].schema.items()
    first = _cast(frames[0], {n: dtype for n, dtype in completed if not dtype.is_integer()})
    rest = [_cast(frame, first.schema) for frame in frames[1:]]
    return nw.concat([first, *rest]).to_native()


def split_tables(table: Any) -> list[Any]:
    """Return the incomplete table and the completed tables of a long table, without keys."""
    frame = nw.from_native(table, eager_only=True)
    absent = [name for name in (IMPUTATION, ROW) if name not in frame.columns]
    if absent:
        raise ValueError(f"a long table needs the columns '.imp' and '.id'; absent: {absent}.")
    numbers = _imputation_numbers(frame[IMPUTATION].unique().to_list())
    parts = [_select_rows(frame, (frame[IMPUTATION] == k).to_numpy()) for k in numbers]
    rows = parts[0][ROW].to_list()
    for k, part in zip(numbers, parts, strict=True):
        if part[ROW].to_list() != rows:
            raise ValueError(f"imputations 0 and {k} differ in their rows (.id).")
    return [reset_index(part.drop(IMPUTATION, ROW).to_native()) for part in parts]


def _select_rows(frame: nw.DataFrame[Any], rows: NDArray[np.bool_]) -> nw.DataFrame[Any]:
    if is_arrow_table(native := frame.to_native()):
        from psmvae.table.frame_arrow import select_rows

        return nw.from_native(select_rows(native, rows), eager_only=True)
    return frame.filter(rows.tolist())


def reset_index(table: Any) -> Any:
    """Return a pandas frame with a default index; other tables have none."""
    return table.reset_index(drop=True) if is_pandas_frame(table) else table


def _imputation_numbers(found: list[Any]) -> list[Any]:
    """Return the sorted values of ``.imp``."""
    wrong = [k for k in found if not isinstance(k, int | float) or k != k or k != int(k)]
    if wrong:
        raise ValueError(f"the column '.imp' must have whole numbers, got {wrong[:5]}.")
    numbers = sorted(found)
    if not numbers or numbers[0] != 0 or len(numbers) < 2:
        raise ValueError(
            "a long table needs the incomplete table as imputation 0 and at least one completed "
            f"table, got .imp = {numbers}."
        )
    return numbers


def _with_keys(table: Any, k: int) -> nw.DataFrame[Any]:
    """Return a table as a frame with its keys in front."""
    if isinstance(table, np.ndarray):
        columns = {f"x{j}": table[:, j] for j in range(table.shape[1])}
        frame = nw.from_dict(columns, backend="pandas")
    else:
        frame = nw.from_native(reset_index(table), eager_only=True)
    taken = [name for name in (IMPUTATION, ROW) if name in frame.columns]
    if taken:
        raise ValueError(f"the long format adds the columns '.imp' and '.id'; rename {taken}.")
    numbers = {IMPUTATION: [k] * len(frame), ROW: list(range(1, len(frame) + 1))}
    keys = nw.from_dict(numbers, backend=frame.implementation)
    return nw.concat([keys, frame], how="horizontal")


def _cast(frame: nw.DataFrame[Any], schema: Mapping[str, Any]) -> nw.DataFrame[Any]:
    """Convert the columns whose dtype is not that of the schema."""
    wrong = {name: dtype for name, dtype in schema.items() if frame.schema[name] != dtype}
    return frame.with_columns(nw.col(name).cast(dtype) for name, dtype in wrong.items())
