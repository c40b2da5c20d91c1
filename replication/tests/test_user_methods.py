"""Methods and tables of one's own: what they may do, and what is message where they go wrong."""

import os
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from psmvae_paper import METHODS, Cell, Experiment, Method, run
from psmvae_paper.protocol import make_problem
from psmvae_paper.stacks import Job, run_job

SMALL = Experiment(
    name="small",
    title="one small table",
    source="",
    datasets=("breast",),
    mechanisms=("mcar",),
    rates=(0.3,),
    methods=("mean",),
    seeds=(0,),
    n_rows=(40,),
    n_columns=(4,),
)


def go(folder, experiment=SMALL, **options):
    return run(experiment, folder, device="cpu", workers=1, **options)


class Own:
    """Imputes means; the subclasses go wrong in various ways."""

    def fit(self, X):
        return self

    def transform(self, X):
        return X.fillna(X.mean())

    def sample(self, X, n):
        return [self.transform(X)] * n


class InPlace(Own):
    def fit(self, X):
        X.fillna(0.0, inplace=True)
        return self


class InPlaceLater(Own):
    def transform(self, X):
        X[:] = 0.0
        return X

    def sample(self, X, n):
        X.iloc[:] = 0.0
        return [X] * n


class Unfilled(Own):
    def transform(self, X):
        return X


class FewerColumns(Own):
    def transform(self, X):
        return X.fillna(0.0).iloc[:, 1:]


class FewerDraws(Own):
    def sample(self, X, n):
        return [X.fillna(0.0).iloc[1:]] * n


class Warns(Own):
    def fit(self, X):
        warnings.simplefilter("error")
        warnings.warn("this looks odd", stacklevel=1)


class Ends(Own):
    def fit(self, X):
        sys.exit("good bye")


@pytest.fixture
def add(monkeypatch):
    """Puts a method into the catalogue for the time of a test."""

    def put(imputer):
        method = Method("own", "own", "own", lambda seed, device: imputer(), draws=True)
        monkeypatch.setitem(METHODS, "own", method)

    return put


@pytest.mark.parametrize("imputer", [InPlace, InPlaceLater])
def test_method_that_modifies_its_input_does_not_affect_others(tmp_path, add, imputer):
    (alone,) = go(tmp_path / "alone")
    add(imputer)
    _, mean = go(tmp_path / "both", methods=["own", "mean"])
    assert mean["metrics"] == alone["metrics"]


@pytest.mark.parametrize(
    ("imputer", "message"),
    [
        (Unfilled, "missing cells were not imputed with finite numbers"),
        (FewerColumns, "ValueError: transform must return a table of shape (32, 4), got (32, 3)"),
        (FewerDraws, "ValueError: sample must return a table of shape"),
        (Warns, "UserWarning: this looks odd"),
        (Ends, "RuntimeError: the method ended the program with 'good bye'"),
    ],
)
def test_error_of_a_method_is_recorded(tmp_path, add, imputer, message):
    add(imputer)
    own, mean = go(tmp_path, methods=["own", "mean"])
    assert message in own["error"]
    assert mean["error"] is None


def test_curve_needs_method_with_epochs(tmp_path):
    with pytest.raises(ValueError, match="needs a method with epochs, and mean has none"):
        go(tmp_path / "out", replace(SMALL, measure="curve"))
    assert not (tmp_path / "out").exists()


def test_curve_without_missing_cells_has_none_values(tmp_path):
    nothing = replace(SMALL, measure="curve", rates=(0.0,), methods=("vae",), epochs=2)
    (record,) = go(tmp_path, nothing)
    assert record["error"] is None
    assert record["metrics"] == {"steps": [1, 2], "rmse": [None, None]}


def test_recorded_fit_is_not_repeated_outside_stacks(add):
    fitted = []

    class Counts(Own):
        def fit(self, X):
            fitted.append(X)
            return self

    add(Counts)
    first, second = replace(SMALL, methods=("own",), seeds=(0, 1)).cells()
    job = Job(((first,), (second,)), frozenset({second.key}), "cpu", None)
    assert [record["key"] for record in run_job(job)] == [second.key]
    assert len(fitted) == 1


def test_changed_file_is_read_again(tmp_path):
    path = tmp_path / "mine.csv"
    rng = np.random.default_rng(0)
    errors = []
    for k in range(2):
        x = rng.normal(size=40)
        pd.DataFrame({"a": x, "b": x + k * rng.normal(size=40)}).to_csv(path, index=False)
        mine = replace(SMALL, datasets=(os.fspath(path),), n_rows=(None,), n_columns=(None,))
        (record,) = go(tmp_path / str(k), mine)
        errors.append(record["metrics"]["rmse"])
    assert errors[0] != errors[1]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": np.arange(9.0)}, "expected at least 10 rows, got 9"),
        ({"a": [*range(20), np.inf]}, "contains infinity"),
        ({"when": pd.date_range("2020-01-01", periods=20)}, "column 'when' is of type"),
    ],
)
def test_unusable_table_is_rejected_before_run(tmp_path, columns, message):
    path = tmp_path / "mine.parquet"
    pd.DataFrame(columns).to_parquet(path)
    with pytest.raises(ValueError, match=message):
        go(tmp_path / "out", datasets=[os.fspath(path)])
    assert not (tmp_path / "out").exists()


def test_mask_is_independent_of_table_drawn_with_same_seed(tmp_path):
    values = np.random.default_rng(0).random((2000, 1))
    path = tmp_path / "drawn.csv"
    pd.DataFrame(values, columns=["a"]).to_csv(path, index=False)
    problem = make_problem(Cell(os.fspath(path), "mcar", 0.3, 0, "mean"))
    gone = ~problem.m[:, 0]
    assert problem.truth[gone].mean() == pytest.approx(problem.truth[~gone].mean(), abs=0.05)
