"""Completed tables as data: analyses, long format."""

import warnings
from pathlib import Path

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from psmvae import MICEImputer, MultipleImputation
from psmvae.multiple import Analyses, read_estimates
from psmvae.multiple.complete_cases import complete_rows


def incomplete() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.normal(size=60)
    frame = pd.DataFrame({"a": a, "b": 2 * a + rng.normal(size=60), "n": rng.integers(0, 9, 60)})
    frame["g"] = np.where(a > 0, "x", "y")
    return frame.mask(rng.random(frame.shape) < 0.2)


def imputed(table, m=3):
    return MICEImputer(random_state=0).fit(table).impute_multiple(table, m=m)


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def table(request):
    frame = incomplete()
    clean = frame.astype(object).where(frame.notna(), None)
    columns = {name: clean[name].tolist() for name in clean}
    return {
        "pandas": lambda: frame,
        "polars": lambda: pl.DataFrame(columns),
        "pyarrow": lambda: pa.table(columns),
    }[request.param]()


def test_tables_are_those_of_sample(table):
    imputer = MICEImputer(random_state=0).fit(table)
    mi = imputer.impute_multiple(table, m=3)
    assert len(mi) == mi.m == 3
    for ours, theirs in zip(mi, imputer.sample(table, n=3), strict=True):
        assert type(ours) is type(table)
        assert bool(np.all(np.asarray(ours) == np.asarray(theirs)))
    np.testing.assert_array_equal(mi.mask, incomplete().isna().to_numpy())
    assert mi.info["imputer"] == "MICEImputer"
    assert mi.info["random_state"] == 0
    assert "draws" not in mi.info
    assert "Made with random_state = 0, psmvae" in repr(mi)
    again = imputer.impute_multiple(table, m=3, random_state=5)
    assert again.info["draws"] == 5
    assert "random_state of the draws = 5" in repr(again)


def test_the_long_format_is_read_back(table):
    mi = imputed(table)
    long = mi.to_long()
    assert type(long) is type(table)
    names = list(getattr(long, "column_names", getattr(long, "columns", ())))
    assert names == [".imp", ".id", "a", "b", "n", "g"]
    again = MultipleImputation.from_long(long)
    assert again.m == mi.m
    np.testing.assert_array_equal(again.mask, mi.mask)
    for ours, theirs in zip(again, mi, strict=True):
        assert bool(np.all(np.asarray(ours) == np.asarray(theirs)))


def test_arrays_have_a_long_format():
    array = incomplete()[["a", "b"]].to_numpy()
    assert imputed(array).to_long().shape == (4 * 60, 4)


@pytest.mark.parametrize("bootstrap", [None, 2])
@pytest.mark.parametrize("library", ["pandas", "polars", "numpy"])
def test_an_analysis_may_change_its_table(library, bootstrap):
    frame = incomplete()[["a", "b"]]
    table = {"pandas": frame, "polars": pl.from_pandas(frame), "numpy": frame.to_numpy()}[library]
    mi = imputed(table)
    before = [np.array(each) for each in mi]

    def changing(table):
        if library == "pandas":
            table["c"] = 0.0
            table.loc[:, "a"] = 1.0
        elif library == "polars":
            table[0, "a"] = 1.0
            table.insert_column(0, pl.lit(0.0).alias("c"))
        else:
            table[:] = 1.0
        return {"one": (1.0, 1.0)}

    mi.analyse(changing, bootstrap=bootstrap)
    for each, expected in zip(mi, before, strict=True):
        np.testing.assert_array_equal(each, expected)


