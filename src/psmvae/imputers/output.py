"""Conversion of imputed tables to the container of scikit-learn's ``set_output``."""

from __future__ import annotations

from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from psmvae.table.frames import open_table
from psmvae.table.schema import Schema


def in_container(table: Any, container: Literal["pandas", "polars"], schema: Schema) -> Any:
    """Convert to a "pandas" or "polars" frame with its dtypes, columns in the order of `fit`.

    scikit-learn then overwrites the column names, so their order must be that of `fit`. Arrays of
    numbers are left to scikit-learn's own conversion.
    """
    if isinstance(table, np.ndarray):
        if table.dtype != object:
            return table
        columns = {name: table[:, j].tolist() for j, name in enumerate(schema.names)}
        return nw.from_dict(columns, backend=container).to_native()
    names = open_table(table).names
    order = list(range(len(names)))
    if set(names) == set(schema.names):
        order = [names.index(name) for name in schema.names]
    if nw.dependencies.is_pandas_dataframe(table):
        return table.iloc[:, order]
    frame = nw.from_native(table, eager_only=True)[:, order]
    return frame.to_pandas() if container == "pandas" else frame.to_polars()
