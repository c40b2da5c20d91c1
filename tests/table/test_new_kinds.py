"""Positive, count and ordinal columns in tables."""

import json
from dataclasses import replace

import numpy as np
import pytest

from psmvae.table import Schema
from psmvae.table.codec import Codec
from psmvae.table.declared import DeclaredKind
from psmvae.table.frames import open_table
from psmvae.table.inference import infer_kind
from psmvae.table.schema import make_column

KINDS = {"price": "positive", "visits": "count", "grade": "ordinal"}
CELLS = {
    "price": [0.5, None, 120.0, 3e-12, 7e11],
    "visits": [0, 3, None, 1_000_000, 2],
    "grade": ["c", "a", "b", None, "b"],
}


def cells_of(frame, name):
    """Python objects, whatever the library."""
    column = frame[name]
    return column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()


def test_model_values_are_restored(make):
    table = make(CELLS)
    codec = Codec.fit(table, kinds=KINDS)
    assert [column.kind for column in codec.schema.columns] == list(KINDS.values())
    encoded = codec.encode(table)
    seen = [[cell is not None for cell in column] for column in CELLS.values()]
    assert encoded.m.T.tolist() == seen
    holes = make({name: [None if j else CELLS[name][0]] * 5 for j, name in enumerate(CELLS)})
    filled = codec.fill(holes, encoded.x)
    for name in ("visits", "grade"):
        pairs = zip(cells_of(filled, name), CELLS[name], strict=True)
        assert all(new == old for new, old in pairs if old is not None)
    holes = make({"price": [None] * 5, "visits": [1] * 5, "grade": ["a"] * 5})
    again = cells_of(codec.fill(holes, encoded.x), "price")
    for new, old in zip(again, CELLS["price"], strict=True):
        assert old is None or new == pytest.approx(old, rel=1e-4)


def test_filled_values_are_in_the_domain_of_the_kind(make):
    table = make(CELLS)
    codec = Codec.fit(table, kinds=KINDS)
    for x in (-1e3, -0.4, 0.0, 2.4, 1e3):
        filled = codec.fill(table, np.full((5, 3), x))
        for name, cells in CELLS.items():
            pairs = list(zip(cells_of(filled, name), cells, strict=True))
            assert all(new == old for new, old in pairs if old is not None)
        assert cells_of(filled, "price")[1] > 0
        assert cells_of(filled, "visits")[2] == max(round(x), 0)
        assert cells_of(filled, "grade")[3] in ("a", "b", "c")


def test_json_round_trip(make):
    schema = Codec.fit(make(CELLS), kinds=KINDS).schema
    again = Schema.from_json(json.loads(json.dumps(schema.to_json(), allow_nan=False)))
    assert again == schema
    assert again.columns[2].shares == (0.25, 0.5, 0.25)


def test_json_without_shares():
    old = {"name": "a", "kind": "real", "dtype": "Float64", "n_observed": 3, "levels": []}
    assert Schema.from_json({"columns": [old]}).columns[0].shares == ()


def test_column_statistics():
    values = [1.0, 2.0, 8.0, None]
    positive, count, ordinal = (
        make_column(open_table([[v] for v in values]).cells(0), DeclaredKind(kind))
        for kind in ("positive", "count", "ordinal")
    )
    seen = np.array([1.0, 2.0, 8.0])
    for column, transformed in ((positive, np.log(seen)), (count, np.log1p(seen))):
        assert column.center == pytest.approx(transformed.mean())
        assert column.scale == pytest.approx(transformed.std())
        assert column.mean == pytest.approx(seen.mean())
        assert column.deviation == pytest.approx(seen.std())
    assert ordinal.levels == (1.0, 2.0, 8.0)
    assert (ordinal.mean, ordinal.deviation) == (pytest.approx(1), pytest.approx(np.std([0, 1, 2])))


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        ([1.0, 0.0, -2.0, None], "positive", ["'a'", "positive", "2 of 3", "numbers above 0"]),
        ([1.0, -1.0, None], "count", ["'a'", "count", "1 of 2", "whole numbers from 0"]),
        ([1.0, 2.5, 0.5], "count", ["'a'", "2 of 3", "such as 2.5"]),
        (["x", "y"], "positive", ["'a'", "strings", "positive"]),
        (["x", "y"], "count", ["'a'", "strings", "count"]),
    ],
)
def test_fit_raises_for_values_outside_the_domain(make, values, kind, words):
    with pytest.raises(ValueError) as caught:
        Codec.fit(make({"a": values}), kinds={"a": kind})
    assert all(word in str(caught.value) for word in words)


