"""Read and write tables: CSV, TSV, Parquet, Feather. The extension gives the format."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from psmvae.table.errors import OutputExistsError, TableError
from psmvae.table.paths import SEPARATORS, atomic_path, check_output, check_source, extension
from psmvae.table.wording import repeated


def read_table(path: str | os.PathLike[str], *, na: Sequence[str] = ()) -> Any:
    r"""Read a table from a file.

    Parameters
    ----------
    path : path
        A .csv, .tsv (also .gz), .parquet, .feather or .arrow file.
    na : sequence of str
        Codes of missing cells, beside the empty cell and (in text files) NA, N/A, n/a, #N/A, #NA,
        <NA>, NaN, nan, -NaN, -nan, null, NULL and None. They are compared with the text of cells
        in a text file, and with the values in other files.

    Returns
    -------
    pyarrow.Table
        Integers with leading zeros, as in 007, are kept as strings.

    Raises
    ------
    TableError
        If the file cannot be read. The message has the file, the reason and the line if known.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_text("age,sex\n31,f\n-999,NA\n")
    ...     read_table(path, na=["-999"]).to_pydict()
    {'age': [31, None], 'sex': ['f', None]}
    """
    source, ending = _source(path)
    if ending in SEPARATORS:
        text = read_text(path)
        from psmvae.table.text_types import infer_types, mark_missing

        return infer_types(mark_missing(text, na))
    # a single string is one code, not one for each of its letters
    return mark_values(_read_binary(source, ending), [na] if isinstance(na, str) else list(na))


def read_text(path: str | os.PathLike[str]) -> Any:
    """Read the text of each cell of a CSV or TSV file."""
    source, ending = _source(path)
    if ending not in SEPARATORS:
        raise TableError(f"{path}: not a text file; expected one of {', '.join(SEPARATORS)}")
    _pyarrow()
    from psmvae.table.text import parse_text

    return parse_text(source, SEPARATORS[ending])


def write_table(
    table: Any,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    inputs: Sequence[str | os.PathLike[str]] = (),
) -> None:
    """Write a table to a file. If it fails, the path is left as it was.

    Parameters
    ----------
    table : pyarrow.Table or DataFrame
        The table. The index of a pandas frame is not written; ``reset_index()`` makes columns of
        it.
    path : path
        The output file; the extension gives the format.
    force : bool, default=False
        Whether an existing file may be replaced.
    inputs : sequence of paths
        Files that must not be replaced.

    Raises
    ------
    TableError
        If `check_output` refuses the path, or the table cannot be written in this format.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     write_table(pa.table({"a": [1.5, None], "b": ["x", "y, z"]}), path)
    ...     print(path.read_text())
    a,b
    1.5,x
    ,"y, z"
    """
    pa = _pyarrow()
    from psmvae.table.text import as_arrow

    check_output(path, force=force, inputs=inputs)
    try:
        content = as_arrow(table)
        with atomic_path(path, replace=force) as temporary:
            _write(content, temporary, extension(path))
    except FileExistsError as error:
        # taken since the check
        raise OutputExistsError(path) from error
    except (pa.ArrowException, OSError, TableError) as error:
        raise _not_written(path, error) from error


def check_format(table: Any, path: str | os.PathLike[str]) -> None:
    """Raise if a column of an Arrow table cannot be written to a file; call it before long work.

    The first row is written to memory.
    """
    pa = _pyarrow()
    errors, ending = (pa.ArrowException, TableError), extension(path)
    try:
        _write(table.slice(0, 1), io.BytesIO(), ending)
    except errors:
        for name in table.column_names:
            try:
                _write(table.select([name]).slice(0, 1), io.BytesIO(), ending)
            except errors as error:
                raise _not_written(path, error, column=name) from error
        raise


def _write(table: Any, file: Path | io.BytesIO, ending: str) -> None:
    if ending in SEPARATORS:
        from psmvae.table.text import write_text

        write_text(table, file, SEPARATORS[ending], compress=ending.endswith(".gz"))
    elif ending == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, file)
    else:
        import pyarrow.feather as feather

        feather.write_feather(table, str(file) if isinstance(file, Path) else file)


def _not_written(
    path: str | os.PathLike[str], error: Exception, column: str | None = None
) -> TableError:
    reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
    where = "" if column is None else f"column {column!r}: "
    return TableError(f"{path}: cannot be written: {where}{reason}")


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        message = "reading and writing files needs pyarrow: pip install 'psmvae[io]'"
        raise ImportError(message) from error
    return pa


def _source(path: str | os.PathLike[str]) -> tuple[Path, str]:
    return check_source(path), extension(path)


def _read_binary(path: Path, ending: str) -> Any:
    pa = _pyarrow()
    try:
        table = _read_parquet(path) if ending == ".parquet" else _read_feather(path)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise TableError(f"{path}: not a readable {ending} file: {reason}") from error
    if not table.column_names:
        raise TableError(f"{path}: the file has no columns")
    if twice := ", ".join(repeated(table.column_names)):
        raise TableError(f"{path}: column names must be unique, these occur twice: {twice}")
    return table


def _read_parquet(path: Path) -> Any:
    import pyarrow.parquet as pq

    # a single file, not a data set: folder names like a=1 do not become columns
    with pq.ParquetFile(path) as file:
        return file.read()


def _read_feather(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.feather as feather

    try:
        return feather.read_table(str(path), memory_map=False)
    except pa.ArrowInvalid:
        # .arrow is also the extension of streams, which have no footer
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
            return stream.read_all()


def mark_values(table: Any, na: Sequence[str], keep: Collection[str] = ()) -> Any:
    """Return the table with nulls where a string is in `na`, or a number equals one in `na`.

    Columns in `keep` are left as they are.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from psmvae.table.nulls import is_string_type, set_null

    numbers = []
    for code in na:
        with suppress(ValueError):
            numbers.append(float(code))
    if not na:
        return table
    fields, columns = list(table.schema), list(table.columns)
    for position, field in enumerate(fields):
        kind, values = field.type, table[position]
        if field.name in keep:
            continue
        if pa.types.is_dictionary(kind):
            kind, values = kind.value_type, values.cast(kind.value_type)
        if is_string_type(kind):
            missing = pc.is_in(values.cast(pa.large_string()), pa.array(na, pa.large_string()))
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            missing = pc.is_in(values.cast(pa.float64(), safe=False), pa.array(numbers))
        else:
            continue
        column = set_null(table[position], missing)
        fields[position], columns[position] = field.with_nullable(True), column
    schema = pa.schema(fields, metadata=table.schema.metadata)
    return pa.Table.from_arrays(columns, schema=schema)
