"""Inferred and declared kinds, and the schema as JSON."""

import json
from decimal import Decimal

import numpy as np
import pytest

from psmvae.kinds import Column
from psmvae.table import Schema
from psmvae.table.codec import Codec
from psmvae.table.frames import open_table
from psmvae.table.inference import infer_kind
from psmvae.table.schema import MAX_LEVELS

pd = pytest.importorskip("pandas")

NAN = float("nan")


def fitted(values, kind=None):
    table = pd.DataFrame({"a": values})
    return Codec.fit(table, kinds=None if kind is None else {"a": kind}).schema.columns[0]


@pytest.mark.parametrize(
    ("values", "kind", "levels"),
    [
        ([True, False], "binary", (False, True)),
        ([True, True], "binary", (False, True)),
        (pd.Series([True, None], dtype=object), "binary", (False, True)),
        (pd.array([True, None], dtype="boolean"), "binary", (False, True)),
        (["b", "a", None], "binary", ("a", "b")),
        (pd.Series(["b", "a", None], dtype=object), "binary", ("a", "b")),
        (["b", "b"], "categorical", ("b",)),
        (["c", "a", "b"], "categorical", ("a", "b", "c")),
        (
            pd.Categorical(["c", "a", "b", None], categories=list("bcad")),
            "categorical",
            tuple("bca"),
        ),
        (pd.Categorical([3, 1, None]), "binary", (1, 3)),
        ([0, 1, 1], "binary", (0, 1)),
        ([0.0, 1.0, NAN], "binary", (0.0, 1.0)),
        ([-0.0, 1.0, NAN], "binary", (0.0, 1.0)),
        ([0, 0], "integer", ()),
        ([1, 1], "integer", ()),
        ([1, 2], "integer", ()),
        ([1.0, 2.0, NAN], "integer", ()),
        ([1.0, 2.5], "real", ()),
        ([0.0, 0.5], "real", ()),
        ([1e20, 3e25], "real", ()),
        (pd.array([1, 2, None], dtype="Int8"), "integer", ()),
        (pd.Series([1, 2, None], dtype=object), "integer", ()),
        (pd.Series([1, 2.5, None], dtype=object), "real", ()),
        (pd.Series([Decimal(1), None]), "real", ()),
    ],
)
def test_inferred_kind_and_levels(values, kind, levels):
    column = fitted(values)
    assert (column.kind, column.levels) == (kind, levels)
    assert [type(level) for level in column.levels] == [type(level) for level in levels]


def test_minus_zero_is_the_level_zero():
    assert str(fitted([-0.0, 1.0]).levels[0]) == "0.0"


@pytest.mark.parametrize(
    ("values", "declared", "levels"),
    [
        ([3, 1, 2], "categorical", (1, 2, 3)),
        ([3.5, 1.5, NAN], "binary", (1.5, 3.5)),
        ([7, 7], "binary", (7,)),
        ([2**62, 2**62 + 1], "categorical", (2**62, 2**62 + 1)),
        ([1, 2], "real", ()),
        ([0, 1], "integer", ()),
        ([True, False], "real", ()),
    ],
)
def test_declared_kind(values, declared, levels):
    column = fitted(values, declared)
    assert (column.kind, column.levels) == (declared, levels)


@pytest.mark.parametrize(
    ("values", "declared", "words"),
    [
        ([1, 2, 3], "binary", ["'a'", "3 levels"]),
        (["x", "y"], "real", ["'a'", "strings", "real"]),
        (["x", "y"], "integer", ["'a'", "strings", "integer"]),
        ([1.0, 2.5, 3.5], "integer", ["'a'", "2 of 3", "whole"]),
        ([1.0], "gaussian", ["'gaussian'", "'a'", "'real'", "'categorical'"]),
        ([1.0], ["real"], ["['real']", "'a'"]),
    ],
)
def test_declared_kind_that_does_not_fit_raises(values, declared, words):
    with pytest.raises(ValueError) as caught:
        fitted(values, declared)
    assert all(word in str(caught.value) for word in words)


def test_declared_kind_of_an_unknown_column_raises():
    with pytest.raises(ValueError, match=r"unknown columns 'b'.*'a'"):
        Codec.fit(pd.DataFrame({"a": [1]}), kinds={"b": "real"})


def test_declared_kind_of_an_integer_label():
    schema = Codec.fit(pd.DataFrame({7: [1.0, 2.0]}), kinds={7: "real"}).schema
    assert (schema.columns[0].name, schema.columns[0].kind) == ("7", "real")


def test_too_many_levels():
    with pytest.raises(ValueError, match=r"'a'.*1001 levels.*identifier"):
        fitted([f"id{i}" for i in range(MAX_LEVELS + 1)])


def test_column_statistics():
    column = fitted([1.0, 3.0, NAN, 5.5])
    assert column.dtype == "Float64"
    assert column.n_observed == 3
    assert column.center == pytest.approx(np.mean([1, 3, 5.5]))
    assert column.scale == pytest.approx(np.std([1, 3, 5.5]))


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [(float, "real"), ("Int64", "integer"), ("boolean", "binary"), ("string", "categorical")],
)
def test_kind_of_an_empty_column_follows_its_type(dtype, kind):
    frame = open_table(pd.DataFrame({"a": pd.Series([None, None], dtype=dtype)}))
    assert infer_kind(frame.cells(0)) == (kind, "no observed value")


def test_json_round_trip_keeps_the_types_of_levels():
    levels = [("a", "ü"), (0, 1), (0.0, 1.5), (False, True)]
    columns = [Column(f"c{i}", "categorical", "?", 2, 0.1, 1 / 3, x) for i, x in enumerate(levels)]
    schema = Schema(tuple(columns))
    again = Schema.from_json(json.loads(json.dumps(schema.to_json(), allow_nan=False)))
    assert again == schema
    types = [[type(level) for level in column.levels] for column in again.columns]
    assert types == [[type(level) for level in x] for x in levels]


def test_schema_of_a_codec_is_json():
    table = pd.DataFrame(
        {"a": np.array([1, 0], dtype=np.int8), "b": ["x", "y"], "c": [True, False]}
    )
    schema = Codec.fit(table).schema
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


@pytest.mark.parametrize("data", [{}, {"columns": [{"nom": 1}]}, {"columns": [3]}])
def test_invalid_json_raises(data):
    with pytest.raises(ValueError, match="not the JSON of a schema"):
        Schema.from_json(data)


def test_json_with_an_unknown_kind_raises():
    schema = Schema((Column("a", "spherical", "Float64", 1),))
    with pytest.raises(ValueError, match=r"'spherical'.*'real'"):
        Schema.from_json(schema.to_json())
