"""Data types, index, labels and observed cells of each library are kept."""

from decimal import Decimal

import narwhals.stable.v2 as nw
import numpy as np
import pytest

from psmvae.table.codec import Codec

NAN = float("nan")
ODD_FLOATS = [-0.0, 5e-324, 1e-310, 0.1, -1e100, None, 3.5]


def filled(table, value=0.7, kinds=None):
    codec = Codec.fit(table, kinds=kinds)
    x = np.full(codec.encode(table).x.shape, value)
    return codec.fill(table, x)


def _if_known(library, dtype, make):
    """A column of a data type, if this version of the library has it."""
    return {dtype: make(getattr(library, dtype))} if hasattr(library, dtype) else {}


class TestPandas:
    @pytest.fixture(autouse=True, params=["few columns", "many columns"])
    def _library(self, request, monkeypatch):
        self.pd = pytest.importorskip("pandas")
        if request.param == "many columns":
            monkeypatch.setattr("psmvae.table.frame_pandas._MANY", 0)

    def columns(self):
        pd = self.pd
        return {
            "Int64": pd.array([2**60 + 1, None, 5], dtype="Int64"),
            "UInt8": pd.array([255, None, 0], dtype="UInt8"),
            "Float32": pd.array([1.5, None, -0.0], dtype="Float32"),
            "boolean": pd.array([True, None, False], dtype="boolean"),
            "str": pd.Series(["x", None, "y"]),
            "string": pd.array(["x", None, "y"], dtype="string"),
            "object str": pd.Series(["x", None, "y"], dtype=object),
            "object bool": pd.Series([True, None, False], dtype=object),
            "object int": pd.Series([10**17 + 1, None, 3], dtype=object),
            "object decimal": pd.Series([Decimal("1.50"), None, Decimal(2)]),
            "category": pd.Categorical(["u", None, "v"], categories=["w", "v", "u"], ordered=True),
            "category int": pd.Categorical([7, None, 3]),
            "float16": pd.Series([1.5, None, 2.0], dtype="float16"),
            "float64 whole": [1.0, NAN, 4.0],
        }

    def test_dtypes_and_observed_cells_are_kept(self):
        table = self.pd.DataFrame(self.columns())
        out = filled(table)
        assert out.dtypes.to_dict() == table.dtypes.to_dict()
        assert not out.isna().any().any()
        self.pd.testing.assert_frame_equal(out.iloc[[0, 2]], table.iloc[[0, 2]])
        for name in ("object bool", "object int", "object decimal", "object str"):
            assert type(out[name].iloc[1]) is type(table[name].iloc[0])
        assert out["category"].cat.categories.tolist() == ["w", "v", "u"]
        assert out["category"].cat.ordered

    def test_arrow_backed_columns(self):
        pa = pytest.importorskip("pyarrow")
        pd = self.pd
        types = {
            pa.int16(): [1, None, 3],
            pa.float32(): [1.5, None, -0.0],
            pa.bool_(): [True, None, False],
            pa.string(): ["x", None, "y"],
            pa.decimal128(9, 3): [Decimal("1.500"), None, Decimal("2.000")],
            pa.dictionary(pa.int8(), pa.string()): ["x", None, "y"],
        }
        columns = {str(t): pd.Series(v, dtype=pd.ArrowDtype(t)) for t, v in types.items()}
        table = pd.DataFrame(columns)
        out = filled(table)
        assert out.dtypes.to_dict() == table.dtypes.to_dict()
        assert not out.isna().any().any()
        for name in table:
            assert out[name].tolist()[::2] == table[name].tolist()[::2]

    def test_nan_in_a_nullable_float_column_is_missing(self):
        pd = self.pd
        column = pd.arrays.FloatingArray(np.array([1.5, NAN, 0.0]), np.array([False, False, True]))
        out = filled(pd.DataFrame({"a": column}))
        assert out["a"].dtype == "Float64"
        assert np.isfinite(out["a"].to_numpy(dtype=float)).all()

    @pytest.mark.parametrize("kind", ["repeated", "multi", "strings", "times"])
    def test_index_labels_and_attrs_are_kept(self, kind):
        pd = self.pd
        index = {
            "repeated": pd.Index([3, 3, 1], name="id"),
            "multi": pd.MultiIndex.from_tuples([(1, "a"), (1, "a"), (NAN, "b")]),
            "strings": pd.Index(["c", "a", "b"]),
            "times": pd.date_range("2020", periods=3, freq="D"),
        }[kind]
        table = pd.DataFrame({0: [1.5, NAN, 2.5], ("t", 1): ["x", None, "y"], "z": [1, 2, 3]})
        table.index = index
        table.attrs["source"] = "here"
        before = table.copy(deep=True)
        out = filled(table)
        pd.testing.assert_index_equal(out.index, index)
        assert list(out.columns) == [0, ("t", 1), "z"]
        assert out.attrs == {"source": "here"}
        assert not out.isna().any().any()
        pd.testing.assert_frame_equal(table, before)

    def test_flags_are_kept(self):
        table = self.pd.DataFrame({"a": [1.5, NAN, 2.5]}).set_flags(allows_duplicate_labels=False)
        assert not filled(table).flags.allows_duplicate_labels

    def test_multi_index_columns(self):
        pd = self.pd
        labels = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)], names=["k", "l"])
        table = pd.DataFrame([[1.5, 2.0], [NAN, 3.0], [2.5, NAN]], columns=labels)
        out = filled(table)
        pd.testing.assert_index_equal(out.columns, labels)
        assert not out.isna().any().any()

    def test_writing_to_the_result_does_not_change_the_input(self):
        table = self.pd.DataFrame({"a": [1.5, 2.5], "b": [1.0, NAN], "c": ["x", "y"]})
        before = table.copy(deep=True)
        out = filled(table)
        out.loc[0, :] = [99.0, 99.0, "z"]
        out.index.name, out.columns.name = "row", "column"
        self.pd.testing.assert_frame_equal(table, before)

    def test_category_gains_a_fitted_level_only_if_needed(self):
        pd = self.pd
        codec = Codec.fit(pd.DataFrame({"a": pd.Categorical(list("abc"))}))
        table = pd.DataFrame({"a": pd.Categorical(["b", None], categories=["b", "a"])})
        same = codec.fill(table, np.array([[0.0], [0.0]]))
        assert same["a"].dtype == table["a"].dtype
        more = codec.fill(table, np.array([[0.0], [2.0]]))
        assert more["a"].tolist() == ["b", "c"]
        assert more["a"].cat.categories.tolist() == ["b", "a", "c"]

    def test_extreme_floats_are_kept_to_the_bit(self):
        table = self.pd.DataFrame({"a": ODD_FLOATS, "b": [*range(7)]})
        out = filled(table)
        seen = table["a"].notna()
        assert out["a"][seen].to_numpy().tobytes() == table["a"][seen].to_numpy().tobytes()


