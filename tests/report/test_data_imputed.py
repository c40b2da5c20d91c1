"""Densities, bars, strips, scatter plots and the head against independent computations."""

import json
from decimal import Decimal

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.integrate import trapezoid
from scipy.stats import gaussian_kde

from psmvae import MICEImputer, MultipleImputation
from psmvae.reporting import schema
from psmvae.reporting.data.columns import read_columns
from psmvae.reporting.data.density import density_data
from psmvae.reporting.data.head import cell_text
from psmvae.reporting.data.imputed import imputed_data
from report.example import (
    HOSTILE_NAMES,
    check_type,
    dates_table,
    hostile_table,
    imputations,
    in_library,
    mixed_table,
    wide_table,
)


@pytest.fixture(scope="module")
def frame():
    return mixed_table()


@pytest.fixture(scope="module")
def mi(frame):
    return imputations(frame, m=4)


@pytest.fixture(scope="module")
def made(mi):
    return imputed_data(mi)


def is_plain(data):
    check_type(data, schema.ImputedData)
    return json.loads(json.dumps(data, allow_nan=False)) == data


def by_name(data):
    return {column["name"]: column for column in data["columns"]}


def of_numbers(observed, *imputed):
    """Impute the missing last cells of one column by the given values."""
    n = len(imputed[0])
    original = pd.DataFrame({"x": [*observed, *[None] * n]}, dtype=float)
    tables = [pd.DataFrame({"x": [*observed, *values]}, dtype=float) for values in imputed]
    mask = original.isna().to_numpy()
    return MultipleImputation(original, tuple(tables), mask, {"imputer": "given"})


def test_columns_with_imputed_cells(frame, mi, made):
    assert is_plain(made)
    assert made["imputer"] == "HotDeck"
    assert made["m"] == 4
    missing = frame.isna().sum()
    expected = missing[(missing > 0) & (missing < len(frame))]
    assert {name: column["n_imputed"] for name, column in by_name(made).items()} == dict(expected)
    counts = [column["n_imputed"] for column in made["columns"]]
    assert counts == sorted(counts, reverse=True)
    numeric = {column["name"] for column in made["columns"] if column["bars"] is None}
    assert numeric == {"income", "visits", "constant"}


def test_summaries_are_those_of_pandas(frame, mi, made):
    for name in ("income", "visits"):
        column, missing = by_name(made)[name], frame[name].isna()
        pooled = pd.concat([table.loc[missing, name] for table in mi.tables]).astype(float)
        for found, values in ((column["observed"], frame[name]), (column["imputed"], pooled)):
            assert found["mean"] == pytest.approx(values.mean())
            assert found["sd"] == pytest.approx(values.std())
            assert found["low"] == values.min()
            assert found["high"] == values.max()
        assert column["observed"]["n"] == frame[name].notna().sum()
        assert column["imputed"]["n"] == missing.sum()
        assert column["n_outside"] == 0


def test_values_out_of_range_are_counted_in_all_imputations():
    made = imputed_data(of_numbers([1.0, 2.0, 3.0], [0.5, 2.0, 9.0], [1.0, 3.0, 3.01]))
    assert made["columns"][0]["n_outside"] == 3


@pytest.mark.parametrize("name", ["smoker", "city", "health", "group", "code"])
def test_bars_are_fractions_of_levels(frame, mi, made, name):
    bars = by_name(made)[name]["bars"]
    missing = frame[name].isna()

    def fractions(values):
        text = values.dropna().map(lambda value: f"{value:g}" if name == "code" else str(value))
        return (
            text.astype(object).value_counts(normalize=True).reindex(bars["levels"], fill_value=0)
        )

    np.testing.assert_allclose(bars["observed"], fractions(frame[name]))
    each = np.array([fractions(table.loc[missing, name]) for table in mi.tables])
    np.testing.assert_allclose(bars["imputed"], each.mean(0))
    np.testing.assert_allclose(bars["imputed_low"], each.min(0))
    np.testing.assert_allclose(bars["imputed_high"], each.max(0))
    assert sum(bars["observed"]) == pytest.approx(1)


def test_levels_keep_the_order_of_the_data_type(made):
    assert by_name(made)["health"]["bars"]["levels"] == ["bad", "fair", "good"]
    assert by_name(made)["code"]["bars"]["levels"] == ["0", "1"]
    assert by_name(made)["smoker"]["bars"]["levels"] == ["False", "True"]


def test_rare_levels_are_summed():
    levels = [f"level {k}" for k in range(50)]
    original = pd.DataFrame({"x": [*levels, *["often"] * 30, None, None]})
    table = original.fillna("new level")
    mask = original.isna().to_numpy()
    column = imputed_data(MultipleImputation(original, (table,), mask))["columns"][0]
    assert len(column["bars"]["levels"]) == 21
    assert column["bars"]["levels"][-1] == "32 other levels"
    assert sum(column["bars"]["observed"]) == pytest.approx(1)
    assert column["n_outside"] == 2


