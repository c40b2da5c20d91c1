"""Tables that cannot be used say why, in words about the table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psmvae
from psmvae.table import TableError, read_table
from psmvae.table.errors import UnsupportedColumnError


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (",\n1,2\n", "columns 1, 2 have no name"),
        ("a,,\n1,2,3\n", "columns 2, 3 have no name"),
        ("\n1\n2\n", "the first line is empty"),
        ("\na,b\n1,2\n", "the first line is empty|have no name|line 1"),
    ],
)
def test_a_header_without_names(tmp_path, text, match):
    (tmp_path / "t.csv").write_text(text)
    if text.startswith("\na,b"):
        # an empty line before the names is skipped
        assert read_table(tmp_path / "t.csv").column_names == ["a", "b"]
        return
    with pytest.raises(TableError, match=match):
        read_table(tmp_path / "t.csv")


def test_one_column_without_a_name(tmp_path):
    """As pandas writes an index."""
    (tmp_path / "t.csv").write_text(",a\n0,1\n1,2\n")
    assert read_table(tmp_path / "t.csv").column_names == ["", "a"]


def test_parquet_without_columns(tmp_path):
    pq.write_table(pa.table({"a": [1, 2]}).select([]), tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"t\.parquet: the file has no columns"):
        read_table(tmp_path / "t.parquet")


def test_a_plus_sign(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c,d\n+1,+1.5,+01,+\n-3,2,5,x\n,,,\n")
    table = read_table(tmp_path / "t.csv")
    assert table["a"].to_pylist() == [1, -3, None]
    assert table["b"].to_pylist() == [1.5, 2.0, None]
    assert table["c"].to_pylist() == ["+01", "5", None]
    assert table["d"].to_pylist() == ["+", "x", None]


@pytest.mark.parametrize(("name", "large"), [("MICEImputer", 1e160), ("MissForestImputer", 1e39)])
def test_large_numbers_that_are_not_standardised(name, large):
    x = np.random.default_rng(0).normal(size=(20, 3))
    x[0, 0] = np.nan
    table = pd.DataFrame(x, columns=["a", "b", "c"])
    imputer = getattr(psmvae, name)(standardise=False, max_iter=1)
    with pytest.raises(ValueError, match="column 'b' holds numbers as large as"):
        imputer.fit(table.assign(b=table["b"] * large))
    imputer.fit(table)
    with pytest.raises(ValueError, match="column 'b' holds numbers as large as"):
        imputer.transform(table.assign(b=table["b"] * large))


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long double is float64 here")
def test_long_doubles():
    values = np.array([1, 2, 3, 1, 2, 3], dtype=np.longdouble)
    for table in (pd.DataFrame({"c": values}), values[:, None]):
        with pytest.raises(UnsupportedColumnError, match=r"'(c|x0)' is of type .*float64"):
            psmvae.MeanImputer().fit(table)


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="this polars has no Int128")
def test_output_that_cannot_hold_a_column():
    frame = pl.DataFrame({"c": [1, None, 3], "y": [1.0, 2.0, 3.0]})
    frame = frame.with_columns(pl.col("c").cast(pl.Int128))
    imputer = psmvae.MeanImputer().set_output(transform="pandas").fit(frame)
    with pytest.raises(TypeError, match=r"set_output.*'c' \(Int128\)"):
        imputer.transform(frame)
