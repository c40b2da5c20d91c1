"""Fits on a real local Ray."""

import numpy as np
import pyarrow as pa
import pytest

import psmvae
from cluster.processes import Killer, MarkingImputer
from psmvae import MeanImputer, PSMVAEImputer
from psmvae.ray.many import fit_one

pytestmark = [
    pytest.mark.ray,
    # Ray's own
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SETTINGS = {
    "n_sets": 2,
    "max_epochs": 3,
    "batch_size": 51,
    "draws": "model",
    "device": "cpu",
    "random_state": 0,
}


def test_two_workers_fit_what_one_process_fits(ray, table):
    alone = PSMVAEImputer(validation_fraction=0.0, **SETTINGS).fit(table)
    imputer = PSMVAEImputer(validation_fraction=0.0, **SETTINGS)
    assert psmvae.ray.fit(table, imputer, n_workers=2) is imputer
    np.testing.assert_allclose(imputer.transform(table), alone.transform(table), atol=1e-3)
    assert imputer.n_epochs_ == alone.n_epochs_ == len(imputer.history_)
    assert imputer.get_params() == alone.get_params()


def test_a_dataset_is_fitted_as_the_table_in_memory(ray, table):
    missing = np.isnan(table)
    columns = {name: pa.array(table[:, j], mask=missing[:, j]) for j, name in enumerate("abcde")}
    frame = pa.table(columns)
    dataset = ray.data.from_arrow([frame.slice(0, 150), frame.slice(150)])
    imputer = psmvae.ray.fit(dataset, PSMVAEImputer(**SETTINGS), n_workers=1)
    alone = PSMVAEImputer(**SETTINGS).fit(frame)
    assert imputer.n_rows_ == 400
    assert imputer.transform(frame).equals(alone.transform(frame))


def test_without_a_seed_all_workers_draw_the_same_noise(ray, table):
    imputer = PSMVAEImputer(**(SETTINGS | {"random_state": None}))
    psmvae.ray.fit(table, imputer, n_workers=2)
    assert np.isfinite(imputer.transform(table)).all()
    assert imputer.random_state is None


def test_errors_are_raised_before_workers_start(ray, table):
    with pytest.raises(TypeError, match="averages gradients, and MeanImputer has none"):
        psmvae.ray.fit(table, MeanImputer())
    with pytest.raises(ValueError, match="52 workers cannot share batches of 51 rows"):
        psmvae.ray.fit(table, PSMVAEImputer(**SETTINGS), n_workers=52)
    with pytest.raises(ValueError, match="validation_fraction"):
        psmvae.ray.fit(table, PSMVAEImputer(validation_fraction=2.0))


@pytest.mark.parametrize("max_failures", [0, 1])
def test_a_worker_is_killed_in_training(ray, table, marker, max_failures):
    """Training starts anew and gives the same result, or fails and leaves the imputer as it was."""
    imputer = MarkingImputer(**(SETTINGS | {"max_epochs": 100, "validation_fraction": 0.0}))
    killer = Killer("ray::RayTrainWorker", marker)
    with killer:
        if max_failures == 0:
            with pytest.raises(RuntimeError, match="training by 2 workers failed"):
                psmvae.ray.fit(table, imputer, max_failures=0)
        else:
            psmvae.ray.fit(table, imputer, max_failures=1)
    assert killer.killed
    assert hasattr(imputer, "model_") == (max_failures == 1)
    if max_failures == 1:
        alone = PSMVAEImputer(**imputer.get_params()).fit(table)
        np.testing.assert_allclose(imputer.transform(table), alone.transform(table), atol=1e-2)


@pytest.mark.parametrize("bootstrap", [False, True])
def test_many_fits_equal_separate_ones(ray, table, bootstrap):
    imputer = PSMVAEImputer(**SETTINGS)
    fits = psmvae.ray.fit_many(table, imputer, 3, bootstrap=bootstrap, random_state=5)
    assert len({fit.seed_ for fit in fits}) == 3
    for fit in fits:
        alone = fit_one(table, imputer, fit.random_state, bootstrap=bootstrap)
        np.testing.assert_allclose(fit.transform(table), alone.transform(table), atol=1e-5)
    assert not hasattr(imputer, "model_")


def test_classical_imputers_are_fitted_too(ray, table):
    fits = psmvae.ray.fit_many(table, MeanImputer(), 2, bootstrap=True, random_state=0)
    first, second = (fit.transform(table) for fit in fits)
    assert np.isfinite(first).all()
    assert not np.array_equal(first, second)
