"""Chained equations stored as arrays, compared with scikit-learn's IterativeImputer."""

import json
import warnings
from functools import partial

import numpy as np
import pytest
from safetensors.numpy import load, save
from scipy import stats
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import BayesianRidge, LinearRegression

from numeric.helpers import same
from psmvae.chained.trees import Trees, rounded_down
from psmvae.imputers.chain import Chain, _fit_quietly

# Few trees, for speed.
N_TREES = 3
fit = partial(Chain.fit, n_estimators=N_TREES)

BOTH = pytest.mark.parametrize("estimator", ["ridge", "trees"])


def normal_table(seed, n_rows=60, n_columns=5, missing=0.25):
    """Correlated columns with missing cells; every column has observed cells."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 2)) @ rng.normal(size=(2, n_columns)) + rng.normal(size=n_columns)
    x += 0.5 * rng.normal(size=x.shape)
    x[rng.random(x.shape) < missing] = np.nan
    x[0] = 1.0
    return x


def scikit_learn(x, estimator, *, seed=0, max_iter=3, tol=1e-3):
    """Fit scikit-learn's imputer; return it and the result of fit_transform."""
    trees = ExtraTreesRegressor(N_TREES, random_state=seed)
    imputer = IterativeImputer(
        BayesianRidge() if estimator == "ridge" else trees,
        max_iter=max_iter,
        tol=tol,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return imputer, imputer.fit_transform(x)


@BOTH
@pytest.mark.parametrize("seed", [0])
class TestLikeScikitLearn:
    def test_training_rows_and_new_rows(self, estimator, seed):
        x, new = normal_table(seed), normal_table(seed + 100, n_rows=30)
        new[3] = np.nan
        imputer, filled = scikit_learn(x, estimator, seed=seed)
        chain = fit(x, estimator=estimator, max_iter=3, seed=seed)
        same(chain.transform(x), filled)
        same(chain.transform(new), imputer.transform(new))
        np.testing.assert_array_equal(chain.transform(x)[~np.isnan(x)], x[~np.isnan(x)])

    def test_columns_that_are_complete_in_the_training_table(self, estimator, seed):
        x, new = normal_table(seed), normal_table(seed + 100, n_rows=30)
        x[:, [1, 3]] = normal_table(seed, missing=0.0)[:, [1, 3]]
        imputer, filled = scikit_learn(x, estimator, seed=seed)
        chain = fit(x, estimator=estimator, max_iter=3, seed=seed)
        same(chain.transform(x), filled)
        same(chain.transform(new), imputer.transform(new))

    def test_a_column_without_observed_cells_is_left_out(self, estimator, seed):
        x, new = normal_table(seed), normal_table(seed + 100, n_rows=30)
        x[:, 2] = np.nan
        used = [0, 1, 3, 4]
        imputer, filled = scikit_learn(x[:, used], estimator, seed=seed)
        chain = fit(x, estimator=estimator, max_iter=3, seed=seed)
        same(chain.transform(x)[:, used], filled)
        same(chain.transform(new)[:, used], imputer.transform(new[:, used]))
        np.testing.assert_array_equal(chain.transform(new)[:, 2], new[:, 2])


@BOTH
@pytest.mark.parametrize("max_iter", [0, 2])
def test_all_rounds_without_convergence(estimator, max_iter):
    x = normal_table(0)
    _, filled = scikit_learn(x, estimator, max_iter=max_iter, tol=0.0)
    chain = fit(x, estimator=estimator, max_iter=max_iter, tol=0.0, seed=0)
    same(chain.transform(x), filled)
    assert chain.n_rounds == max_iter
    assert chain.converged == (max_iter == 0)


@BOTH
def test_rounds_end_at_convergence(estimator):
    x = normal_table(1)
    imputer, filled = scikit_learn(x, estimator, max_iter=30, tol=0.5)
    chain = fit(x, estimator=estimator, max_iter=30, tol=0.5, seed=0)
    same(chain.transform(x), filled)
    assert chain.n_rounds == imputer.n_iter_ < 30
    assert chain.converged is True


class WarningRegression(LinearRegression):
    """A regression that warns."""

    def fit(self, X, y):
        warnings.warn("one more fit", UserWarning, stacklevel=1)
        return super().fit(X, y)


def test_other_warnings_of_the_fit_are_not_suppressed():
    with pytest.warns(UserWarning, match="one more fit") as caught:
        assert not _fit_quietly(
            IterativeImputer(WarningRegression(), max_iter=1, tol=0.0), normal_table(0)
        )
    assert not any(issubclass(one.category, ConvergenceWarning) for one in caught)


@BOTH
class TestRows:
    def test_rows_are_independent(self, estimator):
        x = normal_table(2)
        x[5] = np.nan
        chain = fit(x, estimator=estimator, max_iter=3, seed=0)
        alone = np.concatenate([chain.transform(x[i : i + 1]) for i in range(len(x))])
        same(alone, chain.transform(x))

    def test_results_do_not_depend_on_the_block_size(self, estimator, monkeypatch):
        x = normal_table(2)
        chain = fit(x, estimator=estimator, max_iter=2, seed=0)
        whole = chain.transform(x)
        monkeypatch.setattr("psmvae.chained.trees.BLOCK", 70)
        assert chain.transform(x).tobytes() == whole.tobytes()

    def test_the_input_is_not_changed(self, estimator):
        x = normal_table(3)
        before = x.tobytes()
        chain = fit(x, estimator=estimator, max_iter=2, seed=0)
        chain.transform(x)
        if estimator == "trees":
            chain.draw(x, np.random.default_rng(0))
        assert x.tobytes() == before

    def test_no_rows(self, estimator):
        chain = fit(normal_table(3), estimator=estimator, max_iter=2, seed=0)
        assert chain.transform(np.zeros((0, 5))).shape == (0, 5)


class TestSeeds:
    @BOTH
    def test_results_do_not_depend_on_n_jobs_or_global_random_state(self, estimator):
        x = normal_table(4)
        before = np.random.get_state()[1].tobytes()  # noqa: NPY002
        fits = [
            fit(x, estimator=estimator, max_iter=3, seed=5, n_jobs=n_jobs) for n_jobs in (None, 2)
        ]
        for chain in fits[1:]:
            for name, array in chain.arrays().items():
                assert array.tobytes() == fits[0].arrays()[name].tobytes(), name
        if estimator == "trees":
            drawn = [chain.draw(x, np.random.default_rng(1)).tobytes() for chain in fits]
            assert len(set(drawn)) == 1
        assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002

    def test_the_seed_determines_the_trees(self):
        x = normal_table(4)
        one, other = (fit(x, estimator="trees", max_iter=2, seed=s) for s in (1, 2))
        assert (one.transform(x) != other.transform(x)).any()


class TestTrees:
    @pytest.mark.parametrize("seed", range(2))
    def test_predictions_equal_scikit_learns(self, seed):
        rng = np.random.default_rng(seed)
        # ties, neighbouring float32 numbers, repeated rows with other targets, a constant column
        x = np.column_stack(
            [
                rng.integers(0, 3, 300),
                1 + rng.integers(0, 20, 300) * np.spacing(np.float32(1)),
                rng.normal(size=300),
                np.ones(300),
            ]
        )
        x[::3] = x[0]
        y = rng.normal(size=300)
        forest = ExtraTreesRegressor(10, random_state=seed).fit(x, y)
        new = np.concatenate([x, x + 1e-9, rng.normal(size=(50, 4))])
        assert Trees.of(forest.estimators_).predict(new).tobytes() == forest.predict(new).tobytes()

    def test_many_columns(self):
        x = np.random.default_rng(0).normal(size=(80, 400))
        forest = ExtraTreesRegressor(4, random_state=0).fit(x, x[:, 300])
        trees = Trees.of(forest.estimators_)
        assert trees.feature.max() > 255
        assert trees.predict(x).tobytes() == forest.predict(x).tobytes()

    def test_a_tree_of_one_leaf(self):
        forest = ExtraTreesRegressor(3, random_state=0).fit(np.eye(4), np.full(4, 2.5))
        trees = Trees.of(forest.estimators_)
        assert trees.feature.size == 0
        np.testing.assert_array_equal(trees.predict(np.eye(4)), 2.5)
        np.testing.assert_array_equal(trees.draw(np.eye(4), np.random.default_rng(0)), 2.5)

    def test_numbers_beyond_the_range_of_float32(self):
        x = np.arange(20.0)[:, None]
        trees = Trees.of(ExtraTreesRegressor(3, random_state=0).fit(x, x[:, 0]).estimators_)
        np.testing.assert_allclose(trees.predict(np.array([[1e300], [-1e300]])), [19.0, 0.0])

    def test_trees_are_drawn_with_equal_probability(self):
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(100, 3)), rng.normal(size=100)
        forest = ExtraTreesRegressor(5, random_state=0).fit(x[:50], y[:50])
        drawn = Trees.of(forest.estimators_).draw(np.repeat(x[60:61], 5000, axis=0), rng)
        each = [tree.predict(x[60:61])[0] for tree in forest.estimators_]
        values, expected = np.unique(each, return_counts=True)
        found, counts = np.unique(drawn, return_counts=True)
        np.testing.assert_array_equal(found, values)
        assert stats.chisquare(counts, expected * 1000).pvalue > 0.01

    def test_thresholds_in_float32_keep_every_comparison(self):
        rng = np.random.default_rng(0)
        for scale in (1e-42, 1e-3, 1.0, 1e30):
            t = scale * rng.normal(size=1000)
            near = t.astype(np.float32)
            for x in (
                near,
                np.nextafter(near, np.float32(9e30)),
                np.nextafter(near, np.float32(-9e30)),
            ):
                np.testing.assert_array_equal(x <= rounded_down(t), x.astype(np.float64) <= t)