class TestPolars:
    @pytest.fixture(autouse=True)
    def _library(self):
        self.pl = pytest.importorskip("polars")

    def test_dtypes_and_observed_cells_are_kept(self):
        pl = self.pl
        table = pl.DataFrame(
            {
                "i64": [2**60 + 1, None, 5],
                "u8": pl.Series([255, None, 0], dtype=pl.UInt8),
                **_if_known(pl, "Int128", lambda kind: pl.Series([2**90, None, 7], dtype=kind)),
                "f32": pl.Series([1.5, None, NAN], dtype=pl.Float32),
                "f64": [-0.0, NAN, 1.5],
                "bool": [True, None, False],
                "str": ["x", None, "y"],
                "cat": pl.Series(["u", None, "v"], dtype=pl.Categorical),
                "enum": pl.Series(["u", None, "v"], dtype=pl.Enum(["w", "v", "u"])),
                "dec": pl.Series([Decimal("1.50"), None, Decimal("2.00")], dtype=pl.Decimal(9, 2)),
            }
        )
        out = filled(table)
        assert out.schema == table.schema
        assert sum(out.null_count().row(0)) == 0
        assert not out["f32"].is_nan().any()
        assert not out["f64"].is_nan().any()
        assert out.row(0) == table.row(0)
        assert np.signbit(out["f64"][0])
        assert out.drop("f32").row(2) == table.drop("f32").row(2)

    def test_levels_have_the_order_of_the_enum(self):
        pl = self.pl
        enum = pl.Series("e", ["u", None, "v"], dtype=pl.Enum(["w", "v", "u"]))
        cat = pl.Series("c", ["z", "b", "a"], dtype=pl.Categorical)
        columns = Codec.fit(pl.DataFrame([enum, cat])).schema.columns
        assert [column.levels for column in columns] == [("v", "u"), ("a", "b", "z")]

    def test_enum_gains_a_fitted_level_only_if_needed(self):
        pl = self.pl
        codec = Codec.fit(pl.DataFrame({"a": list("abc")}))
        table = pl.DataFrame({"a": pl.Series(["b", None], dtype=pl.Enum(["b", "a"]))})
        assert codec.fill(table, np.zeros((2, 1))).schema == table.schema
        more = codec.fill(table, np.array([[0.0], [2.0]]))
        assert more["a"].to_list() == ["b", "c"]
        assert more.schema == {"a": pl.Enum(["b", "a", "c"])}

    def test_complete_frame_is_returned_equal(self):
        table = self.pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})
        assert filled(table).equals(table)

    def test_object_columns_raise(self):
        table = self.pl.DataFrame({"a": self.pl.Series([object()], dtype=self.pl.Object)})
        with pytest.raises(TypeError, match="'a' is of type Object"):
            Codec.fit(table)


