"""The catalogue: what each experiment runs, and that its small version runs."""

import json

import numpy as np
import pytest

from psmvae.imputers.base import Imputer
from psmvae.simulate import MECHANISMS
from psmvae_paper import EXPERIMENTS, METHODS, Cell, Experiment, find_experiment, run
from psmvae_paper.datasets import names
from psmvae_paper.measure import curve_epochs, n_draws, unfitted
from psmvae_paper.paper import paper
from psmvae_paper.protocol import make_problem

SHIPPED = {"breast", "digits", "trial"}
SIZES = {
    "rmse20": 3 * 2 * 16 * 5,
    "rmse80": 3 * 2 * 16 * 5,
    "printed20": 3 * 2 * 16 * 5,
    "printed80": 3 * 2 * 16 * 5,
    "grid": 6 * 2 * 2 * 16 * 5,
    "pattern-sets": 3 * 2 * 4 * 5,
    "printed-sets": 3 * 2 * 4 * 5,
    "multiple": 2 * 2 * 4 * 5,
    "curve": 5 * 5,
    "pi": 2 * 2 * 2 * 7 * 5,
    "rate": 7 * 2 * 5 * 5,
    "rows": 5 * 2 * 5 * 5,
    "columns": 5 * 2 * 5 * 5,
    "inpainting": 2 * 2,
    "inpainting-mnist": 2 * 2,
}


def test_number_of_cells_of_each_experiment():
    assert {name: len(one.cells()) for name, one in EXPERIMENTS.items()} == SIZES


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_cells_are_distinct_valid_and_reproducible(name, small):
    experiment = EXPERIMENTS[name].quick() if small else EXPERIMENTS[name]
    cells = experiment.cells()
    assert cells == experiment.cells()
    assert len({cell.key for cell in cells}) == len(cells)
    for cell in cells:
        assert cell.method in METHODS
        assert cell.mechanism in MECHANISMS
        assert cell.dataset in names()
        assert METHODS[cell.method].deep or cell.epochs is None


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_version_differs_only_in_size(name):
    whole, small = EXPERIMENTS[name], EXPERIMENTS[name].quick()
    assert set(small.datasets) <= SHIPPED
    assert len(small.seeds) <= 2
    assert (small.name, small.measure, small.methods) == (whole.name, whole.measure, whole.methods)
    assert small.mechanisms == whole.mechanisms
    assert all(cell.epochs is None or cell.epochs <= 5 for cell in small.cells())
    assert all((n_draws(cell) or 1) <= 20 for cell in small.cells())
    assert len(small.cells()) <= 128


@pytest.mark.parametrize("name", ["rmse20", "rmse80", "grid", "pattern-sets"])
def test_every_printed_figure_has_a_cell(name):
    cells = EXPERIMENTS[name].cells()
    ours = {(cell.dataset, cell.mechanism, cell.rate, cell.method) for cell in cells}
    assert set(paper(name)) <= ours


def test_grid_contains_cells_of_rmse20_and_rmse80():
    grid = {cell.key for cell in EXPERIMENTS["grid"].cells()}
    for name in ("rmse20", "rmse80"):
        assert {cell.key for cell in EXPERIMENTS[name].cells()} < grid


def test_settings_of_single_methods():
    by_method = {cell.method: dict(cell.settings) for cell in EXPERIMENTS["inpainting"].cells()}
    assert by_method == {"psmvae-b": {"batch_size": 512, "pi": 0.0}, "gain": {"batch_size": 512}}
    assert {cell.epochs for cell in EXPERIMENTS["inpainting"].cells()} == {500}
    assert {cell.settings for cell in EXPERIMENTS["pattern-sets"].cells()} == {(("n_sets", 2),)}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_makes_an_imputer(name):
    cell = Cell("breast", "mcar", 0.2, 3, name, n_columns=4)
    imputer = unfitted(cell, make_problem(cell), "cpu")
    assert isinstance(imputer, Imputer)
    assert imputer.random_state == 3
    assert METHODS[name].deep == hasattr(imputer, "max_epochs")
    assert imputer.kinds == {f"column{j}": "real" for j in range(4)}
    assert imputer.bounds == {f"column{j}": (None, None) for j in range(4)}


