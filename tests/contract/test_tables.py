"""The output has the container, types, index and observed cells of the input."""

import struct

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from contract.registry import IMPUTERS


def columns(table):
    """The cells of a table by column, as Python objects."""
    if isinstance(table, np.ndarray):
        return dict(enumerate(table.T.tolist()))
    if isinstance(table, pa.Table):
        return {name: table[name].to_pylist() for name in table.column_names}
    if isinstance(table, pl.DataFrame):
        return table.to_dict(as_series=False)
    return {j: table.iloc[:, j].tolist() for j in range(table.shape[1])}


def missing(cell):
    return cell is None or cell is pd.NA or cell != cell


def same(one, other):
    """Whether two cells are bit-identical."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", other)
    return one == other


def check_filled(table, filled):
    assert type(filled) is type(table)
    before, after = columns(table), columns(filled)
    assert list(before) == list(after)
    for name, cells in before.items():
        for old, new in zip(cells, after[name], strict=True):
            if missing(old):
                assert not missing(new), name
                assert not isinstance(new, float) or np.isfinite(new), name
            else:
                assert same(old, new), (name, old, new)


def check_types(table, filled):
    if isinstance(table, np.ndarray):
        assert filled.dtype == table.dtype
    elif isinstance(table, pd.DataFrame):
        assert filled.dtypes.tolist() == table.dtypes.tolist()
        pd.testing.assert_index_equal(filled.index, table.index, exact=True)
        pd.testing.assert_index_equal(filled.columns, table.columns, exact=True)
    else:
        assert filled.schema == table.schema


def snapshot(table):
    """A copy that shares no memory."""
    if isinstance(table, pd.DataFrame):
        return table.copy(deep=True)
    return table.copy() if isinstance(table, np.ndarray) else table.slice(0)


def check(imputer, table):
    before = snapshot(table)
    filled = [imputer.fit(table).transform(table), *imputer.sample(table, n=3)]
    for each in filled:
        check_filled(table, each)
        check_types(table, each)
    old, now = columns(before), columns(table)
    assert all(
        (missing(a) and missing(b)) or same(a, b)
        for name in old
        for a, b in zip(old[name], now[name], strict=True)
    )
    check_types(before, table)
    return filled[0]


def pandas_frames(mixed):
    plain = pd.DataFrame(mixed)
    n = len(plain)
    typed = plain.astype({"visits": "Int64", "smoker": "boolean", "arm": "string"})
    category = plain["arm"].astype(pd.CategoricalDtype(["mid", "high", "low", "none"], True))
    turned = typed[::-1]
    pairs = pd.MultiIndex.from_product([["a", "b"], range(n // 2)], names=["site", None])
    return {
        "plain": plain,
        "object": pd.DataFrame({name: pd.Series(mixed[name], dtype=object) for name in mixed}),
        "typed": typed,
        "category": typed.assign(arm=category),
        "small types": plain.assign(
            weight=plain["weight"].astype("float32"),
            visits=plain["visits"].astype("Float64"),
            smoker=plain["smoker"].astype("category"),
        ),
        "arrow": typed.convert_dtypes(dtype_backend="pyarrow"),
        "reversed": turned,
        "dates": typed.set_index(pd.date_range("2020", periods=n, freq="h", tz="UTC")),
        "twice the same label": typed.set_axis([0] * n, axis=0),
        "MultiIndex": typed.set_index(pairs),
        "MultiIndex columns": typed.set_axis(
            pd.MultiIndex.from_product([["x", "y"], [0, 1]], names=["u", "v"]), axis=1
        ),
        "labels that are numbers": typed.set_axis([3, 1, 2, 0], axis=1),
    }


def test_pandas(family, mixed):
    check(family(), pandas_frames(mixed)["category"])


@pytest.mark.parametrize(
    "which",
    [
        "plain",
        "object",
        "typed",
        "small types",
        "arrow",
        "reversed",
        "dates",
        "twice the same label",
        "MultiIndex",
        "MultiIndex columns",
        "labels that are numbers",
    ],
)
def test_other_frames_of_pandas(mixed, which):
    check(IMPUTERS["Mean"](), pandas_frames(mixed)[which])


def test_pandas_attributes_and_flags_stay(quick, mixed):
    table = pd.DataFrame(mixed)
    table.attrs["source"] = "trial"
    table.index.name = "patient"
    filled = quick().fit_transform(table)
    assert filled.attrs == {"source": "trial"}
    assert filled.index.name == "patient"


def test_the_output_does_not_share_memory_with_the_input(family):
    full = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 4.5]])
    for table in (full, pd.DataFrame(full, columns=["a", "b"])):
        filled = family().fit_transform(table)
        if isinstance(filled, np.ndarray):
            filled[:] = 0
        else:
            filled.loc[:, :] = 0.0
        assert np.asarray(table)[1, 1] == 5.0


POLARS_TYPES = {
    "small": {"weight": pl.Float32, "visits": pl.Int32},
    "category": {"arm": pl.Categorical},
    "enum": {"arm": pl.Enum(["mid", "none", "high", "low"])},
}


@pytest.mark.parametrize("which", POLARS_TYPES)
def test_other_types_of_polars(mixed, which):
    check(IMPUTERS["Mean"](), pl.DataFrame(mixed).cast(POLARS_TYPES[which]))


def test_polars(family, mixed):
    table, imputer = pl.DataFrame(mixed), family()
    check(imputer, table)
    # integers and categories are imputed by integers and known categories
    for filled in [imputer.transform(table), *imputer.sample(table, 3)]:
        assert set(filled["arm"].unique()) <= {"low", "mid", "high"}
        assert filled["visits"].dtype == pl.Int64


def test_polars_nan_is_missing(quick, mixed):
    table = pl.DataFrame(mixed).with_columns(pl.col("weight").fill_null(float("nan")))
    check(quick(), table)


ARROW_TYPES = {
    "small": {"weight": pa.float32(), "visits": pa.int32()},
    "large": {"arm": pa.large_string()},
    "dictionary": {"arm": pa.dictionary(pa.int8(), pa.string())},
}


@pytest.mark.parametrize("which", ARROW_TYPES)
def test_other_types_of_pyarrow(mixed, which):
    arrays = {
        name: pa.array(cells, type=ARROW_TYPES[which].get(name)) for name, cells in mixed.items()
    }
    table = pa.table(arrays).replace_schema_metadata({"source": "trial"})
    chunked = pa.concat_tables([table.slice(0, 7), table.slice(7)])
    filled = check(IMPUTERS["Mean"](), chunked)
    assert filled.schema.metadata == {b"source": b"trial"}


def test_pyarrow(family, mixed):
    check(family(), pa.table(mixed))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_numpy_types_and_orders(quick, numbers, dtype, order):
    table = np.asarray(numbers, dtype=dtype, order=order)
    filled = check(quick(validation_fraction=0.0), table)
    observed = ~np.isnan(table)
    assert table[observed].tobytes() == filled[observed].tobytes()


def test_numpy_subnormal_numbers_and_negative_zero_are_kept(family, numbers):
    table = numbers.copy()
    table[:4, 0] = [-0.0, 5e-324, np.nextafter(1.0, 2.0), -1e-310]
    check(family(), table)


def test_numpy_objects(family, mixed):
    check(family(), np.array(list(zip(*mixed.values(), strict=True)), dtype=object))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "<U3"])
def test_numpy_types_without_missing_values(quick, dtype):
    table = np.array([[0, 1], [1, 1], [1, 0], [0, 0]]).astype(dtype)
    check(quick(), table)


def test_a_list_of_rows_gives_an_array(quick, mixed):
    rows = [list(row) for row in zip(*mixed.values(), strict=True)]
    filled = quick().fit(rows).transform(rows)
    check_filled(np.array(rows, dtype=object), filled)


def test_a_narwhals_frame(quick, mixed):
    native = pl.DataFrame(mixed)
    table = nw.from_native(native, eager_only=True)
    filled = quick().fit(table).transform(table)
    assert isinstance(filled, nw.DataFrame)
    check_filled(native, filled.to_native())


def test_one_library_at_fit_and_another_at_transform(family, mixed):
    imputer = family().fit(pl.DataFrame(mixed))
    expected = columns(imputer.transform(pl.DataFrame(mixed)))
    assert columns(imputer.transform(pa.table(mixed))) == expected
    frame = pd.DataFrame(mixed).astype({"visits": "Int64", "smoker": "boolean"})
    assert list(columns(imputer.transform(frame)).values()) == list(expected.values())


KINDS = ("real", "positive", "integer", "count", "binary", "ordinal", "categorical")


@pytest.fixture(scope="module")
def every_kind():
    """A column of each kind, named after the kind."""
    rng = np.random.default_rng(9)
    z = rng.normal(size=30)
    full = {
        "real": z.tolist(),
        "positive": np.exp(z).tolist(),
        "integer": np.rint(5 * z).astype(int).tolist(),
        "count": rng.poisson(np.exp(z)).tolist(),
        "binary": (z > 0).tolist(),
        "ordinal": [("low", "mid", "high")[int(v > -0.5) + int(v > 0.5)] for v in z],
        "categorical": rng.choice(["red", "green", "blue"], 30).tolist(),
    }
    missing = rng.random((len(full), 30)) < 0.25
    return pl.DataFrame(
        {
            name: [None if gone else cell for cell, gone in zip(cells, mask, strict=True)]
            for (name, cells), mask in zip(full.items(), missing, strict=True)
        }
    )


@pytest.mark.filterwarnings("ignore:Predictors are left out")
def test_every_kind(algorithm, every_kind):
    imputer = algorithm(kinds={kind: kind for kind in KINDS})
    check(imputer, every_kind)
    assert [column.kind for column in imputer.schema_.columns] == list(KINDS)
    for filled in [imputer.transform(every_kind), *imputer.sample(every_kind, n=5)]:
        assert (filled["positive"] > 0).all()
        assert (filled["count"] >= 0).all()
        assert set(filled["ordinal"]) == {"low", "mid", "high"}
        assert set(filled["categorical"]) == {"red", "green", "blue"}