class TestArrow:
    @pytest.fixture(autouse=True)
    def _library(self):
        self.pa = pytest.importorskip("pyarrow")

    def test_dtypes_and_observed_cells_are_kept(self):
        pa = self.pa
        table = pa.table(
            {
                "i64": [2**60 + 1, None, 5],
                "u8": pa.array([255, None, 0], pa.uint8()),
                # older versions of narwhals do not know this type
                **_if_known(nw, "Float16", lambda _: pa.array([1.5, None, 2.0], pa.float16())),
                "f32": pa.array([1.5, None, 0.25], pa.float32()),
                "f64": [-0.0, None, 1.5],
                "bool": [True, None, False],
                "str": ["x", None, "y"],
                "large": pa.array(["x", None, "y"], pa.large_string()),
                **_if_known(pa, "string_view", lambda kind: pa.array(["x", None, "y"], kind())),
                "dict": pa.array(["u", None, "v"]).dictionary_encode(),
                "dict int": pa.array([7, None, 3]).dictionary_encode(),
                "dec": pa.array([Decimal("1.50"), None, Decimal("2.00")], pa.decimal128(9, 2)),
                "dec256": pa.array([Decimal("1.50"), None, Decimal("2.00")], pa.decimal256(50, 2)),
            }
        )
        out = filled(table)
        assert out.schema == table.schema
        assert all(column.null_count == 0 for column in out.columns)
        assert np.signbit(out["f64"][0].as_py())
        rows, before = out.to_pylist(), table.to_pylist()
        assert rows[0] == before[0]
        assert rows[2] == before[2]

    def test_chunks_slices_and_metadata_are_kept(self):
        pa = self.pa
        one = pa.table({"a": [9.0, 1.5, None], "b": pa.array(["p", "x", None]).dictionary_encode()})
        two = pa.table({"a": [2.5, None], "b": pa.array(["y", None]).dictionary_encode()})
        table = pa.concat_tables([one.slice(1), two]).replace_schema_metadata({"k": "v"})
        out = filled(table)
        assert out.schema.equals(table.schema, check_metadata=True)
        assert out["b"].to_pylist()[::2] == ["x", "y"]
        assert out["a"].to_pylist()[::2] == [1.5, 2.5]
        assert out["a"].null_count == out["b"].null_count == 0

    def test_ordered_dictionary_stays_ordered(self):
        pa = self.pa
        kind = pa.dictionary(pa.int8(), pa.string(), ordered=True)
        # `pa.array` of old versions does not keep the order
        indices, levels = pa.array([0, None, 1], pa.int8()), pa.array(["u", "v"])
        column = pa.DictionaryArray.from_arrays(indices, levels, ordered=True)
        table = pa.table({"a": column})
        assert filled(table).schema == table.schema
        assert filled(table).schema.types[0] == kind
        assert filled(table).schema.types[0].ordered

    def test_null_in_a_dictionary_is_missing(self):
        pa = self.pa
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["x", None, "y"]))
        out = filled(pa.table({"a": column}))
        assert out["a"].to_pylist() == ["x", "y", "y"]

    def test_dictionary_gains_a_fitted_level(self):
        pa = self.pa
        codec = Codec.fit(pa.table({"a": ["a", "b", "c"]}))
        table = pa.table({"a": pa.array(["b", None]).dictionary_encode()})
        out = codec.fill(table, np.array([[0.0], [2.0]]))
        assert out.schema == table.schema
        assert out["a"].to_pylist() == ["b", "c"]


