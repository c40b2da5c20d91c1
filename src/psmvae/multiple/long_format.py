"""The long format of R's mice: tables stacked, with the columns ``.imp`` and ``.id`` in front."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae.multiple.complete_cases import missing_values
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


def split_tables(table: Any) -> tuple[list[Any], NDArray[np.bool_]]:
    """Return the incomplete table and the completed tables of a long table, without keys.

    Also return which cells ``(row, column)`` were imputed. The rows are in the order of the
    incomplete table.
    """
    if not nw.dependencies.is_into_dataframe(table):
        raise TypeError(
            "a long table must be a frame of pandas, polars or Arrow, got "
            f"{type(table).__name__}; a file is read first, for example by pandas.read_csv."
        )
    frame = nw.from_native(table, eager_only=True)
    absent = [name for name in (IMPUTATION, ROW) if name not in frame.columns]
    if absent:
        raise ValueError(f"a long table needs the columns '.imp' and '.id'; absent: {absent}.")
    numbers = _imputation_numbers(frame[IMPUTATION].unique().to_list())
    imputation, row = frame[IMPUTATION].to_numpy(), np.array(frame[ROW].to_list(), dtype=object)
    at = [np.flatnonzero(imputation == k) for k in numbers]
    at = [_in_order(row[at[0]], row[rows], rows, k) for k, rows in zip(numbers, at, strict=True)]
    cells = frame.drop(IMPUTATION, ROW)
    mask = _imputed_cells(cells, row[at[0]], at, numbers)
    return [reset_index(_rows_of(cells, rows)) for rows in at], mask


def _in_order(
    expected: NDArray[Any], found: NDArray[Any], rows: NDArray[np.int64], k: int
) -> NDArray[np.int64]:
    """Return the rows of imputation ``k`` in the order of the incomplete table, by ``.id``."""
    by_id, ids = dict(zip(found.tolist(), rows.tolist(), strict=True)), {*expected.tolist()}
    if len(by_id) < len(found):
        twice, n = Counter(found.tolist()).most_common(1)[0]
        raise ValueError(
            f".id = {twice} occurs {n} times in imputation {k}; .id must number the rows of each "
            "imputation."
        )
    if differing := [one for one in (*expected.tolist(), *by_id) if (one in by_id) != (one in ids)]:
        has, lacks = (k, 0) if differing[0] in by_id else (0, k)
        raise ValueError(
            f"imputations 0 and {k} differ in their rows (.id): imputation {has} has .id = "
            f"{differing[0]} and imputation {lacks} does not; {len(differing)} are in one only."
        )
    return np.array([by_id[one] for one in expected.tolist()], dtype=np.int64)


def _imputed_cells(
    cells: nw.DataFrame[Any],
    row: NDArray[Any],
    at: Sequence[NDArray[np.int64]],
    numbers: Sequence[int],
) -> NDArray[np.bool_]:
    """Return which cells ``(row, column)`` the imputations fill or change.

    Raise if an observed cell differs from the incomplete table (rows ``at[0]``), or a cell is
    filled in some imputations only. Numbers in rows with another missing number may do so: they may
    be computed from imputed cells, such as derived columns.
    """
    # cells that are missing in every imputation were not imputed, such as dates
    missing = np.stack([missing_values(cells[name]) for name in cells.columns], axis=1)
    before, after = missing[at[0]], np.stack([missing[rows] for rows in at[1:]])
    filled = before & ~after.all(0)
    numeric = np.array([dtype.is_numeric() for dtype in cells.schema.values()])
    # formulas compute numbers from numbers and truth values
    texts = [nw.String, nw.Categorical, nw.Enum]
    inputs = np.array([dtype not in texts for dtype in cells.schema.values()])
    others = (before & inputs).sum(1, keepdims=True) - before
    computed = numeric & (others > 0)
    changed = ~before & ~after
    for j, name in enumerate(cells.columns):
        values = _comparable(cells[name])
        for one, rows in zip(changed, at[1:], strict=True):
            known = one[:, j].copy()
            one[known, j] = values[rows[known]] != values[at[0][known]]
    # row names of the file, which R's write.csv and pandas' to_csv add, differ everywhere
    changed &= ~(changed.all((0, 1)) & ~computed.all(0))
    for wrong, rule in (
        (~before & after & ~computed, "Imputations keep observed cells"),
        (changed & ~computed, "Imputations keep observed cells"),
        (filled & after & ~computed, "A cell is imputed in all imputations or in none"),
    ):
        for k, i, j in np.argwhere(wrong)[:1].tolist():
            column = cells[cells.columns[j]]
            found, original = (
                f"imputation {number} {_described(column, int(rows[i]), missing[rows[i], j])}"
                for number, rows in ((numbers[k + 1], at[k + 1]), (numbers[0], at[0]))
            )
            raise ValueError(
                f"column {column.name!r}, .id = {row[i]}: {found}, {original}. {rule}; only "
                "numbers that are computed from imputed ones of the same row may differ. Such "
                f"cells: {int(wrong.sum()):,}. Write the file again with all columns."
            )
    return filled | changed.any(0)


def _described(column: nw.Series[Any], row: int, missing: bool) -> str:
    return "is missing" if missing else f"has {column[[row]].to_list()[0]!r}"


def _comparable(series: nw.Series[Any]) -> NDArray[Any]:
    """Return values that can be compared; lists and structs as texts."""
    if series.dtype.is_numeric():
        return series.to_numpy()
    values = series.to_list()
    texts = map(repr, values) if series.dtype.is_nested() else values
    return np.fromiter(texts, dtype=object, count=len(values))


def _rows_of(frame: nw.DataFrame[Any], rows: NDArray[np.int64]) -> Any:
    if is_arrow_table(native := frame.to_native()):
        from psmvae.table.frame_arrow import select_rows

        return select_rows(native, rows)
    return frame[rows].to_native()


def reset_index(table: Any) -> Any:
    """Return a pandas frame with a default index; other tables have none."""
    return table.reset_index(drop=True) if is_pandas_frame(table) else table


def _imputation_numbers(found: list[Any]) -> list[int]:
    """Return the sorted values of ``.imp`` as integers."""
    wrong = [k for k in found if not isinstance(k, int | float) or k != k or k != int(k)]
    if wrong:
        raise ValueError(f"the column '.imp' must have whole numbers, got {wrong[:5]}.")
    numbers = sorted(map(int, found))
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