def test_analyses_in_processes_equal_those_here():
    mi = imputed(incomplete())
    seen = []
    here = mi.analyse(analysis, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert list(mi.analyse(analysis, n_jobs=2)) == list(here)
    summary = here.pool(dfcom=59).summary()
    assert summary["conf_low"][0] < summary["estimate"][0] < summary["conf_high"][0]


def analysis(frame):
    return {"mean of a": (frame["a"].mean(), frame["a"].var() / len(frame))}


def test_analyses_of_polars_give_polars():
    mi = imputed(pl.from_pandas(incomplete()[["a", "b"]]))
    assert isinstance(mi.analyse(analysis).pool().summary(), pl.DataFrame)


def slopes(table):
    frame = nw.from_native(table)
    x, y = frame["a"].to_numpy(), frame["b"].to_numpy()
    slope, intercept = np.polyfit(x, y, 1)
    return {"intercept": intercept, "slope": slope}


def test_the_bootstrap_gives_a_covariance(table):
    mi = imputed(table)
    fits = mi.analyse(slopes, bootstrap=300, random_state=0)
    for completed, found in zip(mi, fits, strict=True):
        frame = nw.from_native(completed)
        x, y = frame["a"].to_numpy(), frame["b"].to_numpy()
        # the sandwich estimator, which the bootstrap of rows estimates
        X = np.column_stack([np.ones(60), x])
        bread = np.linalg.inv(X.T @ X)
        residual = y - X @ bread @ X.T @ y
        expected = bread @ (X.T * residual**2) @ X @ bread
        np.testing.assert_allclose(found.variance, expected.diagonal(), rtol=0.3)
        assert found.covariance[0, 1] == found.covariance[1, 0]
        np.testing.assert_allclose(found.estimate, read_estimates(slopes(completed)).estimate)


def test_the_bootstrap_depends_on_the_seed_only():
    mi = imputed(incomplete())
    here, there = (
        mi.analyse(slopes, bootstrap=5, random_state=1, n_jobs=n_jobs) for n_jobs in (None, 2)
    )
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(one.covariance, other.covariance)
    other = mi.analyse(slopes, bootstrap=5, random_state=2)
    assert (here[0].covariance != other[0].covariance).any()


def test_bootstrap_samples_without_a_level_are_named():
    mi = imputed(incomplete())
    rare = {"y": 0}

    def analysis(frame):
        rare["y"] += 1
        return dict.fromkeys(("a", "b")[: 1 + (rare["y"] < 3)], 1.0)

    with pytest.raises(ValueError, match=r"the table and bootstrap sample 1 .*'b'"):
        mi.analyse(analysis, bootstrap=4)
    with pytest.raises(ValueError, match="at least 2 samples"):
        mi.analyse(slopes, bootstrap=1)


def test_how_many_imputations_of_its_own_analyses():
    mi = imputed(incomplete())
    fits = mi.analyse(analysis)
    assert mi.how_many(fits, cv=0.01, dfcom=59).m > mi.how_many(fits, cv=0.1, dfcom=59).m
    with pytest.raises(ValueError, match="2 tables"):
        mi.how_many(Analyses(fits[:2]))


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy"])
def test_the_incomplete_table_is_a_copy(library):
    frame = incomplete()[["a", "b"]]
    table = {"pandas": frame, "polars": pl.from_pandas(frame), "numpy": np.array(frame)}[library]
    mi = imputed(table)
    mask = mi.mask.copy()
    if library == "pandas":
        table["a"] = table["a"].fillna(0)
    elif library == "polars":
        table[0, "a"] = 0.0
        table.insert_column(0, pl.lit(0.0).alias("c"))
    else:
        table[:] = 0.0
    np.testing.assert_array_equal(MultipleImputation.from_long(mi.to_long()).mask, mask)


def test_slices_are_imputations_and_analyses():
    mi = imputed(incomplete(), m=4)
    fits = mi.analyse(analysis)
    some, of_some = mi[1:3], fits[1:3]
    assert isinstance(some, MultipleImputation)
    assert (some.m, some[0] is mi[1], some.original is mi.original) == (2, True, True)
    assert isinstance(of_some, Analyses)
    assert list(of_some) == list(some.analyse(analysis))
    assert of_some.complete_cases().terms == ("mean of a",)


def failing(table):
    if table["a"].iloc[0] > 0:
        raise ValueError("singular")
    return {"a": 1.0}


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("bootstrap", [None, 2])
def test_an_analysis_that_fails_names_the_imputation(n_jobs, bootstrap):
    frame = pd.DataFrame({"a": np.full(9, -1.0)})
    tables = (frame, frame, frame + 2, frame)
    mi = MultipleImputation(frame, tables, np.zeros((9, 1), dtype=bool))
    with pytest.raises(ValueError, match="singular") as caught:
        mi.analyse(failing, n_jobs=n_jobs, bootstrap=bootstrap)
    assert caught.value.__notes__ == ["analysis of imputation 3 of 4"]


def test_complete_cases_of_some_columns():
    mi = imputed(incomplete())
    fits = mi.analyse(lambda d: {"n": float(len(d))})
    frame = incomplete()
    assert fits.complete_cases().estimate[0] == len(frame.dropna())
    assert fits.complete_cases(["a", "n"]).estimate[0] == len(frame.dropna(subset=["a", "n"]))
    assert fits.complete_cases("a").estimate[0] == len(frame.dropna(subset=["a"]))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda mi: mi.analyse("y ~ x"), "analysis must be a function .* 'y ~ x'"),
        (lambda mi: mi.analyse(analysis, progress=True), "progress must be a function"),
        (lambda mi: mi.how_many(mi.analyse(analysis).pool()), "Analyses .* got PooledResults"),
        (lambda mi: mi.how_many([1.0] * 3), "Analyses .* got list"),
    ],
)
def test_arguments_of_wrong_types_are_type_errors(call, match):
    with pytest.raises(TypeError, match=match):
        call(imputed(incomplete()))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda f: f.drop(columns=".imp"), "absent"),
        (lambda f: f[f[".imp"] > 0], "imputation 0"),
        (lambda f: f.iloc[:-1], r"differ in their rows .* imputation 3 does not; 1 are"),
        (
            lambda f: f[np.arange(len(f)) != 5],
            r"imputation 1 has .id = 6 and imputation 0 does not",
        ),
        (lambda f: f.assign(**{".id": 1}), r"\.id = 1 occurs 60 times in imputation 0"),
        (lambda f: f.assign(**{".imp": f[".imp"].astype(str)}), "whole numbers"),
        (lambda f: f.assign(**{".imp": f[".imp"] / 2}), "whole numbers"),
    ],
)
def test_other_tables_are_not_read_as_long(change, match):
    with pytest.raises(ValueError, match=match):
        MultipleImputation.from_long(change(imputed(incomplete()).to_long()))