def test_deep_methods_have_hyperparameters_of_the_paper():
    cell = Cell("breast", "mcar", 0.2, 0, "mean")
    for name, method in METHODS.items():
        if method.deep and name != "psmvae":
            assert method.make(0, "cpu").max_epochs == 1000
            assert method.make(0, "cpu").batch_size == 200
    default = METHODS["psmvae"].make(0, "cpu").get_params()
    plain = type(METHODS["psmvae"].make(0, "cpu"))().get_params()
    differ = {name for name in plain if plain[name] != default[name]}
    assert differ == {"random_state", "device", "draws"}
    assert METHODS["psmvae-none"].make(0, "cpu").mask_model == "none"
    assert METHODS["psmvae-rate"].make(0, "cpu").pi == "rate"
    assert n_draws(cell) is None


def test_methods_draw_from_the_trained_model():
    """Regressions for proper draws would add to the seconds of a fit."""
    latent = [method.make(0, "cpu") for method in METHODS.values() if method.deep]
    assert {getattr(imputer, "draws", "model") for imputer in latent} == {"model"}


def test_methods_with_same_fit_have_same_maker():
    for first in METHODS.values():
        for second in METHODS.values():
            if first.fit == second.fit:
                assert first.make == second.make


def test_curve_points_cover_training():
    for epochs in (1, 2, 7, 100, 1000):
        points = curve_epochs(epochs)
        assert points[0] == 1
        assert points[-1] == epochs
        assert len(points) <= 40
        assert np.diff(points).max(initial=0) <= max(1, epochs / 20 + 1)


def test_within_limits_rows_and_columns_except_axis():
    capped = EXPERIMENTS["rmse20"].quick().within(60, 3)
    assert (capped.n_rows, capped.n_columns) == ((60,), (3,))
    whole = EXPERIMENTS["rmse20"]
    assert whole.within(60, 3) == whole
    columns = EXPERIMENTS["columns"].quick()
    assert columns.within(60, 3).n_columns == columns.n_columns
    assert columns.within(60, 3).n_rows == (60,)


def test_only_replaces_seeds_datasets_and_methods():
    part = EXPERIMENTS["rmse20"].only(seeds=[7], datasets=["wine"], methods=["mean", "mice"])
    assert [(c.dataset, c.seed, c.method) for c in part.cells()] == [
        ("wine", 7, "mean"),
        ("wine", 7, "mice"),
    ] * 2
    assert EXPERIMENTS["rmse20"].only() == EXPERIMENTS["rmse20"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ["median"]}, "unknown method 'median'; known are psmvae-a"),
        ({"methods": []}, "methods must name at least one"),
        ({"seeds": [1, 1]}, "seeds must name at least one, and none twice"),
        ({"seeds": 3}, "seeds must be a list, got 3"),
        ({"datasets": "wine"}, "datasets must be a list, got 'wine'"),
    ],
)
def test_only_rejects_invalid_lists(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        EXPERIMENTS["rmse20"].only(**changes)


def test_unknown_experiment_error_lists_known_ones():
    with pytest.raises(ValueError, match="unknown experiment 'rmse'; known are rmse20, rmse80"):
        find_experiment("rmse")


def test_import_does_not_load_torch(python):
    """Listing experiments must not load torch."""
    loaded = "[n for n in ('torch', 'pandas', 'sklearn', 'matplotlib') if n in sys.modules]"
    code = f"import json, sys, psmvae_paper; print(json.dumps({loaded}))"
    assert json.loads(python(code)) == []


def test_inpainting_records_hold_images(tmp_path):
    records = run(EXPERIMENTS["inpainting"].quick(), tmp_path, device="cpu", workers=1)
    assert [record["error"] for record in records] == [None] * 4
    for record in records:
        metrics = record["metrics"]
        truth, m, filled = (np.array(metrics[name]) for name in ("truth", "m", "filled"))
        assert truth.shape == m.shape == filled.shape == (8, 8, 8)
        np.testing.assert_array_equal(truth[m == 1], filled[m == 1])
        assert 1 - m.mean() == pytest.approx(record["cell"]["rate"], abs=0.1)
        assert 0 < metrics["rmse"] < 1


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "inpainting-mnist"])
def test_quick_version_runs_completely(name, tmp_path):
    experiment: Experiment = EXPERIMENTS[name].quick()
    records = run(experiment, tmp_path, device="cpu", workers=2)
    assert [record["key"] for record in records] == [cell.key for cell in experiment.cells()]
    assert {record["error"] for record in records} == {None}
    assert all(record["metrics"]["rmse"] for record in records)