class TestNumpy:
    @pytest.mark.parametrize("dtype", ["float64", "float32", "float16", ">f8"])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_floats(self, dtype, order):
        table = np.array([[1.5, NAN], [NAN, -0.0], [2.5, 3.5]], dtype=dtype, order=order)
        out = filled(table)
        assert out.dtype == table.dtype
        assert out.flags.f_contiguous == table.flags.f_contiguous
        seen = ~np.isnan(table)
        assert out[seen].tobytes() == table[seen].tobytes()
        assert not np.isnan(out).any()

    @pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "U3"])
    def test_arrays_without_missing_values(self, dtype):
        table = np.array([[1, 0], [0, 1]]).astype(dtype)
        out = filled(table)
        assert out.dtype == table.dtype
        assert (out == table).all()
        assert not np.shares_memory(out, table)

    def test_objects(self):
        pd = pytest.importorskip("pandas")
        table = np.array(
            [
                ["x", 1, True, 1.5, Decimal(1)],
                [None, NAN, pd.NA, None, None],
                ["y", 3, False, 2, 3],
            ],
            dtype=object,
        )
        out = filled(table)
        assert [type(cell) for cell in out[1]] == [str, int, bool, float, Decimal]
        assert out[::2].tolist() == table[::2].tolist()

    def test_list_of_numbers_and_none_becomes_a_float_array(self):
        table = [[1, 2.5], [None, np.float64(4.5)], [3, None]]
        codec = Codec.fit(table)
        assert [column.kind for column in codec.schema.columns] == ["integer", "real"]
        out = codec.fill(table, np.zeros((3, 2)))
        assert out.dtype == np.float64
        assert out.tolist() == [[1, 2.5], [2, 4.5], [3, 3.5]]
        # integers beyond float64 and other objects stay objects
        for cell in (2**53 + 1, True, "x"):
            assert filled([[cell], [cell], [None]]).dtype == object

    def test_list_of_strings_becomes_an_object_array(self):
        out = filled([["a", 1.5], [NAN, None], ["b", 2.5]])
        assert isinstance(out, np.ndarray)
        assert out[1].tolist() == ["b", pytest.approx(2.35)]

    @pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="NumPy 2 has them")
    def test_numpy_string_arrays(self):
        table = np.array([["x"], ["y"], ["y"]], dtype=np.dtypes.StringDType())
        assert filled(table).dtype == table.dtype
        assert Codec.fit(table).schema.columns[0].levels == ("x", "y")


def test_narwhals_frame_stays_a_narwhals_frame():
    pl = pytest.importorskip("polars")
    table = nw.from_native(pl.DataFrame({"a": [1.5, None, 2.5]}))
    out = filled(table)
    assert isinstance(out, nw.DataFrame)
    assert out["a"].null_count() == 0


def test_integer_levels_beyond_float64_are_exact():
    pa = pytest.importorskip("pyarrow")
    values = [2**63 + 1, 2**63 + 2, None]
    for dtype, shift in ((pa.uint64(), 0), (pa.int64(), 2**63)):
        cells = [None if value is None else value - shift - 5 * bool(shift) for value in values]
        table = pa.table({"a": pa.array(cells, dtype)})
        out = filled(table, value=1.0, kinds={"a": "categorical"})
        assert out["a"].to_pylist() == [*cells[:2], cells[1]]
