"""Tables that cannot be fitted: clear errors, and the previous fit is kept."""

import datetime as dt
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from contract.registry import CLASSICAL, IMPUTERS
from psmvae import LogisticMask


def fitted_attributes(imputer):
    """Names of the attributes that `fit` sets."""
    return [name for name in vars(imputer) if name.endswith("_")]


BAD_TABLES = {
    "infinity": (np.array([[1.0, np.inf], [2.0, 3.0]]), ValueError, "'x1'.*infinity.*1 of 2 rows"),
    "minus infinity": (
        pd.DataFrame({"a": [1.0, -np.inf, -np.inf]}),
        ValueError,
        "'a'.*infinity.*2 of 3 rows",
    ),
    "no rows": (np.empty((0, 3)), ValueError, r"0 sample\(s\)"),
    "no rows in a frame": (pl.DataFrame({"a": []}), ValueError, r"0 sample\(s\)"),
    "no columns": (np.empty((3, 0)), ValueError, r"0 feature\(s\)"),
    "no columns in a frame": (pd.DataFrame(index=range(3)), ValueError, r"0 feature\(s\)"),
    "one axis": (np.zeros(3), ValueError, "Expected 2D array, got 1D"),
    "three axes": (np.zeros((2, 2, 2)), ValueError, "Expected 2D array, got 3D"),
    "a series": (pd.Series([1.0, 2.0]), ValueError, "Expected 2D"),
    "names twice": (
        pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "a"]),
        ValueError,
        "must be unique.*'a'",
    ),
    "names twice as text": (pd.DataFrame({1: [1.0], "1": [2.0]}), ValueError, "must be unique"),
    "names of two types": (pd.DataFrame({1: [1.0], "a": [2.0]}), TypeError, "string names"),
    "nothing observed": (np.full((3, 2), np.nan), ValueError, "every cell is missing"),
    "dates": (
        pd.DataFrame({"a": [1.0], "when": [dt.datetime(2020, 1, 1)]}),
        TypeError,
        "'when'.*no kind.*days since",
    ),
    "dates in polars": (
        pl.DataFrame({"a": [1.0], "when": [dt.date(2020, 1, 1)]}),
        TypeError,
        "'when'.*no kind",
    ),
    "dates in pyarrow": (
        pa.table({"when": [dt.timedelta(1)], "a": [1.0]}),
        TypeError,
        "'when'.*no kind",
    ),
    "dates as objects": (
        pd.DataFrame({"when": pd.Series([dt.date(2020, 1, 1)], dtype=object)}),
        TypeError,
        "'when'.*date",
    ),
    "two bad columns": (
        pl.DataFrame({"when": [dt.date(2020, 1, 1)], "list": [[1]]}),
        TypeError,
        "'when'.*\n.*'list'",
    ),
    "lists": (pl.DataFrame({"many": [[1, 2]]}), TypeError, "'many'"),
    "a mixture": (
        pd.DataFrame({"mix": ["a", 1, 2.0]}, dtype=object),
        TypeError,
        "'mix' mixes types: .*str",
    ),
    "complex": (np.array([[1 + 2j]]), ValueError, "Complex data not supported"),
    "sparse": (sparse.csr_array(np.eye(2)), TypeError, "sparse.*toarray"),
    "masked": (np.ma.masked_array(np.eye(2)), TypeError, "masked arrays"),
    "ragged": ([[1.0, 2.0], [3.0]], ValueError, "same length"),
    "a path": ("patients.csv", ValueError, "patients.csv: there is no such file"),
    "nothing": (None, TypeError, "got builtins.NoneType"),
    "a dict": ({"a": [1.0]}, TypeError, "got builtins.dict"),
    "a number": (3.0, TypeError, "got builtins.float"),
    "too many levels": (
        pl.DataFrame({"id": [f"p{i}" for i in range(1001)]}),
        ValueError,
        "'id'.*1001 levels",
    ),
}


@pytest.mark.parametrize("what", BAD_TABLES)
def test_a_table_that_cannot_be_fitted(what):
    """All imputers read a table with the same code."""
    table, error, message = BAD_TABLES[what]
    imputer = IMPUTERS["Mean"]()
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        imputer.fit(table)
    assert not fitted_attributes(imputer)


class TestFailedFit:
    def test_the_previous_fit_is_kept(self, family, numbers):
        imputer = family().fit(numbers)
        before = imputer.transform(numbers), np.stack(imputer.sample(numbers, n=2))
        with pytest.raises(ValueError, match="infinity"):
            imputer.fit(np.array([[np.inf]]))
        imputer.set_params(kinds={"x7": "real"})
        with pytest.raises(ValueError, match="x7"):
            imputer.fit(numbers[:, :2])
        assert imputer.n_features_in_ == 4
        assert imputer.transform(numbers).tobytes() == before[0].tobytes()
        assert np.stack(imputer.sample(numbers, n=2)).tobytes() == before[1].tobytes()

    def test_the_previous_fit_is_kept_if_the_model_cannot_be_built(self, quick, numbers):
        imputer = quick().fit(numbers)
        before = imputer.transform(numbers)
        imputer.set_params(mask_model=LogisticMask(["income"]))
        with pytest.raises(ValueError, match="income"):
            imputer.fit(numbers[:, :2])
        assert imputer.n_features_in_ == 4
        assert imputer.transform(numbers).tobytes() == before.tobytes()

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
    @pytest.mark.parametrize("name", ["PSMVAE", "GAIN"])
    def test_an_error_of_the_callback_is_raised(self, numbers, name, error):
        def stop(progress):
            raise error("enough")

        imputer = IMPUTERS[name]()
        with pytest.raises(error, match="enough"):
            imputer.fit(numbers, callback=stop)
        assert not fitted_attributes(imputer)
        assert imputer.fit(numbers).transform(numbers).shape == numbers.shape


@pytest.mark.parametrize("name", CLASSICAL)
def test_an_imputer_without_epochs_does_not_call_the_callback(numbers, name):
    calls = []
    IMPUTERS[name]().fit(numbers, callback=calls.append)
    assert calls == []