@pytest.mark.parametrize("library", ["polars", "pyarrow", "numpy"])
def test_tables_of_all_libraries(mi, made, library):
    tables = [in_library(table, library) for table in (mi.original, *mi.tables)]
    found = imputed_data(MultipleImputation(tables[0], tuple(tables[1:]), mi.mask, mi.info))
    assert is_plain(found)
    assert len(found["columns"]) == len(made["columns"])
    assert found["head"]["imputed"] == made["head"]["imputed"]
    for one, other in zip(found["columns"], made["columns"], strict=True):
        for part in ("n_imputed", "n_outside", "observed", "imputed", "density", "strip"):
            assert one[part] == other[part]
        if other["bars"] is not None:
            # the order of levels without a categorical data type is that of their texts
            assert sorted(one["bars"]["levels"]) == sorted(other["bars"]["levels"])
            assert sorted(one["bars"]["observed"]) == sorted(other["bars"]["observed"])


def odd_types():
    """Return a polars frame of types that NumPy does not have, and the same without holes."""
    n = 40
    holes = [k % 6 == 0 for k in range(n)]
    texts = [None if hole else f"t{k % 3}" for k, hole in enumerate(holes)]
    quarter = Decimal("0.25")
    decimals = [None if hole else k * quarter for k, hole in enumerate(holes)]
    frame = pl.DataFrame(
        {
            "decimal": pl.Series(decimals, dtype=pl.Decimal(10, 2)),
            "category": pl.Series(texts, dtype=pl.Categorical),
            "enum": pl.Series(texts, dtype=pl.Enum(["t2", "t1", "t0"])),
            "bool": [None if hole else k % 5 == 0 for k, hole in enumerate(holes)],
            "nan": [float("nan") if hole else 2.5 * k for k, hole in enumerate(holes)],
            "null": pl.Series([None] * n),
        }
    )
    text, number = pl.lit("t1"), pl.lit(Decimal("3.00"))
    full = frame.with_columns(
        pl.col("decimal").fill_null(number),
        pl.col("category", "enum").fill_null(text),
        pl.col("bool").fill_null(value=True),
        pl.col("nan").fill_nan(3.0),
    )
    mask = np.column_stack([*[holes] * 5, [False] * n])
    return frame, full, mask


@pytest.mark.parametrize(
    "convert", [lambda t: t, lambda t: t.to_arrow(), nw.from_native], ids=["pl", "pa", "nw"]
)
def test_types_of_other_libraries(convert):
    original, full, mask = odd_types()
    mi = MultipleImputation(convert(original), (convert(full),), mask)
    made = imputed_data(mi)
    assert is_plain(made)
    columns = by_name(made)
    assert set(columns) == {"decimal", "category", "enum", "bool", "nan"}
    assert columns["decimal"]["imputed"]["mean"] == columns["nan"]["imputed"]["mean"] == 3
    assert columns["enum"]["bars"]["levels"] == ["t2", "t1", "t0"]
    for name in ("category", "enum"):
        bars = columns[name]["bars"]
        assert bars["imputed"][bars["levels"].index("t1")] == 1


@pytest.mark.parametrize("dtype_backend", ["numpy_nullable", "pyarrow"])
def test_types_of_pandas_extensions(dtype_backend):
    frame = pd.DataFrame(
        {
            "whole": pd.Series([None if k % 5 == 0 else k * k for k in range(40)], dtype=object),
            "text": pd.Series([None if k % 6 == 0 else f"t{k % 3}" for k in range(40)]),
            "real": [np.nan if k % 7 == 0 else k / 3 for k in range(40)],
        }
    ).convert_dtypes(dtype_backend=dtype_backend)
    mi = imputations(frame, m=1)
    columns = by_name(imputed_data(mi))
    for name in ("whole", "real"):
        imputed = mi.tables[0].loc[frame[name].isna(), name].astype(float)
        assert columns[name]["imputed"]["mean"] == pytest.approx(imputed.mean())
    assert columns["text"]["bars"]["levels"] == ["t0", "t1", "t2"]


def test_rows_in_lists():
    rows = [[1.0, None], [2.0, 3.0], [3.5, 4.0]]
    filled = [[1.0, 2.0], [2.0, 3.0], [3.5, 4.0]]
    mask = np.array([[False, True], [False, False], [False, False]])
    made = imputed_data(MultipleImputation(rows, (filled,), mask))
    assert by_name(made)["x1"]["imputed"]["mean"] == 2