def test_a_table_with_the_keys_of_the_long_format_has_none():
    with pytest.raises(ValueError, match=r"rename \['.id'\]"):
        imputed(incomplete().rename(columns={"n": ".id"})).to_long()


def with_dates(library):
    """A table with an incomplete column of dates, which no imputer models."""
    frame = incomplete()[["a", "b"]].assign(day=pd.Timestamp("2020-01-01"))
    frame.loc[:4, "day"] = pd.NaT
    return as_library(frame, library)


def as_library(frame, library):
    return {
        "pandas": lambda: frame,
        "polars": lambda: pl.from_pandas(frame),
        "pyarrow": lambda: pa.Table.from_pandas(frame, preserve_index=False),
    }[library]()


LIBRARIES = ["pandas", "polars", "pyarrow"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_cells_that_stay_missing_were_not_imputed(library):
    frame = with_dates("pandas")
    numbers = imputed(frame[["a", "b"]])
    tables = [table.assign(day=frame["day"]) for table in numbers]
    long = pd.concat(
        [
            table.assign(**{".imp": k, ".id": np.arange(len(frame))})
            for k, table in enumerate([frame, *tables])
        ]
    )
    found = MultipleImputation.from_long(as_library(long, library)).mask
    np.testing.assert_array_equal(found[:, :2], numbers.mask)
    assert not found[:, 2].any()


def test_numbers_may_be_computed_in_rows_with_another_missing_number():
    long = pd.DataFrame(
        {
            ".imp": np.repeat([0, 1, 2], 3),
            ".id": [1, 2, 3] * 3,
            "a": [None, None, None, 1.0, -2.0, None, 2.0, 3.0, None],
            "log a": [None, 5.0, None, 0.0, None, None, np.log(2), np.log(3), None],
        }
    )
    found = MultipleImputation.from_long(long).mask
    assert found.tolist() == [[True, True], [True, True], [False, False]]


def test_derived_columns_are_read_back():
    frame = incomplete()[["a", "b"]].assign(b=lambda f: f["b"].fillna(0))
    frame["sum"] = (frame["a"] + frame["b"]).fillna(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imputer = MICEImputer(random_state=0, derived={"sum": "a + b"}).fit(frame)
        mi = imputer.impute_multiple(frame, m=3)
    again = MultipleImputation.from_long(mi.to_long())
    np.testing.assert_array_equal(again.mask, mi.mask)
    assert mi.mask[:, 2].any()


def damaged(column, value, rows=slice(0, 1), library="pandas"):
    """The long table of two numbers and a text; some cells of imputation 2 are damaged."""
    frame = pd.DataFrame(
        {"a": [1.0, 2.0, np.nan, 4.0], "b": [1.5, 2.5, 3.5, np.nan], "g": ["x", None, "y", "x"]}
    )
    full = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [1.5, 2.5, 3.5, 4.5], "g": list("xyyx")})
    tables = [frame, full, full.copy(), full]
    tables[2].loc[tables[2].index[rows], column] = value
    keyed = [t.assign(**{".imp": k, ".id": [10, 11, 12, 13]}) for k, t in enumerate(tables)]
    return as_library(pd.concat(keyed, ignore_index=True), library)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("damage", "parts"),
    [
        (("a", 99.0), ["'a', .id = 10", "imputation 2 has 99.0, imputation 0 has 1.0", ": 1."]),
        (("g", "z"), ["'g', .id = 10", "imputation 2 has 'z', imputation 0 has 'x'"]),
        # numbers are not computed from texts
        (("a", 99.0, slice(1, 2)), ["'a', .id = 11", "imputation 2 has 99.0"]),
        # a text is not computed, also where another cell of the row is missing
        (("g", "z", slice(2, 3)), ["'g', .id = 12", "imputation 2 has 'z', imputation 0 has 'y'"]),
        (("b", np.nan, slice(0, 3)), ["'b', .id = 10", "imputation 2 is missing", "has 1.5"]),
        (("g", None, slice(1, 2)), ["'g', .id = 11", "imputation 2 is missing", "in all imputat"]),
        (("a", np.nan, slice(2, 3)), ["'a', .id = 12", "imputation 2 is missing", "in all"]),
    ],
)
def test_damaged_cells_name_column_row_and_imputation(damage, parts, library):
    assert MultipleImputation.from_long(damaged("a", 1.0, library=library)).mask.sum() == 3
    with pytest.raises(ValueError, match=r"\.id") as caught:
        MultipleImputation.from_long(damaged(*damage, library=library))
    assert all(part in str(caught.value) for part in parts), caught.value


