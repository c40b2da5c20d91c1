"""Counts, patterns, correlations of masks and the map of rows against independent computations."""

import json

import numpy as np
import pandas as pd
import pytest

import psmvae
from psmvae.reporting import schema
from psmvae.reporting.data.columns import read_columns
from psmvae.reporting.data.mechanism import mechanism_data
from psmvae.reporting.data.missing import missing_data
from psmvae.reporting.data.relations import mask_relations
from psmvae.reporting.data.table import sampled_rows, shown_columns, table_data
from report.example import (
    check_type,
    dates_table,
    hostile_table,
    in_library,
    mixed_table,
    report_data,
    wide_table,
)


@pytest.fixture(scope="module")
def frame():
    return mixed_table()


@pytest.fixture(scope="module")
def relations(frame):
    return mask_relations(frame)


@pytest.fixture(scope="module")
def made(frame, relations):
    return missing_data(frame, report=relations)


def is_plain(data, annotation):
    check_type(data, annotation)
    return json.loads(json.dumps(data, allow_nan=False)) == data


@pytest.mark.parametrize("table", [mixed_table, hostile_table, dates_table])
def test_a_complete_report_matches_the_schema(table):
    assert is_plain(report_data(table()), schema.ReportData)


def test_the_type_checker_finds_faults(frame):
    data = table_data(frame)
    for name, wrong in (("n_rows", 1.0), ("n_rows", True), ("shown", ("a",)), ("shown", [1])):
        with pytest.raises(AssertionError):
            check_type({**data, name: wrong}, schema.TableData)
    with pytest.raises(AssertionError):
        check_type({**data, "more": 1}, schema.TableData)


def test_table_counts(frame):
    missing = frame.isna()
    made = table_data(frame, max_rows=100)
    assert is_plain(made, schema.TableData)
    assert made["n_rows"] == len(frame)
    assert made["n_cells"] == frame.size
    assert made["n_missing"] == missing.sum().sum()
    assert made["n_complete_rows"] == 0
    assert made["n_incomplete_columns"] == missing.any().sum()
    assert made["n_sampled"] == 100
    assert sorted(made["shown"]) == sorted(frame)
    rates = missing.mean()[made["shown"]]
    assert rates.is_monotonic_decreasing


def test_the_worst_columns_of_a_wide_table_are_shown():
    frame = wide_table()
    shown = table_data(frame)["shown"]
    rates = frame.isna().mean()
    assert len(shown) == 60
    assert rates[shown].min() >= rates.drop(shown).max()
    assert shown_columns(frame, 3) == shown[:3]


def test_sampled_rows_are_seeded_and_ordered():
    rows = sampled_rows(1000, 50, 3)
    assert len(set(rows.tolist())) == 50
    assert (np.diff(rows) > 0).all()
    assert rows.tolist() == sampled_rows(1000, 50, 3).tolist()
    assert rows.tolist() != sampled_rows(1000, 50, 4).tolist()
    assert sampled_rows(10, 50).tolist() == list(range(10))


@pytest.mark.parametrize("library", ["polars", "pyarrow", "numpy"])
def test_tables_of_all_libraries(frame, made, library):
    table = in_library(frame, library)
    found = missing_data(table)
    assert is_plain(found, schema.MissingData)
    rates = [(one["n_missing"], one["influx"]) for one in found["columns"]]
    assert rates == [(one["n_missing"], one["influx"]) for one in made["columns"]]
    assert found["patterns"]["rows"] == made["patterns"]["rows"]
    assert found["row_map"]["fraction"] == made["row_map"]["fraction"]
    assert found["little"]["p_value"] == pytest.approx(made["little"]["p_value"], abs=0.02)


def test_rates_and_flux_are_those_of_missingness(frame, made):
    found = psmvae.missingness(frame)
    expected = found.rates.merge(found.flux, on="column")
    columns = pd.DataFrame(made["columns"])
    assert columns["name"].tolist() == list(frame)
    assert columns["kind"].tolist() == expected["kind"].tolist()
    for name in ("n_missing", "fraction", "influx", "outflux"):
        np.testing.assert_allclose(columns[name].astype(float), expected[name])


def test_patterns_are_counted(frame, made):
    patterns = made["patterns"]
    names = patterns["columns"]
    counts = frame.isna().sum()
    assert set(names) == set(counts[counts > 0].index)
    assert counts[names].is_monotonic_increasing
    found = frame[names].notna().value_counts()
    assert patterns["n_patterns"] == len(found)
    assert len(patterns["rows"]) == 25
    numbers = [row["n"] for row in patterns["rows"]]
    assert numbers == sorted(numbers, reverse=True)
    for row in patterns["rows"]:
        assert row["n"] == found[tuple(row["observed"])]
        assert row["fraction"] == row["n"] / len(frame)
        assert row["n_missing"] == row["observed"].count(False)


def test_correlations_are_those_of_pandas(frame, made):
    correlation = made["correlation"]
    names = correlation["columns"]
    missing = frame.isna()
    varying = missing.columns[missing.any() & ~missing.all()]
    assert sorted(names) == sorted(varying)
    expected = missing[names].astype(float).corr().to_numpy()
    np.testing.assert_allclose(np.array(correlation["values"]), expected, atol=1e-12)