def test_labels_that_are_no_texts():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=[7, ("a", 1)])
    frame.iloc[:5, 0] = np.nan
    mi = MultipleImputation(frame, (frame.fillna(0.5),), frame.isna().to_numpy())
    made = imputed_data(mi)
    assert is_plain(made)
    assert [column["name"] for column in made["columns"]] == ["7"]


def test_density_is_that_of_scipy():
    rng = np.random.default_rng(0)
    observed, imputed = rng.normal(size=300), rng.normal(1, 2, size=80)
    made = density_data(observed, [imputed])
    assert len(made["x"]) == 100
    for values, found in ((observed, made["observed"]), (imputed, made["imputed"][0])):
        quartiles = np.subtract(*np.quantile(values, (0.75, 0.25)))
        # bw.nrd0 of R, the default of density()
        width = 0.9 * min(values.std(ddof=1), quartiles / 1.34) * len(values) ** -0.2
        kde = gaussian_kde(values, width / values.std(ddof=1))
        np.testing.assert_allclose(found, kde(made["x"]), rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.normal(size=200),
        lambda rng: rng.normal(1e300, 1e298, size=50),
        lambda rng: 1e-300 * rng.normal(size=50),
        lambda rng: rng.poisson(3, 100).astype(float),
        lambda rng: rng.choice([0.0, 1e6], 40),
        lambda rng: np.array([1.0, 1.0, 1.0, 1.0, 2.0]),
        lambda rng: np.array([1.0, 2.0, 4.0]),
    ],
    ids=["Normal", "huge", "tiny", "counts", "two values", "mostly one value", "three values"],
)
def test_densities_integrate_to_one(draw):
    rng = np.random.default_rng(0)
    values = draw(rng)
    whole = bool((values == np.rint(values)).all())
    made = density_data(values, [draw(rng), draw(rng)], whole=whole)
    x = np.array(made["x"])
    # relative to the largest point, so that the integral neither overflows nor vanishes
    scale = np.abs(x).max()
    for curve in (made["observed"], *made["imputed"]):
        area = trapezoid(np.array(curve) * scale, x / scale)
        assert area == pytest.approx(1, abs=0.03)


def test_an_outlier_does_not_empty_the_grid():
    values = np.append(np.random.default_rng(0).normal(size=300), 1e9)
    made = density_data(values, [])
    assert max(made["x"]) < 20
    assert trapezoid(made["observed"], made["x"]) == pytest.approx(300 / 301, abs=0.02)


def test_extreme_values_are_finite():
    made = imputed_data(of_numbers([1.7e308, -1.7e308, 0.0, 1.0], [1.6e308, 2.0, -1e308]))
    assert is_plain(made)


@pytest.mark.parametrize(
    ("observed", "imputed"),
    [([1.0, 2.0], [1.0]), ([5.0] * 9, [5.0] * 4), ([0.0] * 9, [0.0] * 4)],
    ids=["few", "constant", "zero"],
)
def test_columns_without_a_density(observed, imputed):
    made = imputed_data(of_numbers(observed, imputed))
    assert is_plain(made)
    assert made["columns"][0]["density"] is None
    assert made["columns"][0]["strip"]["imputed"] == [imputed]


def test_too_few_imputed_cells_have_no_density():
    column = imputed_data(of_numbers([1.5, 2.0, 4.0, 5.0], [3.0, 2.0], [3.0, 1.0]))["columns"][0]
    assert column["density"]["imputed"] == []
    assert len(column["density"]["observed"]) == 100


def test_constant_imputations_have_a_density():
    column = imputed_data(of_numbers([1.5, 2.0, 4.0, 5.0], [3.0] * 4))["columns"][0]
    area = trapezoid(column["density"]["imputed"][0], column["density"]["x"])
    assert area == pytest.approx(1, abs=0.02)


def test_strips_are_samples_of_the_values(mi, frame, made):
    strip = by_name(made)["income"]["strip"]
    assert len(strip["imputed"]) == 4
    assert len(strip["observed"]) == min(200, frame["income"].notna().sum())
    known = {float(f"{value:.9g}") for value in frame["income"].dropna()}
    assert set(strip["observed"]) <= known
    assert strip == by_name(imputed_data(mi))["income"]["strip"]


def test_at_most_ten_densities_and_five_strips():
    rng = np.random.default_rng(0)
    made = imputed_data(of_numbers(rng.normal(size=9), *rng.normal(size=(12, 5))))
    assert made["m"] == 12
    assert len(made["columns"][0]["density"]["imputed"]) == 10
    assert len(made["columns"][0]["strip"]["imputed"]) == 5


