"""Codec: encoding, filling, and tables that raise."""

import datetime as dt
import subprocess
import sys
import tracemalloc
import warnings
from decimal import Decimal

import numpy as np
import pytest

from psmvae.kinds.base import X_LIMIT
from psmvae.table.codec import Codec, Encoded

NAN = float("nan")


def cells_of(frame, name):
    """Python objects, whatever the library."""
    column = frame[name]
    return column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()


def test_importing_the_table_package_does_not_load_optional_libraries():
    code = (
        "import sys, psmvae.table as t; "
        "print([m for m in ('pandas', 'polars', 'pyarrow', 'torch', 'scipy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_encode_returns_standardised_values_and_mask(make):
    table = make({"n": [1.0, None, 4.5], "s": ["b", "a", None]})
    encoded = Codec.fit(table).encode(table)
    assert isinstance(encoded, Encoded)
    assert encoded.x.dtype == np.float64
    assert encoded.m.dtype == bool
    assert encoded.x.tolist() == [[-1.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    assert encoded.m.tolist() == [[True, True], [False, True], [True, False]]


def test_columns_are_matched_by_name_and_keep_their_order(make):
    codec = Codec.fit(make({"a": [1.0, 3.5, None], "b": ["x", None, "y"]}))
    turned = make({"b": ["x", None, "y"], "a": [1.0, 3.5, None]})
    assert codec.encode(turned).m.tolist() == [[True, True], [True, False], [False, True]]
    filled = codec.fill(turned, np.ones((3, 2)))
    names = filled.column_names if hasattr(filled, "column_names") else list(filled.columns)
    assert names == ["b", "a"]
    assert cells_of(filled, "b") == ["x", "y", "y"]


def test_missing_and_extra_columns_are_listed_in_the_error(make):
    codec = Codec.fit(make({"a": [1.0, 2.0], "b": [1.0, 2.0]}))
    table = make({"a": [1.0, 2.0], "c": [1.0, 2.0]})
    for call in (codec.encode, lambda t: codec.fill(t, np.ones((2, 2)))):
        with pytest.raises(ValueError, match=r"(?s)unseen at fit time: 'c'.*now missing: 'b'"):
            call(table)


def test_wrong_number_of_columns_raises_the_message_of_scikit_learn():
    codec = Codec.fit(np.ones((3, 2)))
    with pytest.raises(
        ValueError, match=r"X has 1 features, but .* is expecting 2 features as input"
    ):
        codec.encode(np.ones((3, 1)))


def test_array_columns_are_matched_by_position(make):
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
def test_non_tables_raise(table, error, words):
    with pytest.raises(error, match=words):
        Codec.fit(table)


def test_sparse_matrices_raise():
    sparse = pytest.importorskip("scipy.sparse")
    for table in (sparse.csr_matrix(np.eye(2)), sparse.coo_array(np.eye(2))):
        with pytest.raises(TypeError, match=r"dense.*sparse.*toarray"):
            Codec.fit(table)


def test_lazy_frames_and_series_raise():
    pl = pytest.importorskip("polars")
    with pytest.raises(TypeError, match="collect"):
        Codec.fit(pl.LazyFrame({"a": [1]}))
    with pytest.raises(ValueError, match="Reshape your data"):
        Codec.fit(pl.Series("a", [1]))


def test_tables_without_rows_or_columns_raise(make):
    with pytest.raises(ValueError, match="0 sample"):
        Codec.fit(make({"a": []}))
    with pytest.raises(ValueError, match="0 feature"):
        Codec.fit(make({}))


def test_duplicate_column_names_raise():
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"unique.*: 'a'"):
        Codec.fit(pa.Table.from_arrays([pa.array([1])] * 3, names=["a", "b", "a"]))
    with pytest.raises(ValueError, match=r"unique.*: 'a'"):
        Codec.fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(ValueError, match=r"unique.*: '1'"):
        Codec.fit(pd.DataFrame([[1, 2]], columns=[1, "1"]))


def test_infinity_raises_with_column_and_count(make):
    table = make({"a": [1.0, float("inf"), float("-inf")], "b": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"'a' contains infinity.*2 of 3 rows"):
        Codec.fit(table)
    codec = Codec.fit(make({"a": [1.0, 2.5, 3.0], "b": [1.0, 2.0, 3.0]}))
    with pytest.raises(ValueError, match=r"'a' contains infinity.*2 of 3 rows"):
        codec.encode(table)


def test_column_without_observed_cells_warns_once_and_stays_missing(make):
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


def test_table_without_observed_cells_raises(make):
    with pytest.raises(ValueError, match="every cell is missing"):
        Codec.fit(make({"a": [None, None], "b": [None, None]}))


def test_all_unsupported_columns_are_in_one_error(make):
    day = dt.datetime(2020, 1, 1)
    table = make({"day": [day, day], "list": [[1], [2]], "n": [1.0, 2.0], "bytes": [b"a", b"b"]})
    with pytest.raises(TypeError) as caught:
        Codec.fit(table)
    lines = str(caught.value).splitlines()
    assert [line.split("'")[1] for line in lines] == ["day", "list", "bytes"]
    assert "convert it to numbers (say, days since a date), or drop it" in lines[0]


def test_time_types_raise():
    pl = pytest.importorskip("polars")
    for value in (dt.date(2020, 1, 1), dt.time(1), dt.timedelta(1)):
        with pytest.raises(TypeError, match="days since a date"):
            Codec.fit(pl.DataFrame({"a": [value]}))
        with pytest.raises(TypeError, match="days since a date"):
            Codec.fit(np.array([[value]], dtype=object))


def test_unsupported_objects_raise():
    with pytest.raises(TypeError, match=r"'x1' mixes types: str \(2 rows\), float \(1 rows\)"):
        Codec.fit([[1, "a"], [2, "b"], [3, 1.5]])
    with pytest.raises(TypeError, match="mixes types"):
        Codec.fit(np.array([[True], [3]], dtype=object))
    # the check of scikit-learn looks for this text
    with pytest.raises(TypeError, match=r"'x0' holds dict.*argument must be .* string.* number"):
        Codec.fit(np.array([[{"foo": "bar"}], [1.0]], dtype=object))
    with pytest.raises(TypeError, match="complex"):
        Codec.fit(np.array([[1j], [1.0]], dtype=object))
    with pytest.raises(ValueError, match="'x0' holds an integer too large"):
        Codec.fit(np.array([[10**400], [1]], dtype=object))


def test_unsupported_pandas_types_raise():
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


def test_strings_in_a_numeric_column_and_the_reverse_raise(make):
    text, numbers = make({"a": ["x", "y"]}), make({"a": [1.0, 2.5]})
    with pytest.raises(TypeError, match=r"'a' was fitted on strings.*now holds numbers"):
        Codec.fit(text).encode(numbers)
    with pytest.raises(TypeError, match=r"'a' was fitted on numbers.*now holds strings"):
        Codec.fit(numbers).encode(text)
    with pytest.raises(TypeError, match="now holds strings"):
        Codec.fit(numbers).fill(text, np.ones((2, 1)))


def test_another_dtype_of_the_same_family_is_accepted(make):
    codec = Codec.fit(make({"a": [0, 1, 2], "b": [True, False, None]}))
    encoded = codec.encode(make({"a": [0.0, None, 2.0], "b": [1, 0, None]}))
    assert encoded.m.tolist() == [[True, True], [False, True], [True, False]]
    assert encoded.x[:2, 1].tolist() == [1.0, 0.0]


def test_unknown_levels_raise_or_are_missing(make):
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


def test_column_empty_at_transform_gets_a_dtype_that_holds_its_values(make):
    fit = {"s": ["x", "y"], "i": [3, 5], "r": [1.5, 2.5], "b": [True, False]}
    codec = Codec.fit(make(fit))
    for void in (None, NAN):
        table = make({name: [void, void] for name in fit})
        assert not codec.encode(table).m.any()
        filled = codec.fill(table, np.ones((2, 4)))
        assert [cells_of(filled, name)[0] for name in fit] == ["y", 5, 2.5, True]


def test_empty_string_column_is_filled_with_numbers():
    pl = pytest.importorskip("polars")
    codec = Codec.fit(pl.DataFrame({"a": [3, 5], "b": [True, False], "c": [1.5, 2.5]}))
    void = pl.Series([None], dtype=pl.String)
    filled = codec.fill(pl.DataFrame({"a": void, "b": void, "c": void}), np.ones((1, 3)))
    assert filled.schema == {"a": pl.Int64, "b": pl.Boolean, "c": pl.Float64}


def test_float_array_filled_with_strings_becomes_object():
    codec = Codec.fit([["x", 1.5], ["y", 2.5]])
    filled = codec.fill(np.array([[NAN, 7.25]]), np.ones((1, 2)))
    assert filled.dtype == object
    assert filled.tolist() == [["y", 7.25]]


def test_values_are_rounded_and_clipped_to_the_dtype():
    pl = pytest.importorskip("polars")
    small = pl.Series([0, 200, None, None], dtype=pl.UInt8)
    large = pl.Series([2**63 - 1, -(2**63), None, None], dtype=pl.Int64)
    money = pl.Series([Decimal("1.00"), Decimal("2.00"), None, None], dtype=pl.Decimal(5, 2))
    half = pl.Series([1.0, 2.5, None, None], dtype=pl.Float32)
    table = pl.DataFrame({"small": small, "large": large, "money": money, "half": half})
    codec = Codec.fit(table, bounds={"money": (None, None)})
    filled = codec.fill(table, np.repeat([[0.0], [0.0], [1e30], [-1e30]], 4, axis=1))
    assert filled.schema == table.schema
    assert filled["small"].to_list() == [0, 200, 255, 0]
    assert filled["large"].to_list()[2:] == [2**63 - 1, -(2**63)]
    assert filled["money"].to_list()[2:] == [Decimal("999.99"), Decimal("-999.99")]
    assert np.isfinite(filled["half"].to_numpy()).all()


@pytest.mark.parametrize("x", [np.ones((2, 3)), np.ones((3, 2)), np.ones(2)])
def test_fill_raises_for_a_wrong_shape(x):
    table = np.array([[1.5, NAN], [NAN, 2.5]])
    with pytest.raises(ValueError, match=r"\(2, 2\)"):
        Codec.fit(table).fill(table, x)


def test_fill_requires_finite_values_in_missing_cells_only():
    table = np.array([[1.5, NAN], [2.5, 2.5]])
    codec = Codec.fit(table)
    x = np.full((2, 2), NAN)
    with pytest.raises(ValueError, match="'x1'"):
        codec.fill(table, x)
    x[0, 1] = 0.0
    assert codec.fill(table, x).tolist() == [[1.5, 2.5], [2.5, 2.5]]


def test_model_values_are_clipped_to_the_limit():
    codec = Codec.fit(np.array([[1.0], [1.5]]))
    x = codec.encode(np.array([[1e300], [-1e300], [1.7e308]])).x
    assert x.tolist() == [[X_LIMIT], [-X_LIMIT], [X_LIMIT]]


def test_input_is_not_mutated():
    table = np.array([[1.5, NAN], [NAN, 1.0], [2.5, 0.0]])
    before = table.copy()
    codec = Codec.fit(table)
    codec.fill(table, codec.encode(table).x)
    np.testing.assert_array_equal(table, before)
    table.setflags(write=False)
    assert codec.fill(table, codec.encode(table).x).flags.writeable


def test_large_float_table_is_fast_and_needs_little_memory():
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


def test_plain_table_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = [["a", 1, True], [None, None, None], ["b", 2, False]]
        codec = Codec.fit(table)
        assert codec.fill(table, codec.encode(table).x).tolist()[1] == ["a", 2, False]
