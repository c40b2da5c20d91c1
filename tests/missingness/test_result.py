"""Tables of all libraries, tables with little to describe, bad input, and the text."""

import json
from datetime import date, timedelta

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import psmvae
from psmvae.table import StrayTextWarning, UnsupportedColumnError, UnsupportedColumnsError

FRAMES = ("rates", "patterns", "flux", "predictors", "joint")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["x", "y", "z"])
    frame["group"] = rng.choice(["a", "b", "c"], 200)
    frame["smoker"] = rng.random(200) < 0.5
    frame.loc[frame["x"] > 0.5, "y"] = np.nan
    frame.loc[:30, "group"] = None
    return frame


def test_frames_are_those_of_the_table(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    expected = psmvae.missingness(frame)
    for made, kind in ((pl.from_arrow(table), pl.DataFrame), (table, pa.Table)):
        found = psmvae.missingness(made)
        assert str(found) == str(expected)
        for name in FRAMES:
            assert isinstance(getattr(expected, name), pd.DataFrame)
            assert isinstance(getattr(found, name), kind)


def test_array(frame):
    found = psmvae.missingness(frame[["x", "y", "z"]].to_numpy())
    assert found.rates["column"].tolist() == ["x0", "x1", "x2"]
    assert found.little == psmvae.missingness(frame[["x", "y", "z"]]).little


def test_text_states_the_null_and_claims_no_proof(frame):
    found = psmvae.missingness(frame)
    text = " ".join(str(found).split())
    assert repr(found) == str(found) == found.summary()
    for part in (
        "200 rows, 5 columns",
        "Null hypothesis: values are missing completely at random",
        "Null hypothesis: an area of 0.5",
        "Effect size",
        "not adjusted for their number",
        "These data cannot tell whether a cell is missing because of its own value",
    ):
        assert part in text
    assert "the data speak against MCAR" in text
    for claim in ("prove", "proof", "shows that"):
        assert claim not in text
    assert max(map(len, str(found).splitlines())) <= 120


def test_text_without_evidence_says_so():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 3))
    x[rng.random(x.shape) < 0.2] = np.nan
    assert "no evidence against MCAR. That is no evidence for it" in " ".join(
        str(psmvae.missingness(x)).split()
    )


def test_table_without_missing_cells(frame):
    found = psmvae.missingness(frame[["x", "z"]])
    assert str(found) == "Missing values\n  200 rows, 2 columns: no cell is missing."
    assert found.n_missing == 0
    assert found.patterns["pattern"].tolist() == ["11"]
    assert len(found.predictors) == len(found.joint) == 0
    assert found.flux["outflux"].isna().all()


def test_single_column():
    found = psmvae.missingness(pd.DataFrame({"x": [1.0, np.nan, 3.0]}))
    assert found.rates["n_missing"].tolist() == [1]
    assert found.flux[["influx", "outflux"]].isna().all(axis=None)
    assert "Not available" in str(found)


def test_column_without_a_value(frame):
    found = psmvae.missingness(frame.assign(void=np.nan))
    assert "No value was observed of void." in str(found)
    assert "void" not in set(found.predictors["predictor"]) | set(found.predictors["column"])


def test_every_cell_missing():
    found = psmvae.missingness(np.full((4, 2), np.nan))
    assert found.n_missing == 8
    assert "Not available" in str(found)


def test_wide_table_has_no_joint_models():
    x = np.random.default_rng(2).normal(size=(30, 101))
    x[:12, 0] = np.nan
    found = psmvae.missingness(x)
    assert len(found.joint) == 0
    assert "more than 100 columns" in str(found)
    assert "and 81 more columns" in str(found)


def test_dict_is_plain(frame):
    found = psmvae.missingness(frame).to_dict()
    assert json.loads(json.dumps(found))["rates"]["column"] == list(frame)
    assert set(found["little"]) >= {"statistic", "df", "p_value", "ratio", "distance"}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame(index=range(3)), "0 feature"),
        (pd.DataFrame({"x": []}), "0 sample"),
        (pd.DataFrame({"x": [1.0, np.inf]}), "'x' contains infinity"),
        (np.array([1.0, np.nan]), "Expected 2D"),
    ],
)
def test_bad_tables(table, message):
    with pytest.raises(ValueError, match=message):
        psmvae.missingness(table)


def test_all_unsupported_columns_are_named():
    days = pd.to_timedelta([1, None], unit="D")
    with pytest.raises(UnsupportedColumnsError, match=r"(?s)'from'.*'to'"):
        psmvae.missingness(pd.DataFrame({"from": days, "to": days}))
    with pytest.raises(UnsupportedColumnError, match="'from' is of type"):
        psmvae.missingness(pd.DataFrame({"from": days}))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_dates_are_numbers(library):
    rng = np.random.default_rng(0)
    days = rng.integers(0, 1000, 200)
    values = {"y": np.where(days > 600, None, rng.normal(size=200)).tolist()}
    plain = {"day": [None if k < 20 else float(day) for k, day in enumerate(days)], **values}
    dates = [None if k < 20 else date(2020, 1, 1) + timedelta(int(day))
             for k, day in enumerate(days)]  # fmt: skip
    make = {
        "pandas": lambda d: pd.DataFrame({"day": pd.to_datetime(d["day"])} | values),
        "polars": pl.DataFrame,
        "pyarrow": pa.table,
    }[library]
    found = psmvae.missingness(make({"day": dates, **values}))
    # the fraction keeps the days from being integers
    plain["day"] = [None if day is None else day + 0.5 for day in plain["day"]]
    expected = psmvae.missingness(pd.DataFrame(plain).astype({"y": float}))
    assert found.little.statistic == pytest.approx(expected.little.statistic, rel=1e-6)
    for name in ("rates", "predictors", "joint"):
        one, other = (nw.from_native(getattr(each, name)).to_pandas() for each in (found, expected))
        pd.testing.assert_frame_equal(one, other, check_dtype=False, rtol=1e-6)


@pytest.mark.parametrize("max_rows", [0, 99, -1])
def test_bad_limit(max_rows):
    with pytest.raises(ValueError, match="max_rows must be an integer of at least 100"):
        psmvae.missingness([[1.0, 2.0]], max_rows=max_rows)


def test_codes_of_missing_values_are_reported():
    frame = pd.DataFrame({"x": [str(i) for i in range(40)] + ["?"] * 3, "y": range(43)})
    with pytest.warns(StrayTextWarning, match=r"\?"):
        psmvae.missingness(frame)


def test_the_function_loads_neither_torch_nor_the_command_line(python):
    code = (
        "import sys, psmvae\n"
        "print(psmvae.missingness([[1.0, 2.0], [2.0, float('nan')], [3.0, 5.0]]).n_missing)\n"
        "print([n for n in ('torch', 'rich', 'matplotlib', 'psmvae.imputers') if n in sys.modules])"
    )
    assert python(code).splitlines() == ["1", "[]"]
