"""Kinds of whole numbers, declared orders of levels, default and given bounds."""

import json

import numpy as np
import pytest

from psmvae.kinds.bounds import model_bounds
from psmvae.table import OutOfBoundsError, Schema, UnknownLevelsError, UnlistedLevelsError
from psmvae.table.codec import Codec

pd = pytest.importorskip("pandas")
NAN = float("nan")


def fitted(values, **declared):
    table = pd.DataFrame({"a": values})
    return Codec.fit(table, **{name: {"a": what} for name, what in declared.items()})


def column(values, **declared):
    return fitted(values, **declared).schema.columns[0]


RNG = np.random.default_rng(0)
POISSON = RNG.poisson(1.0, 1000)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 2, 1, NAN], "binary"),
        ([7, 12, 7, 12], "binary"),
        # two values that are not repeated are no codes
        ([1, 2], "integer"),
        ([0, 1, 2, 3] * 5, "ordinal"),
        ([-2, -1, 0, 1, 2] * 5, "ordinal"),
        (list(range(1, 11)) * 5, "ordinal"),
        # fewer than five cells a level, a gap, too many levels, large numbers, a rare level
        ([0, 1, 2, 3] * 4, "integer"),
        ([0, 1, 3] * 10, "integer"),
        (list(range(16)) * 10, "integer"),
        ([2019, 2020, 2021] * 10, "integer"),
        ([0] * 500 + [1] * 300 + [2] * 6, "integer"),
        (POISSON, "integer"),
        ([0.5, 1, 1.5] * 10, "real"),
    ],
)
def test_whole_numbers_are_codes_or_numbers(values, kind):
    assert column(values).kind == kind


def test_codes_keep_their_values_and_types():
    table = pd.DataFrame({"sex": pd.array([1, 2, 2, 1, None], dtype="Int64")})
    codec = Codec.fit(table)
    filled = codec.fill(table, np.ones((5, 1)))
    assert filled["sex"].tolist() == [1, 2, 2, 1, 2]
    assert filled["sex"].dtype == "Int64"


def test_reasons():
    assert column([0, 1, 2, 3] * 5).reason == "whole numbers, the codes 0 to 3"
    assert column(list(range(16)) * 10).reason == "whole numbers, 16 distinct values"
    assert column(["a", "b", "c"]).reason == "text, 3 levels"
    assert column([1.5, 2.0]).reason == "numbers with fractions"
    assert column([1.5, 2.0], kinds="positive").reason == "declared"
    order = column(["lo", "hi"], kinds="ordinal:lo,mid,hi")
    assert order.reason == "declared: lo < mid < hi"


@pytest.mark.parametrize(
    "declared",
    [
        "ordinal:Low,Middle,High",
        "ordinal: Low, Middle,High",
        ("ordinal", ["Low", "Middle", "High"]),
    ],
)
def test_declared_levels_give_the_order_of_the_codes(declared):
    codec = fitted(["High", "Low", None, "High"], kinds=declared)
    (edu,) = codec.schema.columns
    assert edu.levels == ("Low", "Middle", "High")
    assert edu.shares == pytest.approx((1 / 3, 0, 2 / 3))
    table = pd.DataFrame({"a": ["High", "Low", None, "High"]})
    assert codec.encode(table).x[:, 0].tolist() == [2, 0, 0, 2]
    assert codec.fill(table, np.ones((4, 1)))["a"].tolist() == ["High", "Low", "Middle", "High"]


def test_declared_levels_of_numbers_and_bools():
    assert column([2, 1, 2], kinds="ordinal:3,2,1").levels == (3, 2, 1)
    assert column([2.0, 1.0, NAN], kinds="categorical:2,1,5").levels == (2.0, 1.0, 5.0)
    assert column([True, False], kinds="binary:true,false").levels == (True, False)
    with pytest.raises(ValueError, match=r"'a'.*numbers.*'low'"):
        column([2, 1], kinds="ordinal:low,2,1")


def test_levels_that_are_not_listed_are_named():
    with pytest.raises(UnlistedLevelsError, match=r"'a'.*'Low', 'High'.*2 observed.*'Middle'"):
        column(["Middle", "Low", "Middle", "High"], kinds="ordinal:Low,High")


