"""Choice of predictors, and tables with many columns."""

import warnings

import numpy as np
import pytest

import psmvae
from psmvae.chained.nearest import nearest
from psmvae.imputers.chain import Chain
from psmvae.inference.hidden import predict_hidden
from psmvae.mechanism import rivals


def wide_table(n_rows=60, n_columns=30, seed=0):
    """Columns in pairs: column 2 i + 1 is column 2 i with noise."""
    rng = np.random.default_rng(seed)
    x = np.repeat(rng.normal(size=(n_rows, n_columns // 2)), 2, axis=1)
    x[:, 1::2] += 0.1 * rng.normal(size=x[:, 1::2].shape)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


class TestNearest:
    def test_the_largest_covariances_over_observed_rows(self):
        rng = np.random.default_rng(0)
        z, m = rng.normal(size=(50, 12)), rng.random((50, 12)) < 0.7
        group = np.repeat(np.arange(6), 2)
        found = nearest(np.where(m, z, 0.0), group, np.where(m, z, 0.0), m, group, 3)
        for j, own in enumerate(found):
            rows = m[:, j]
            y = z[rows, j] - z[rows, j].mean()
            size = [abs(np.mean(np.where(m, z, 0.0)[rows, k] * y)) for k in range(12)]
            others = [k for k in range(12) if group[k] != group[j]]
            assert own.tolist() == sorted(sorted(others, key=lambda k: -size[k])[:3])

    @pytest.mark.parametrize("n", [None, 12, 50])
    def test_all_of_other_groups(self, n):
        group = np.repeat(np.arange(6), 2)
        z, m = np.ones((5, 12)), np.ones((5, 12), dtype=bool)
        found = nearest(z, group, z, m, group, n)
        assert [len(own) for own in found] == [10] * 12
        assert all((group[own] != group[j]).all() for j, own in enumerate(found))

    def test_only_what_is_allowed_even_if_it_is_less_than_asked(self):
        z, m, group = np.ones((5, 4)), np.ones((5, 4), dtype=bool), np.arange(4)
        allowed = np.zeros((4, 4), dtype=bool)
        allowed[0, 2] = True
        assert [own.tolist() for own in nearest(z, group, z, m, group, 2, allowed)] == [
            *([2], [], [], [])
        ]

    def test_results_do_not_depend_on_the_block_size(self, monkeypatch):
        rng = np.random.default_rng(0)
        z, m, group = rng.normal(size=(20, 9)), np.ones((20, 9), dtype=bool), np.arange(9)
        whole = nearest(z, group, z, m, group, 4)
        monkeypatch.setattr("psmvae.chained.nearest.BLOCK", 2)
        parts = nearest(z, group, z, m, group, 4)
        assert [a.tolist() for a in parts] == [a.tolist() for a in whole]


@pytest.mark.parametrize("estimator", ["ridge", "trees"])
class TestChain:
    def test_each_column_is_predicted_by_its_pair(self, estimator):
        x = wide_table()
        options = {"estimator": estimator, "max_iter": 1, "n_estimators": 2, "seed": 0}
        chain = Chain.fit(x, n_nearest_features=1, **options)
        assert [at.tolist() for at in chain.predictors] == [[j ^ 1] for j in range(30)]
        pair = chain.transform(x)
        # another column changes nothing
        other = x.copy()
        other[:, 2:] += 100.0
        np.testing.assert_array_equal(chain.transform(other)[:, :2], pair[:, :2])

    def test_values_of_any_size(self, estimator):
        largest = 1e140 if estimator == "ridge" else 1e37
        x = wide_table() * np.where(np.arange(30) < 2, largest, 1e-200)
        chain = Chain.fit(x, estimator=estimator, max_iter=1, seed=0, n_nearest_features=1)
        assert chain.predictors[0].tolist() == [1]
        assert chain.predictors[7].tolist() == [6]


@pytest.mark.parametrize("name", ["MICEImputer", "MissForestImputer"])
def test_n_nearest_features(name, tmp_path):
    x = wide_table()
    make = getattr(psmvae, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = make(n_nearest_features=1, max_iter=2, random_state=0).fit(x)
        every, default = (
            make(max_iter=2, random_state=0, **options).fit(x).transform(x)
            for options in ({"n_nearest_features": None}, {})
        )
    np.testing.assert_array_equal(every, default)
    filled = few.transform(x)
    assert (filled != default).any()
    if name == "MICEImputer":
        assert {len(target.linear) for target in few.chains_.targets} == {1}
    few.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(psmvae.load(tmp_path / "m.safetensors").transform(x), filled)
    for wrong in (0, 1.5, "auto"):
        with pytest.raises((ValueError, TypeError), match="n_nearest_features"):
            make(n_nearest_features=wrong).fit(x)


def test_the_file_of_a_wide_table_does_not_grow_with_the_square_of_columns(tmp_path):
    sizes = []
    for n_columns in (40, 160):
        imputer = psmvae.MICEImputer(n_nearest_features=5, max_iter=1, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            imputer.fit(wide_table(30, n_columns))
        sizes.append(imputer.chain_.arrays()["coef"].size)
    assert sizes == [40 * 5, 160 * 5]


def test_columns_that_are_hidden_together(monkeypatch):
    import torch

    x = np.random.default_rng(0).normal(size=(80, 6))
    x[::7, 2] = np.nan
    imputer = psmvae.PSMVAEImputer(max_epochs=2, random_state=0).fit(x)
    tensors = imputer._tensors(np.nan_to_num(x), ~np.isnan(x))

    def predicted(n_passes):
        monkeypatch.setattr("psmvae.inference.hidden.MAX_PASSES", n_passes)
        calls.clear()
        with torch.no_grad():
            return predict_hidden(imputer.model_, *tensors, None)

    calls = []
    expected = imputer.model_.predict

    def counted(batch):
        calls.append(batch)
        return expected(batch)

    monkeypatch.setattr(imputer.model_, "predict", counted)
    alone = predicted(6)
    assert len(calls) == 6
    together = predicted(2)
    assert len(calls) == 2
    # columns 0, 2 and 4 are hidden at once
    hidden = tensors[1].clone()
    hidden[:, ::2] = 0.0
    from psmvae.models.batch import Batch

    with torch.no_grad():
        point = imputer.model_.inputs.point(expected(Batch.of(tensors[0][None], hidden[None])))
    torch.testing.assert_close(together[2], point[0, :, 2])
    assert not torch.equal(together[0], alone[0])


def test_the_regression_of_masks_on_many_columns(monkeypatch):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 50))
    missing = features[:, 7] > 0.5
    folds = rng.integers(0, rivals.N_FOLDS, 400)
    monkeypatch.setattr(rivals, "MAX_FEATURES", 1)
    few = rivals.logistic(features, missing, folds)
    only = rivals.logistic(features[:, [7]], missing, folds)
    np.testing.assert_allclose(few, only)