def test_similar_masks_are_neighbours():
    rng = np.random.default_rng(0)
    mask = rng.random((400, 3)) < 0.3
    missing = np.column_stack([mask, mask ^ (rng.random(mask.shape) < 0.02)])
    frame = pd.DataFrame(np.where(missing, np.nan, rng.normal(size=missing.shape)))
    order = [int(name) for name in missing_data(frame)["correlation"]["columns"]]
    assert all(abs(order.index(j) - order.index(j + 3)) == 1 for j in range(3))


@pytest.mark.parametrize("n_rows", [1, 7, 100, 101, 12_345])
def test_row_map(n_rows):
    rng = np.random.default_rng(0)
    x = np.where(rng.random((n_rows, 3)) < 0.4, np.nan, 1.0)
    x[:, 0], x[0, 1], x[0, 2] = 2.0, np.nan, np.nan
    found = missing_data(x)["row_map"]
    assert found["columns"] == ["x1", "x2"]
    ends = [*found["first_row"][1:], n_rows]
    assert found["first_row"][0] == 0
    assert len(ends) == min(n_rows, 100)
    for start, end, row in zip(found["first_row"], ends, found["fraction"], strict=True):
        np.testing.assert_allclose(row, np.isnan(x[start:end, 1:]).mean(0))


def test_little_is_that_of_missingness():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    x[x[:, 0] > 0.5, 1] = np.nan
    x[rng.random(300) < 0.2, 2] = np.nan
    report = psmvae.missingness(x)
    found = missing_data(x)["little"]
    assert found["statistic"] == pytest.approx(report.little.statistic, rel=1e-3)
    assert found["df"] == report.little.df
    assert found["sentence"] == missing_data(x, report=report)["little"]["sentence"]
    assert "speaks against values missing completely at random" in found["sentence"]
    assert "p < 0.001; 300 rows" in found["sentence"]


def test_little_without_a_result_says_why():
    found = missing_data(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert found["little"]["p_value"] is None
    assert found["little"]["sentence"].startswith("Little's test is not available: the rows have")
    assert found["patterns"] == {
        "columns": [],
        "rows": [{"observed": [], "n": 2, "fraction": 1.0, "n_missing": 0}],
        "n_patterns": 1,
    }
    assert found["correlation"] == {"columns": [], "values": []}


def test_a_wide_table_tests_some_columns_and_says_so():
    frame = wide_table()
    relations = mask_relations(frame)
    assert relations.n_tested == 20
    assert set(relations.predictors["column"]) <= set(shown_columns(frame))
    assert len(set(relations.predictors["predictor"])) > 60
    assert len(set(relations.joint["column"])) == 20
    made = missing_data(frame, report=relations)
    assert is_plain(made, schema.MissingData)
    assert len(made["columns"]) == 70
    assert len(made["row_map"]["columns"]) == 60
    assert is_plain(mechanism_data(frame, report=relations), schema.MechanismData)


def test_the_sentence_on_little_names_a_selection_of_columns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 24))
    x[rng.random(400) < 0.3, :3] = np.nan
    sentence = missing_data(x)["little"]["sentence"]
    assert "20 of 24 columns in 400 rows" in sentence


@pytest.mark.parametrize(
    "x",
    [np.full((4, 2), np.nan), np.array([[1.0], [np.nan], [3.0]]), np.array([[np.nan]])],
    ids=["all missing", "one column", "one cell"],
)
def test_tables_with_little_to_describe(x):
    assert is_plain(missing_data(x), schema.MissingData)


def test_columns_that_no_imputer_models_have_masks():
    frame = dates_table()
    columns = read_columns(frame)
    assert columns.kinds == ("other", "real", "other")
    np.testing.assert_array_equal(columns.missing, frame.isna().to_numpy())
    assert read_columns(columns) is columns


def test_infinity_is_an_error():
    with pytest.raises(ValueError, match="'x' contains infinity"):
        table_data(pd.DataFrame({"x": [1.0, np.inf]}))


def test_neither_torch_nor_a_frame_library_is_needed(python):
    code = (
        "import sys\n"
        "from psmvae.reporting.data import imputed, mechanism, missing, table\n"
        "made = missing.missing_data([[1.0, 2.0], [2.0, float('nan')], [3.0, 5.0]])\n"
        "print([n for n in ('torch', 'pandas', 'matplotlib', 'polars') if n in sys.modules])"
    )
    assert python(code).strip() == "[]"


def test_patterns_are_those_of_all_columns():
    frame = wide_table()
    lacking = frame.isna()
    made = missing_data(frame, shown=["column 69", "column 0"])["patterns"]
    assert made["n_patterns"] == len(lacking.drop_duplicates())
    assert set(made["columns"]) == set(lacking.columns[lacking.any()])
    assert made["rows"][0]["n_missing"] == made["rows"][0]["observed"].count(False)
    complete = [row["n"] for row in made["rows"] if not row["n_missing"]]
    assert sum(complete) == (~lacking.any(axis=1)).sum()