def test_encode_raises_for_values_outside_the_domain(make):
    codec = Codec.fit(
        make({"p": [1.0, 2.5], "n": [1.0, 2.0]}), kinds={"p": "positive", "n": "count"}
    )
    with pytest.raises(ValueError, match=r"'p' is declared positive but 1 of 2"):
        codec.encode(make({"p": [1.0, 0.0], "n": [1.0, 2.0]}))
    with pytest.raises(ValueError, match=r"'n' is declared count but 1 of 1"):
        codec.encode(make({"p": [1.0, 2.0], "n": [1.5, None]}))


def test_bools_can_be_declared_count():
    codec = Codec.fit([[True], [False], [None]], kinds={"x0": "count"})
    assert codec.encode([[True], [False]]).x.tolist() == [[1.0], [0.0]]


def test_counts_have_their_own_limit():
    table = np.array([[0.0], [3e7], [np.nan]])
    assert Codec.fit(table, kinds={"x0": "count"}).encode(table).x.max() == 3e7


def test_order_of_ordinal_levels():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    order = ["low", "mid", "high"]
    category = pd.DataFrame({"a": pd.Categorical(["high", "low", "mid"], order, ordered=True)})
    enum = pl.DataFrame({"a": pl.Series(["high", "low", "mid"], dtype=pl.Enum(order))})
    for table in (category, enum):
        column = Codec.fit(table, kinds={"a": "ordinal"}).schema.columns[0]
        assert column.levels == ("low", "mid", "high")
    assert Codec.fit([["b"], ["a"]], kinds={"x0": "ordinal"}).schema.columns[0].levels == ("a", "b")
    assert Codec.fit([[10], [9]], kinds={"x0": "ordinal"}).schema.columns[0].levels == (9, 10)


@pytest.mark.parametrize(
    ("levels", "ordered", "kind"),
    [
        ("abc", True, "ordinal"),
        ("abc", False, "categorical"),
        ("ab", True, "binary"),
        ("a", True, "categorical"),
    ],
)
def test_ordered_dtype_with_more_than_two_levels_is_ordinal(levels, ordered, kind):
    pd = pytest.importorskip("pandas")
    cells = open_table(pd.DataFrame({"a": pd.Categorical(list(levels))})).cells(0)
    assert infer_kind(replace(cells, ordered=ordered)).kind == kind


def test_enum_is_categorical_unless_declared_ordinal():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"a": pl.Series(list("abc"), dtype=pl.Enum(list("abc")))})
    assert Codec.fit(table).schema.columns[0].kind == "categorical"


def test_ordered_category_stays_ordered():
    pd = pytest.importorskip("pandas")
    column = pd.Categorical(["lo", None, "hi", "mid"], ["lo", "mid", "hi"], ordered=True)
    table = pd.DataFrame({"a": column})
    filled = Codec.fit(table, kinds={"a": "ordinal"}).fill(table, np.ones((4, 1)))
    assert filled["a"].tolist() == ["lo", "mid", "hi", "mid"]
    assert filled["a"].dtype == table["a"].dtype


@pytest.mark.parametrize("kind", ["positive", "count", "ordinal"])
@pytest.mark.parametrize("values", [[5.0], [5.0, 5.0, 5.0, None]])
def test_constant_column_is_restored(kind, values):
    table = np.array([[v] for v in values], dtype=float)
    codec = Codec.fit(table, kinds={"x0": kind})
    encoded = codec.encode(table)
    assert np.isfinite(encoded.x).all()
    again = codec.fill(np.full_like(table, np.nan), np.full(table.shape, encoded.x[0, 0]))
    assert again == pytest.approx(np.full(table.shape, 5.0))


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e12, 1e300])
def test_positive_values_of_any_size(size):
    table = size * np.array([[1.0], [2.0], [30.0], [np.nan]])
    codec = Codec.fit(table, kinds={"x0": "positive"})
    filled = codec.fill(table, np.zeros((4, 1)))
    assert filled[3, 0] == pytest.approx(size * 60 ** (1 / 3))


def test_column_without_observed_cells_keeps_its_declared_kind():
    table = np.array([[np.nan, 1.0], [np.nan, 2.0]])
    with pytest.warns(UserWarning, match="nothing observed"):
        schema = Codec.fit(table, kinds={"x0": "count"}).schema
    assert schema.columns[0].kind == "count"
    assert Schema.from_json(schema.to_json()) == schema
