"""Categorical data types keep their categories, whatever is declared for their columns."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import psmvae
from psmvae.table.codec import Codec
from psmvae.table.errors import ContentMismatchError, FormulaError, KindMismatchError

VALUES = {
    "int": [1, 2, 3, 5, 8, None],
    "float": [1.5, 2.5, 4.0, 8.0, 9.0, None],
    "bool": [True, False, True, False, True, None],
}


def pandas_table(values):
    return pd.DataFrame({"c": pd.Categorical(values), "y": np.arange(len(values))})


def arrow_table(values):
    return pa.table(
        {"c": pa.array(values).dictionary_encode(), "y": pa.array(np.arange(len(values)))}
    )


TABLES = {"pandas": pandas_table, "arrow": arrow_table}


def items(table):
    column = table["c"]
    return column.to_pylist() if isinstance(table, pa.Table) else column.tolist()


@pytest.fixture(params=TABLES)
def make(request):
    return TABLES[request.param]


@pytest.mark.parametrize("kind", ["real", "integer", "positive", "count"])
@pytest.mark.parametrize("content", VALUES)
def test_categories_are_not_declared_numeric(make, content, kind):
    with pytest.raises(KindMismatchError, match=r"'c' is declared .* categorical data type"):
        Codec.fit(make(VALUES[content]), kinds={"c": kind})


@pytest.mark.parametrize("kind", ["ordinal", "categorical", None])
@pytest.mark.parametrize("content", VALUES)
def test_categories_are_levels(make, content, kind):
    table = make(VALUES[content])
    codec = Codec.fit(table, kinds={"c": kind} if kind else {})
    filled = items(codec.fill(table, np.zeros((6, 2))))
    assert filled[:5] == VALUES[content][:5]
    assert type(filled[5]) is type(VALUES[content][0])


def test_numbers_at_fit_and_categories_now(make):
    codec = Codec.fit(pd.DataFrame({"c": [1.0, 2.5, np.nan, 4.0], "y": range(4)}))
    with pytest.raises(ContentMismatchError, match=r"'c' was fitted on numbers.*categories"):
        codec.encode(make(VALUES["int"]))


@pytest.mark.parametrize(
    ("fitted", "now", "expected"),
    [
        ([1.0, 2.0, 3.0], [1, 2, None], 1),
        ([True, False, True], [1, 0, None], 0),
        ([1, 2, 3], [1.0, 2.0, None], 1.0),
    ],
)
def test_equal_levels_of_another_type(make, fitted, now, expected):
    codec = Codec.fit(pd.DataFrame({"c": pd.Categorical(fitted), "y": range(3)}))
    filled = items(codec.fill(make(now), np.zeros((3, 2))))
    assert filled == [*now[:2], expected]
    assert type(filled[2]) is type(now[0])


def test_a_level_that_is_no_category_of_this_type(make):
    """Otherwise whole numbers would become floats, or the level be truncated."""
    codec = Codec.fit(pd.DataFrame({"c": pd.Categorical([1.5, 2.0, 3.0]), "y": range(3)}))
    with pytest.raises(ContentMismatchError, match=r"'c' was fitted on numbers \(such as 1.5\)"):
        codec.fill(make([2, 3, None]), np.zeros((3, 2)))


def test_a_derived_column_is_not_categorical(make):
    with pytest.raises(FormulaError, match="categorical data type"):
        Codec.fit(make(VALUES["int"]), derived={"c": "y + 1"})


def test_categories_beyond_int64(make, tmp_path):
    values = [2**63 + 1, 2**63 + 5, 2**63 + 9, None] * 3
    table = (
        pa.table({"c": pa.array(values, pa.uint64()).dictionary_encode(), "y": np.arange(12.0)})
        if make is arrow_table
        else pd.DataFrame({"c": pd.Categorical(pd.array(values, dtype="UInt64")), "y": range(12)})
    )
    imputer = psmvae.MeanImputer().fit(table)
    filled = items(imputer.transform(table))
    assert [one for one, old in zip(filled, values, strict=True) if old] == values[:3] * 3
    assert set(filled) == set(values[:3])
    imputer.save(tmp_path / "m.safetensors")
    assert items(psmvae.load(tmp_path / "m.safetensors").transform(table)) == filled


def test_arrow_dictionaries_with_nulls_in_several_chunks():
    first = pa.DictionaryArray.from_arrays([0, 1, 2, 0], pa.array(["x", "y", None]))
    index = pa.array([1, 0, 2, None])
    second = pa.DictionaryArray.from_arrays(index, pa.array(["z", None, "x"]))
    table = pa.table({"c": pa.chunked_array([first, second]), "y": pa.array(range(8))})
    before = ["x", "y", None, "x", None, "z", "x", None]
    assert table["c"].to_pylist() == before
    codec = Codec.fit(table)
    assert codec.schema.columns[0].levels == ("x", "y", "z")
    filled = codec.fill(table, np.full((8, 2), 2.0))["c"]
    assert filled.to_pylist() == ["z" if one is None else one for one in before]
    assert filled.type == table["c"].type


# in another order than the alphabet's, with two levels that the new table lacks
FITTED = ["low", "middle", "high", "very high"]


def fitted_codec():
    """A codec of a column with four ordered levels."""
    values = pd.Categorical(FITTED * 2, categories=FITTED, ordered=True)
    return Codec.fit(pd.DataFrame({"c": values, "y": range(8)}))


def lacking(library, categories):
    """A table whose categories are some of the fitted levels; two cells are missing."""
    values = ["high", "low", None, None]
    if library == "polars":
        return pl.DataFrame({"c": pl.Series(values, dtype=pl.Enum(categories)), "y": range(4)})
    frame = pd.DataFrame(
        {"c": pd.Categorical(values, categories=categories, ordered=True), "y": range(4)}
    )
    return frame if library == "pandas" else pa.Table.from_pandas(frame)


def categories_of(table):
    column = table["c"]
    if isinstance(table, pa.Table):
        return column.chunk(0).dictionary.to_pylist()
    categories = (
        column.cat.categories if isinstance(table, pd.DataFrame) else column.dtype.categories
    )
    return list(categories)


@pytest.mark.parametrize("library", ["pandas", "arrow", "polars"])
@pytest.mark.parametrize("codes", [(3, 1), (1, 3), (0, 1), (3, 3)])
def test_added_categories_are_those_of_the_fitted_column(library, codes):
    """In one order, whatever was drawn, and also those that were not drawn."""
    x = np.zeros((4, 2))
    x[2:, 0] = codes
    filled = fitted_codec().fill(lacking(library, ["low", "high"]), x)
    assert categories_of(filled) == ["low", "high", "middle", "very high"]
    expected = ["high", "low", *(FITTED[code] for code in codes)]
    assert list(items(filled) if library != "polars" else filled["c"]) == expected


@pytest.mark.parametrize("library", ["pandas", "arrow", "polars"])
def test_categories_that_lack_no_level_stay_as_they_are(library):
    """Also if they have another order, and levels that were never seen."""
    own = ["none", "very high", "high", "middle", "low"]
    table = lacking(library, own)
    filled = fitted_codec().fill(table, np.full((4, 2), 1.0))
    assert categories_of(filled) == own
    before, after = (
        one.schema.field("c").type if library == "arrow" else one["c"].dtype
        for one in (table, filled)
    )
    assert before == after


def test_imputations_have_the_same_categories():
    rng = np.random.default_rng(0)
    levels = list("dcba")
    frame = pd.DataFrame({"y": rng.normal(size=200)})
    frame["c"] = pd.Categorical(rng.choice(levels, 200), categories=levels, ordered=True)
    new = pd.DataFrame({"y": rng.normal(size=12), "c": pd.Categorical(["b", "d"] + [None] * 10)})
    imputer = psmvae.MICEImputer(random_state=0).fit(frame)
    mi = imputer.impute_multiple(new, m=10)
    assert {tuple(table["c"].cat.categories) for table in mi} == {("b", "d", "c", "a")}
    shifted = mi.shift({"c": "odds of a × 2"})
    assert {tuple(table["c"].cat.categories) for table in shifted} == {("b", "d", "c", "a")}
