"""Random tables of any kinds: missing cells are filled and observed cells are unchanged."""

import math
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from contract.registry import ALGORITHMS, VARIANTS

pytestmark = pytest.mark.filterwarnings("ignore:imputed values outside the observed range")

WORDS = st.text(max_size=3)
KINDS = {
    "real": st.floats(-1e150, 1e150),
    "small": st.floats(-1e-3, 1e-3, allow_subnormal=False),
    "steps": st.sampled_from([0.5, 1.5, -2.25]),
    "whole": st.integers(-(2**63), 2**63 - 1),
    "zero or one": st.sampled_from([0, 1]),
    "bool": st.booleans(),
    "word": WORDS,
    "arm": st.sampled_from(["a", "b"]),
    "grade": st.sampled_from(["low", "mid", "high"]),
}
DTYPES = {
    "real": pl.Float64,
    "small": pl.Float64,
    "steps": pl.Float32,
    "whole": pl.Int64,
    "zero or one": pl.Int8,
    "bool": pl.Boolean,
    "word": pl.String,
    "arm": pl.Categorical,
    "grade": pl.Enum(["low", "mid", "high"]),
}


@st.composite
def tables(draw):
    """A few rows and columns of any kinds, with no to all cells of a column missing."""
    n_rows = draw(st.integers(1, 10))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5))
    columns = {}
    for j, kind in enumerate(kinds):
        missing_rate = draw(st.sampled_from([0.0, 0.3, 0.8, 1.0]))
        cells = draw(st.lists(KINDS[kind], min_size=n_rows, max_size=n_rows))
        uniform = draw(st.lists(st.floats(0, 1), min_size=n_rows, max_size=n_rows))
        cells = [None if u < missing_rate else cell for cell, u in zip(cells, uniform, strict=True)]
        columns[f"{j} {kind}"] = pl.Series(cells, dtype=DTYPES[kind], strict=False)
    return pl.DataFrame(columns)


def check(imputer, table):
    observed = [name for name in table.columns if table[name].null_count() < table.height]
    assume(observed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "columns with nothing observed")
        warnings.filterwarnings("ignore", "columns with one distinct observed value")
        warnings.filterwarnings("ignore", "Predictors are left out")
        imputer.fit(table)
    for filled in [imputer.transform(table), *imputer.sample(table, n=2)]:
        assert filled.columns == table.columns
        assert filled.dtypes == table.dtypes
        for name in table.columns:
            old, new = table[name], filled[name]
            kept = old.is_not_null()
            assert new.filter(kept).to_list() == old.filter(kept).to_list()
            assert new.null_count() == (0 if name in observed else table.height)
            if new.dtype.is_float():
                assert all(math.isfinite(cell) for cell in new.drop_nulls())
            if new.dtype in (pl.String, pl.Categorical):
                assert set(new.drop_nulls()) <= set(old.drop_nulls())
    if hasattr(imputer, "score_samples"):
        assert np.isfinite(imputer.score_samples(table)).all()
    if hasattr(imputer, "predict_set_proba"):
        np.testing.assert_allclose(imputer.predict_set_proba(table).sum(1), 1.0, atol=1e-9)


FEW = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,
    ],
)


@pytest.mark.parametrize("name", ALGORITHMS)
@FEW
@given(table=tables())
def test_any_table(name, table):
    check(VARIANTS[name](), table)


@FEW
@given(table=tables())
def test_any_table_with_members(quick, table):
    check(quick("none", n_members=2), table)
