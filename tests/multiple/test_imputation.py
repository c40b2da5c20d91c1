"""Completed tables as data: analyses, long format."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from psmvae import MICEImputer, MultipleImputation


def incomplete() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.normal(size=60)
    frame = pd.DataFrame({"a": a, "b": 2 * a + rng.normal(size=60), "n": rng.integers(0, 9, 60)})
    frame["g"] = np.where(a > 0, "x", "y")
    return frame.mask(rng.random(frame.shape) < 0.2)


def imputed(table, m=3):
    return MICEImputer(sample_posterior=True, random_state=0).fit(table).impute_multiple(table, m=m)


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
    imputer = MICEImputer(sample_posterior=True, random_state=0).fit(table)
    mi = imputer.impute_multiple(table, m=3)
    assert len(mi) == mi.m == 3
    for ours, theirs in zip(mi, imputer.sample(table, n=3), strict=True):
        assert type(ours) is type(table)
        assert bool(np.all(np.asarray(ours) == np.asarray(theirs)))
    np.testing.assert_array_equal(mi.mask, incomplete().isna().to_numpy())
    assert mi.info["imputer"] == "MICEImputer"


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


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda f: f.drop(columns=".imp"), "absent"),
        (lambda f: f[f[".imp"] > 0], "imputation 0"),
        (lambda f: f.iloc[:-1], "differ in their rows"),
    ],
)
def test_other_tables_are_not_read_as_long(change, match):
    with pytest.raises(ValueError, match=match):
        MultipleImputation.from_long(change(imputed(incomplete()).to_long()))