@BOTH
class TestFiles:
    @pytest.mark.parametrize("table", ["missing cells", "an empty column", "one column", "empty"])
    def test_arrays_restore_the_chain(self, estimator, table):
        x = normal_table(7)
        if table == "an empty column":
            x[:, 1] = np.nan
        elif table == "one column":
            x = x[:, :1]
        elif table == "empty":
            x[:] = np.nan
        chain = fit(x, estimator=estimator, max_iter=2, seed=3)
        arrays = load(save({k: np.ascontiguousarray(v) for k, v in chain.arrays().items()}))
        again = Chain.from_arrays(arrays, json.loads(json.dumps(chain.facts())))
        assert again.facts() == chain.facts()
        for name, array in chain.arrays().items():
            assert again.arrays()[name].dtype == array.dtype
            assert again.arrays()[name].tobytes() == array.tobytes()
        assert again.transform(x).tobytes() == chain.transform(x).tobytes()
        if estimator == "trees":
            one, other = (c.draw(x, np.random.default_rng(2)).tobytes() for c in (chain, again))
            assert one == other

    def test_inconsistent_arrays_are_refused(self, estimator):
        chain = fit(normal_table(7), estimator=estimator, max_iter=1, seed=3)
        arrays, facts = chain.arrays(), chain.facts()
        changed = {name: array[:-1] for name, array in arrays.items() if name != "value"}
        changed["column"] = arrays["column"] + 1
        if "child" in arrays:
            changed["child"] = np.zeros_like(arrays["child"])
            changed["feature"] = np.full_like(arrays["feature"], 4)
            changed["value"] = arrays["value"][:1]
            changed["root"] = arrays["root"].astype(np.float64)
        for name, array in changed.items():
            with pytest.raises((ValueError, LookupError)):
                Chain.from_arrays({**arrays, name: array}, facts)
        with pytest.raises(ValueError, match="do not fit its columns"):
            Chain.from_arrays({**arrays, "column": arrays["column"].astype(float)}, facts)
        for name in arrays:
            with pytest.raises(LookupError):
                Chain.from_arrays({k: v for k, v in arrays.items() if k != name}, facts)
        with pytest.raises(LookupError):
            Chain.from_arrays(arrays, {**facts, "estimator": "stumps"})


