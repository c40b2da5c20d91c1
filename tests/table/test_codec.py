"""Codec: what goes in, what comes out, and what is refused."""

import datetime as dt
import subprocess
import sys
import tracemalloc
import warnings
from decimal import Decimal

import numpy as np
import pytest

from psmvae.kinds.base import X_LIMIT
from psmvae.table import Codec, Encoded

NAN = float("nan")


def cells_of(frame, name):
    """Python objects, whatever the library."""
    column = frame[name]
    return column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()


def test_import_is_light():
    code = (
        "import sys, psmvae.table as t; "
        "print([m for m in ('pandas', 'polars', 'pyarrow', 'torch', 'scipy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_encode_standardises_and_marks(make):
    table = make({"n": [1.0, None, 4.5], "s": ["b", "a", None]})
    encoded = Codec.fit(table).encode(table)
    assert isinstance(encoded, Encoded)
    assert encoded.x.dtype == np.float64
    assert encoded.m.dtype == bool
    assert encoded.x.tolist() == [[-1.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    assert encoded.m.tolist() == [[True, True], [False, True], [True, False]]


def test_encode_finds_columns_by_name_and_fill_keeps_their_order(make):
    codec = Codec.fit(make({"a": [1.0, 3.5, None], "b": ["x", None, "y"]}))
    turned = make({"b": ["x", None, "y"], "a": [1.0, 3.5, None]})
    assert codec.encode(turned).m.tolist() == [[True, True], [True, False], [False, True]]
    filled = codec.fill(turned, np.ones((3, 2)))
    names = filled.column_names if hasattr(filled, "column_names") else list(filled.columns)
    assert names == ["b", "a"]
    assert cells_of(filled, "b") == ["x", "y", "y"]


def test_missing_and_extra_columns_are_named(make):
    codec = Codec.fit(make({"a": [1.0, 2.0], "b": [1.0, 2.0]}))
    table = make({"a": [1.0, 2.0], "c": [1.0, 2.0]})
    for call in (codec.encode, lambda t: codec.fill(t, np.ones((2, 2)))):
        with pytest.raises(ValueError, match=r"(?s)unseen at fit time: 'c'.*now missing: 'b'"):
            call(table)


def test_wrong_number_of_columns_has_scikit_learns_words():
    codec = Codec.fit(np.ones((3, 2)))
    with pytest.raises(
        ValueError, match=r"X has 1 features, but .* is expecting 2 features as input"
    ):
        codec.encode(np.ones((3, 1)))


def test_an_array_is_taken_by_position_after_a_fit_on_names(make):
    codec = Codec.fit(make({"a": [1.0, 2.5], "b": [3.0, 4.5]}))
    assert codec.encode(np.array([[1.0, NAN]])).m.tolist() == [[True, False]]


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (np.ones(3), ValueError, "Expected 2D array, got 1D array instead.*Reshape your data"),
        (np.ones((2, 2, 2)), ValueError, "Expected 2D array, got 3D.*Reshape your data"),
        (np.float64(3), TypeError, "got numpy.float64"),
        (np.ones((2, 2)) * 1j, ValueError, "Complex data not supported"),
        (np.ones((0, 3)), ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1"),
        (np.ones((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1"),
        (np.ones((2, 2), dtype="M8[s]"), TypeError, "datetime64"),
        (np.array([[b"a"]]), TypeError, r"\|S1"),
        (np.ma.masked_array(np.ones((2, 2))), TypeError, "masked.*filled"),
        ([[1.0, 2.0], [3.0]], ValueError, "differ in length"),
        ({"a": [1]}, TypeError, "got builtins.dict"),
        (None, TypeError, "got builtins.NoneType"),
        ("table.csv", TypeError, "got builtins.str"),
    ],
)
def test_what_is_no_table(table, error, words):
    with pytest.raises(error, match=words):
        Codec.fit(table)


def test_sparse_is_refused():
    sparse = pytest.importorskip("scipy.sparse")
    for table in (sparse.csr_matrix(np.eye(2)), sparse.coo_array(np.eye(2))):
        with pytest.raises(TypeError, match=r"dense.*sparse.*toarray"):
            Codec.fit(table)


def test_lazy_frames_and_series_are_refused():
    pl = pytest.importorskip("polars")
    with pytest.raises(TypeError, match="collect"):
        Codec.fit(pl.LazyFrame({"a": [1]}))
    with pytest.raises(ValueError, match="Reshape your data"):
        Codec.fit(pl.Series("a", [1]))


def test_no_rows_and_no_columns(make):
    with pytest.raises(ValueError, match="0 sample"):
        Codec.fit(make({"a": []}))
    with pytest.raises(ValueError, match="0 feature"):
        Codec.fit(make({}))


def test_duplicate_names():
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"unique.*: 'a'"):
        Codec.fit(pa.Table.from_arrays([pa.array([1])] * 3, names=["a", "b", "a"]))
    with pytest.raises(ValueError, match=r"unique.*: 'a'"):
        Codec.fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(ValueError, match=r"unique.*: '1'"):
        Codec.fit(pd.DataFrame([[1, 2]], columns=[1, "1"]))


def test_infinity_is_named_with_its_count(make):
    table = make({"a": [1.0, float("inf"), float("-inf")], "b": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"'a' contains infinity.*2 of 3 rows"):
        Codec.fit(table)
    codec = Codec.fit(make({"a": [1.0, 2.5, 3.0], "b": [1.0, 2.0, 3.0]}))
    with pytest.raises(ValueError, match=r"'a' contains infinity.*2 of 3 rows"):
        codec.encode(table)


def test_an_empty_column_warns_once_and_stays_missing(make):
    table = make({"a": [1.0, 2.5, None], "void": [None, None, None], "gone": [NAN, NAN, NAN]})
    with pytest.warns(UserWarning, match="'void', 'gone'") as caught:
        codec = Codec.fit(table)
    assert len(caught) == 1
    assert codec.schema.names == ("a", "void", "gone")
    assert [column.name for column in codec.schema.modelled] == ["a"]
    encoded = codec.encode(table)
    assert encoded.x.shape == (3, 1)
    filled = codec.fill(table, encoded.x)
    for name in ("void", "gone"):
        assert str(filled[name]) == str(table[name])


def test_all_columns_empty(make):
    with pytest.raises(ValueError, match="every cell is missing"):
        Codec.fit(make({"a": [None, None], "b": [None, None]}))


def test_dates_and_others_are_refused_all_at_once(make):
    day = dt.datetime(2020, 1, 1)
    table = make({"day": [day, day], "list": [[1], [2]], "n": [1.0, 2.0], "bytes": [b"a", b"b"]})
    with pytest.raises(TypeError) as caught:
        Codec.fit(table)
    lines = str(caught.value).splitlines()
    assert [line.split("'")[1] for line in lines] == ["day", "list", "bytes"]
    assert "turn it into numbers (say, days since a date) or drop it" in lines[0]


def test_other_times_are_refused():
    pl = pytest.importorskip("polars")
    for value in (dt.date(2020, 1, 1), dt.time(1), dt.timedelta(1)):
        with pytest.raises(TypeError, match="days since a date"):
            Codec.fit(pl.DataFrame({"a": [value]}))
        with pytest.raises(TypeError, match="days since a date"):
            Codec.fit(np.array([[value]], dtype=object))


def test_odd_objects_are_refused():
    with pytest.raises(TypeError, match=r"'x1' mixes types: str \(2 rows\), float \(1 rows\)"):
        Codec.fit([[1, "a"], [2, "b"], [3, 1.5]])
    with pytest.raises(TypeError, match="mixes types"):
        Codec.fit(np.array([[True], [3]], dtype=object))
    # scikit-learn's own check looks for these words
    with pytest.raises(TypeError, match=r"'x0' holds dict.*argument must be .* string.* number"):
        Codec.fit(np.array([[{"foo": "bar"}], [1.0]], dtype=object))
    with pytest.raises(TypeError, match="complex"):
        Codec.fit(np.array([[1j], [1.0]], dtype=object))
    with pytest.raises(ValueError, match="'x0' holds an integer too large"):
        Codec.fit(np.array([[10**400], [1]], dtype=object))


def test_pandas_types_without_a_kind_are_refused():
    pd = pytest.importorskip("pandas")
    columns = [
        pd.cut(pd.Series([1.0, 2.0]), 2),
        pd.Series([1.0, 2.0], dtype="Sparse[float64]"),
        pd.Series([1j, 2j]),
        pd.Series(pd.period_range("2020", periods=2)),
        pd.Series(pd.date_range("2020", periods=2, tz="UTC")),
    ]
    for column in columns:
        with pytest.raises(TypeError, match="'a'"):
            Codec.fit(pd.DataFrame({"a": column}))


def test_changed_family_is_refused(make):
    text, numbers = make({"a": ["x", "y"]}), make({"a": [1.0, 2.5]})
    with pytest.raises(TypeError, match=r"'a' was fitted on strings.*now holds numbers"):
        Codec.fit(text).encode(numbers)
    with pytest.raises(TypeError, match=r"'a' was fitted on numbers.*now holds strings"):
        Codec.fit(numbers).encode(text)
    with pytest.raises(TypeError, match="now holds strings"):
        Codec.fit(numbers).fill(text, np.ones((2, 1)))


def test_same_family_of_another_type_is_fine(make):
    codec = Codec.fit(make({"a": [0, 1, 2], "b": [True, False, None]}))
    encoded = codec.encode(make({"a": [0.0, None, 2.0], "b": [1, 0, None]}))
    assert encoded.m.tolist() == [[True, True], [False, True], [True, False]]
    assert encoded.x[:2, 1].tolist() == [1.0, 0.0]


def test_unseen_levels(make):
    codec = Codec.fit(make({"a": ["x", "y", None]}))
    table = make({"a": [*"abcdefga", "x", None]})
    with pytest.raises(ValueError, match=r"'a' has 'a', 'b', 'c', 'd', 'e' and 2 more in 8 rows"):
        codec.encode(table)
    encoded = codec.encode(table, handle_unknown="missing")
    assert encoded.m[:, 0].tolist() == [False] * 8 + [True, False]
    filled = codec.fill(table, np.ones((10, 1)))
    assert cells_of(filled, "a") == [*"abcdefga", "x", "y"]
    with pytest.raises(ValueError, match="handle_unknown must be"):
        codec.encode(table, handle_unknown="ignore")


def test_a_column_that_is_empty_at_transform_takes_a_type_that_can_hold_its_values(make):
    fit = {"s": ["x", "y"], "i": [3, 5], "r": [1.5, 2.5], "b": [True, False]}
    codec = Codec.fit(make(fit))
    for void in (None, NAN):
        table = make({name: [void, void] for name in fit})
        assert not codec.encode(table).m.any()
        filled = codec.fill(table, np.ones((2, 4)))
        assert [cells_of(filled, name)[0] for name in fit] == ["y", 5, 2.5, True]


def test_an_empty_string_column_for_numbers():
    pl = pytest.importorskip("polars")
    codec = Codec.fit(pl.DataFrame({"a": [3, 5], "b": [True, False], "c": [1.5, 2.5]}))
    void = pl.Series([None], dtype=pl.String)
    filled = codec.fill(pl.DataFrame({"a": void, "b": void, "c": void}), np.ones((1, 3)))
    assert filled.schema == {"a": pl.Int64, "b": pl.Boolean, "c": pl.Float64}


def test_an_array_that_cannot_hold_strings_becomes_one_of_objects():
    codec = Codec.fit([["x", 1.5], ["y", 2.5]])
    filled = codec.fill(np.array([[NAN, 7.25]]), np.ones((1, 2)))
    assert filled.dtype == object
    assert filled.tolist() == [["y", 7.25]]


def test_values_are_rounded_and_held_inside_the_type():
    pl = pytest.importorskip("polars")
    small = pl.Series([0, 200, None, None], dtype=pl.UInt8)
    large = pl.Series([2**63 - 1, -(2**63), None, None], dtype=pl.Int64)
    money = pl.Series([Decimal("1.00"), Decimal("2.00"), None, None], dtype=pl.Decimal(5, 2))
    half = pl.Series([1.0, 2.5, None, None], dtype=pl.Float32)
    table = pl.DataFrame({"small": small, "large": large, "money": money, "half": half})
    codec = Codec.fit(table)
    filled = codec.fill(table, np.repeat([[0.0], [0.0], [1e30], [-1e30]], 4, axis=1))
    assert filled.schema == table.schema
    assert filled["small"].to_list() == [0, 200, 255, 0]
    assert filled["large"].to_list()[2:] == [2**63 - 1, -(2**63)]
    assert filled["money"].to_list()[2:] == [Decimal("999.99"), Decimal("-999.99")]
    assert np.isfinite(filled["half"].to_numpy()).all()


@pytest.mark.parametrize("x", [np.ones((2, 3)), np.ones((3, 2)), np.ones(2)])
def test_fill_checks_the_shape(x):
    table = np.array([[1.5, NAN], [NAN, 2.5]])
    with pytest.raises(ValueError, match=r"\(2, 2\)"):
        Codec.fit(table).fill(table, x)


def test_fill_looks_at_missing_cells_only():
    table = np.array([[1.5, NAN], [2.5, 2.5]])
    codec = Codec.fit(table)
    x = np.full((2, 2), NAN)
    with pytest.raises(ValueError, match="'x1'"):
        codec.fill(table, x)
    x[0, 1] = 0.0
    assert codec.fill(table, x).tolist() == [[1.5, 2.5], [2.5, 2.5]]


def test_model_values_stay_inside_the_limit():
    codec = Codec.fit(np.array([[1.0], [1.5]]))
    x = codec.encode(np.array([[1e300], [-1e300], [1.7e308]])).x
    assert x.tolist() == [[X_LIMIT], [-X_LIMIT], [X_LIMIT]]


def test_the_input_is_not_changed():
    table = np.array([[1.5, NAN], [NAN, 1.0], [2.5, 0.0]])
    before = table.copy()
    codec = Codec.fit(table)
    codec.fill(table, codec.encode(table).x)
    np.testing.assert_array_equal(table, before)
    table.setflags(write=False)
    assert codec.fill(table, codec.encode(table).x).flags.writeable


def test_a_big_table_of_floats_is_fast_and_small():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(50_000, 20))
    table[rng.random(table.shape) < 0.2] = np.nan
    codec = Codec.fit(table)
    tracemalloc.start()
    try:
        encoded = codec.encode(table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert encoded.m.mean() == pytest.approx(0.8, abs=0.01)
    assert peak < 2 * table.nbytes


def test_nothing_warns_on_a_plain_table():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = [["a", 1, True], [None, None, None], ["b", 2, False]]
        codec = Codec.fit(table)
        assert codec.fill(table, codec.encode(table).x).tolist()[1] == ["a", 2, False]