@pytest.fixture(scope="module")
def correlated():
    rng = np.random.default_rng(0)
    z = rng.normal(size=60)
    frame = pd.DataFrame({"a": z, "b": z + 0.01 * rng.normal(size=60)})
    frame["c"] = frame["a"] + 0.5 * rng.normal(size=60)
    frame["d"] = rng.normal(size=60)
    frame["text"] = "t"
    for k, name in enumerate("acd"):
        frame.loc[10 * k : 10 * k + 4, name] = np.nan
    return imputations(frame, m=2)


def test_scatter_of_the_strongest_pair_with_imputed_cells(correlated):
    scatter = imputed_data(correlated)["scatters"][0]
    # a and b are more strongly related, but b is complete
    assert {scatter["x"], scatter["y"]} == {"a", "c"}
    table = correlated.tables[0][[scatter["x"], scatter["y"]]]
    lost = correlated.original[[scatter["x"], scatter["y"]]].isna().any(axis=1)
    np.testing.assert_allclose(scatter["imputed"], table[lost], rtol=1e-8)
    np.testing.assert_allclose(scatter["observed"], table[~lost], rtol=1e-8)


def test_scatter_with_one_imputed_column(correlated):
    frame = correlated.original[["a", "b"]]
    scatter = imputed_data(imputations(frame, m=1))["scatters"]
    assert [(one["x"], one["y"]) for one in scatter] == [("a", "b")]


def test_scatters_by_choice(correlated):
    made = imputed_data(correlated, pairs=[("b", "d"), ("d", "a")])
    assert [(one["x"], one["y"]) for one in made["scatters"]] == [("b", "d"), ("d", "a")]
    with pytest.raises(ValueError, match="no column 'e'"):
        imputed_data(correlated, pairs=[("a", "e")])
    with pytest.raises(ValueError, match="'text' is categorical"):
        imputed_data(correlated, pairs=[("a", "text")])


def test_no_pair_no_scatter():
    assert imputed_data(of_numbers([1.0, 2.0, 3.0], [2.0]))["scatters"] == []


def test_points_of_a_large_table_are_sampled():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 2))
    mask = np.zeros(x.shape, dtype=bool)
    mask[:2000, 0] = True
    mi = MultipleImputation(np.where(mask, np.nan, x), (x,), mask)
    scatter = imputed_data(mi, max_rows=4000)["scatters"][0]
    assert len(scatter["observed"]) == len(scatter["imputed"]) == 1000


def test_head_marks_imputed_cells(frame, mi, made):
    head = made["head"]
    assert head["columns"] == list(frame)
    assert head["row_numbers"] == list(range(10))
    assert np.array(head["imputed"]).tolist() == mi.mask[:10].tolist()
    first = mi.tables[0]
    j = head["columns"].index("city")
    assert [row[j] for row in head["cells"]] == first["city"][:10].tolist()
    j = head["columns"].index("visits")
    assert [row[j] for row in head["cells"]] == [str(value) for value in first["visits"][:10]]
    j = head["columns"].index("void")
    assert [row[j] for row in head["cells"]] == [""] * 10


def test_head_of_shown_columns_in_the_order_of_the_table():
    made = imputed_data(imputations(wide_table(), m=1))
    numbers = [int(name.split()[1]) for name in made["head"]["columns"]]
    assert len(numbers) == 60
    assert numbers == sorted(numbers)


def test_text_of_cells():
    assert cell_text(1234.56789) == "1234.57"
    assert cell_text(3) == "3"
    assert cell_text(True) == "True"
    assert cell_text(pd.NA) == cell_text(np.nan) == cell_text(pd.NaT) == ""
    assert cell_text("x" * 81) == "x" * 79 + "…"
    assert cell_text("x" * 80) == "x" * 80


def test_hostile_names_are_kept_as_text():
    frame = hostile_table()
    made = imputed_data(imputations(frame))
    assert is_plain(made)
    assert set(by_name(made)) == set(HOSTILE_NAMES)
    levels = by_name(made)[HOSTILE_NAMES[0]]["bars"]["levels"]
    assert sorted(levels) == sorted(HOSTILE_NAMES)


def test_dates_are_shown_as_text():
    frame = dates_table()
    made = imputed_data(imputations(frame))
    assert is_plain(made)
    assert made["head"]["cells"][0][made["head"]["columns"].index("date")].startswith("202")


def test_imputations_of_an_imputer(frame):
    some = frame[["age", "income", "city"]]
    imputer = MICEImputer(max_iter=2, bounds={"income": (0, 9000)}, random_state=0)
    mi = imputer.fit(some).impute_multiple(some, m=2)
    made = imputed_data(mi, columns=read_columns(some))
    assert is_plain(made)
    assert made["imputer"] == "MICEImputer"
    long = MultipleImputation.from_long(mi.to_long())
    again = imputed_data(long)
    assert again["imputer"] is None
    assert [one["density"] for one in again["columns"]] == [
        one["density"] for one in made["columns"]
    ]