def test_row_names_of_the_file_are_no_damage():
    mi = imputed(incomplete())
    long = mi.to_long().reset_index(drop=True)
    for names in (long.index, long.index.astype(str)):
        found = MultipleImputation.from_long(long.assign(X=names)).mask
        np.testing.assert_array_equal(found[:, :-1], mi.mask)
        assert not found[:, -1].any()


@pytest.mark.parametrize("library", LIBRARIES)
def test_shuffled_rows_are_ordered_by_their_keys(library):
    mi = imputed(incomplete())
    shuffled = mi.to_long().sample(frac=1, random_state=0)
    again = MultipleImputation.from_long(as_library(shuffled.reset_index(drop=True), library))
    order = shuffled.loc[shuffled[".imp"] == 0, ".id"].to_numpy() - 1
    np.testing.assert_array_equal(again.mask, mi.mask[order])
    for ours, theirs in zip(again, mi, strict=True):
        assert bool(np.all(np.asarray(ours) == np.asarray(theirs.iloc[order])))


@pytest.mark.parametrize("table", ["all.csv", Path("all.csv"), np.ones((4, 3)), {".imp": [0, 1]}])
def test_a_long_table_is_a_frame(table):
    with pytest.raises(TypeError, match=r"frame of pandas, polars or Arrow, got .*read_csv"):
        MultipleImputation.from_long(table)


@pytest.mark.parametrize("library", LIBRARIES)
def test_complete_rows_of_columns_of_any_type(library):
    frame = with_dates("pandas")
    table = with_dates(library)
    assert len(complete_rows(table)) == len(frame.dropna())
    assert len(complete_rows(table, ["day"])) == len(frame) - 5
    assert len(complete_rows(table, "day")) == len(frame) - 5
    assert len(complete_rows(table, "a")) == frame["a"].notna().sum()
    assert len(complete_rows(table, [])) == len(frame)


def test_complete_rows_of_an_array_with_dates():
    frame = with_dates("pandas")
    assert len(complete_rows(frame.to_numpy(dtype=object))) == len(frame.dropna())
    assert len(complete_rows(frame.to_numpy(dtype=object), "x2")) == len(frame) - 5
    numbered = frame.set_axis([0, 1, 2], axis=1)
    pd.testing.assert_frame_equal(complete_rows(numbered), numbered.dropna())
