"""Filled tables in the container that scikit-learn's ``set_output`` asks for."""

from __future__ import annotations

from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from psmvae.table.frames import open_table
from psmvae.table.schema import Schema


def in_container(table: Any, container: Literal["pandas", "polars"], schema: Schema) -> Any:
    """The table as a "pandas" or "polars" frame with its data types, columns in the order of fit.

    scikit-learn then only writes the names over the columns, so their order must be right; what it
    converts well by itself is left to it.
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