@pytest.mark.parametrize(
    "declared",
    ["ordinal:", "ordinal:a,,b", "ordinal:a,a", ("ordinal", "ab"), ("ordinal", []), "real:1,2"],
)
def test_declared_levels_that_make_no_order(declared):
    with pytest.raises(ValueError, match="'a'"):
        column(["a", "b"], kinds=declared)


def test_an_unknown_code_can_be_solved_by_declaring_the_kind():
    codec = fitted([0, 1, 2, 3] * 5)
    with pytest.raises(UnknownLevelsError, match="declare it integer"):
        codec.encode(pd.DataFrame({"a": [4]}))


@pytest.mark.parametrize(
    ("values", "declared", "bounds"),
    [
        ([0.5, 3.0], {}, (0.0, None)),
        ([-0.5, 3.0], {}, (None, None)),
        (list(range(3, 19)) * 2, {}, (3.0, 18.0)),
        (list(range(-3, 13)) * 2, {}, (-3.0, 12.0)),
        # not repeated: the range of a small table is not that of the scale
        (list(range(16)), {}, (0.0, None)),
        (list(range(25)) * 4, {}, (0.0, None)),
        ([0.5, 3.0], {"bounds": (None, None)}, (None, None)),
        ([0.5, 3.0], {"bounds": (-np.inf, 5)}, (None, 5.0)),
        ([1, 3, 5], {"bounds": (0.5, 7.5)}, (1.0, 7.0)),
        ([0, 1, 2, 3] * 5, {"bounds": (0, 25)}, (0.0, 25.0)),
        ([0.5, 3.0], {"kinds": "positive"}, (0.0, None)),
    ],
)
def test_bounds(values, declared, bounds):
    found = column(values, **declared)
    assert (found.low, found.high) == bounds
    assert found.observed == (min(values), max(values))


def test_given_bounds_allow_values_between_observed_codes():
    assert column([0, 1, 2, 3] * 5, bounds=(0, 25)).kind == "integer"
    assert column([0, 1] * 5, bounds=(0, 1)).kind == "binary"


def test_observed_values_outside_the_bounds_are_named():
    with pytest.raises(OutOfBoundsError, match=r"'a'.*\(0, 25\).*2 observed.*-1, 30"):
        column([30.0, -1.0, 7.5], bounds=(0, 25))
    with pytest.raises(ValueError, match=r"'a'.*strings"):
        column(["x", "y"], bounds=(0, 25))
    with pytest.raises(OutOfBoundsError, match=r"\(-inf, 2\).*: 3"):
        column([1, 2, 3], kinds="ordinal", bounds=(None, 2))


def test_points_are_clipped():
    table = pd.DataFrame({"a": [1.0, 2.5, NAN, NAN]})
    filled = Codec.fit(table, bounds={"a": (0, 3)}).fill(table, [[0], [0], [-9], [9]])
    assert filled["a"].tolist() == [1.0, 2.5, 0.0, 3.0]


def test_bounds_in_model_units():
    real = column([1.5, 2.0, 6.0], bounds=(0, 10))
    low, high = model_bounds(real)
    assert real.center + real.scale * np.array([low, high]) == pytest.approx([0, 10])
    whole = column([1, 2, 6, 9], bounds=(0, None))
    low, high = model_bounds(whole)
    # what rounds to 0 is allowed
    assert whole.center + whole.scale * low == pytest.approx(-0.5)
    assert high == np.inf
    positive = column([1.0, 2.0, 6.0], kinds="positive", bounds=(0, 10))
    low, high = model_bounds(positive)
    assert low == -np.inf
    assert np.exp(positive.center + positive.scale * high) == pytest.approx(10)
    assert model_bounds(column([3, 7], kinds="count", bounds=(2, 8))) == (1.5, 8.5)
    assert model_bounds(column(["x", "y"])) == (-np.inf, np.inf)


def test_bounds_are_stored():
    schema = fitted([1.5, 2.5], bounds=(0, np.inf)).schema
    assert Schema.from_json(json.loads(json.dumps(schema.to_json(), allow_nan=False))) == schema