NAN = np.nan
DEGENERATE = {
    "one column": [[1.0], [NAN], [3.0]],
    "nothing missing": [[1.0, 2.0], [2.0, 5.0], [3.0, 1.0]],
    "a constant column": [[1.0, 2.0], [1.0, NAN], [NAN, 4.0], [1.0, 3.0]],
    "all constant": [[0.0, 0.0], [NAN, 0.0], [0.0, NAN]],
    "two rows": [[1.0, NAN], [NAN, 2.0]],
    "one row": [[1.0, 2.0, 3.0]],
    "one cell a column": [[1.0, NAN, NAN], [NAN, 2.0, NAN], [NAN, NAN, 3.0]],
}


@BOTH
@pytest.mark.parametrize("table", DEGENERATE)
def test_degenerate_tables(table, estimator):
    x = np.array(DEGENERATE[table])
    chain = fit(x, estimator=estimator, max_iter=3, seed=0)
    imputer, filled = scikit_learn(x, estimator, max_iter=3)
    same(chain.transform(x), filled)
    new = x[:1].copy()
    new[0, -1] = NAN
    if not np.isnan(new).all():
        same(chain.transform(new), imputer.transform(new))
    results = [chain.transform(x)]
    if estimator == "trees":
        results.append(chain.draw(x, np.random.default_rng(0)))
    for result in results:
        assert np.isfinite(result).all()
        np.testing.assert_array_equal(result[~np.isnan(x)], x[~np.isnan(x)])


class TestBadInput:
    def test_settings_are_checked(self):
        x = normal_table(0)
        with pytest.raises(ValueError, match="estimator must be one of"):
            fit(x, estimator="stumps", seed=0)

    def test_tables_are_checked(self):
        chain = fit(normal_table(0), estimator="ridge", max_iter=1, seed=0)
        with pytest.raises(ValueError, match="5 columns"):
            chain.transform(np.zeros((2, 4)))
        with pytest.raises(ValueError, match="finite"):
            chain.transform(np.full((2, 5), np.inf))
