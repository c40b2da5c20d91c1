"""The library of a table, without importing it.

The functions of ``narwhals.dependencies`` warn if they are called with a narwhals frame.
"""

from __future__ import annotations

import sys
from typing import Any


def is_pandas_frame(table: Any) -> bool:
    """Whether a table is a pandas frame."""
    return _is_instance(table, "pandas", "DataFrame")


def is_pandas_series(values: Any) -> bool:
    """Whether an object is a pandas Series."""
    return _is_instance(values, "pandas", "Series")


def is_lifelines_cox(fitter: Any) -> bool:
    """Whether an object is the fitter of Cox models of lifelines."""
    return _is_instance(fitter, "lifelines", "CoxPHFitter")


def is_statsmodels_cox(model: Any) -> bool:
    """Whether an object is a Cox model of statsmodels."""
    return _is_instance(model, "statsmodels.duration.hazard_regression", "PHReg")


def is_polars_frame(table: Any) -> bool:
    """Whether a table is a polars frame, not a lazy one."""
    return _is_instance(table, "polars", "DataFrame")


def is_polars_lazy_frame(table: Any) -> bool:
    """Whether a table is a lazy frame of polars."""
    return _is_instance(table, "polars", "LazyFrame")


def is_arrow_table(table: Any) -> bool:
    """Whether a table is one of Arrow."""
    return _is_instance(table, "pyarrow", "Table")


def _is_instance(table: Any, library: str, name: str) -> bool:
    # a class is absent while another thread imports its library
    return isinstance(table, getattr(sys.modules.get(library), name, ()))
