"""Running: what is skipped, what is shared, what fails, and what a kill leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from psmvae_paper import EXPERIMENTS, METHODS, Experiment, Method, load_records, run
from psmvae_paper.measure import quietly
from psmvae_paper.methods import Maker
from psmvae_paper.records import FILE
from psmvae_paper.stacks import make_jobs

TINY = Experiment(
    name="tiny",
    title="a little of everything",
    source="",
    datasets=("breast",),
    mechanisms=("mcar", "mnar"),
    rates=(0.3,),
    methods=("psmvae-b", "psmvae-b-10000", "mice", "mean"),
    seeds=(0, 1),
    n_rows=(80,),
    n_columns=(4,),
    epochs=2,
    max_draws=10,
)
# Methods and experiments of one's own, in a module that other processes can import.
MINE = """
import os, signal, sys, time
from dataclasses import replace
from psmvae_paper import METHODS, Method, run
from psmvae_paper.experiment import Experiment

# a background job of a shell ignores it
signal.signal(signal.SIGINT, signal.default_int_handler)

def dies(seed, device, **overrides):
    os._exit(3)

def fails(seed, device, **overrides):
    raise OSError("no disk")

def slow(seed, device, **overrides):
    time.sleep(3.0)
    return METHODS["mean"].make(seed, device, **overrides)

for make in (dies, fails, slow):
    METHODS[make.__name__] = Method(make.__name__, make.__name__, make.__name__, make, real=True)

TINY = replace({tiny!r}, mechanisms=("mcar",))

if __name__ == "__main__":
    folder, workers, *methods = sys.argv[1:]
    run(TINY, folder, device="cpu", workers=int(workers), methods=methods or None)
"""


def go(folder, experiment=TINY, **options):
    return run(experiment, folder, **({"device": "cpu", "workers": 1} | options))


def metrics_of(records):
    return {record["key"]: record["metrics"] for record in records}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    go(folder)
    return folder


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE.format(tiny=TINY))
    return path


def start(script, environment, folder, workers, *methods):
    arguments = [sys.executable, str(script), str(folder), str(workers), *methods]
    return subprocess.Popen(
        arguments, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_record_has_all_fields(whole):
    records = load_records(whole)
    assert [r["error"] for r in records] == [None] * 16
    latent = next(r for r in records if r["cell"]["method"] == "psmvae-b-10000")
    assert set(latent["metrics"]) == {"rmse", "accuracy", "bias", "crps", "coverage", "width"}
    assert latent["metrics"]["accuracy"] is None
    assert latent["seconds"]["fit"] > 0
    assert latent["seconds"]["impute"] > 0
    assert (latent["stacked"], latent["device"]) == (1, "cpu")
    assert latent["settings"]["n_draws"] == 10
    assert latent["settings"]["max_epochs"] == 2
    assert latent["settings"]["kinds"] == "all real"
    assert latent["versions"].keys() >= {"psmvae", "torch", "numpy", "scikit-learn", "python"}
    assert latent["peak_memory_mib"] is None or latent["peak_memory_mib"] > 50
    mean = next(r for r in records if r["cell"]["method"] == "mean")
    assert "crps" not in mean["metrics"]


def test_records_are_returned_in_order_of_cells(whole):
    assert [r["key"] for r in go(whole)] == [cell.key for cell in TINY.cells()]


def test_recorded_cells_are_skipped(whole):
    before, message = (whole / FILE).read_bytes(), []
    go(whole, progress=message.append)
    assert (whole / FILE).read_bytes() == before
    assert [(s.total, s.skipped, s.done, s.left, s.share) for s in message] == [(16, 16, 0, 0, 1.0)]


def test_one_training_is_shared_by_several_k(whole):
    fits = {}
    for record in load_records(whole):
        cell = record["cell"]
        place = (cell["method"].startswith("psmvae-b"), cell["mechanism"], cell["seed"])
        fits.setdefault(place, set()).add(record["seconds"]["fit"])
    assert all(len(fits[place]) == 1 for place in fits if place[0])
    found = metrics_of(load_records(whole))
    one, many = ([c for c in TINY.cells() if c.method == m] for m in TINY.methods[:2])
    for first, second in zip(one, many, strict=True):
        assert found[first.key]["rmse"] != found[second.key]["rmse"]


def test_results_do_not_depend_on_order_of_runs(whole, tmp_path):
    go(tmp_path, seeds=[1], methods=["mean", "psmvae-b-10000"])
    go(tmp_path, methods=["psmvae-b"])
    assert len(load_records(tmp_path)) == 7 + 1
    go(tmp_path)
    assert metrics_of(load_records(tmp_path)) == metrics_of(load_records(whole))


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize(
    ("how", "workers"),
    [(signal.SIGKILL, 1), pytest.param(signal.SIGINT, 2, marks=pytest.mark.slow)],
)
def test_killed_run_resumes_with_same_results(how, workers, whole, tmp_path, script, environment):
    folder = tmp_path / "out"
    methods = ("psmvae-b", "psmvae-b-10000", "slow")
    with start(script, environment, folder, workers, *methods) as process:
        try:
            deadline = time.monotonic() + 120
            while not (folder / FILE).is_file() or b"\n" not in (folder / FILE).read_bytes():
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.02)
            os.kill(process.pid, how)
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode != 0
    left = load_records(folder)
    assert 1 <= len(left) < 6
    own = replace(TINY, mechanisms=("mcar",), methods=TINY.methods[:2])
    keys = {cell.key for cell in own.cells()}
    expected = {key: m for key, m in metrics_of(load_records(whole)).items() if key in keys}
    assert metrics_of(go(folder, own)) == expected


@pytest.mark.slow
def test_dead_worker_fails_only_its_cells(tmp_path, script, environment):
    folder = tmp_path / "out"
    with start(script, environment, folder, 2, "dies", "fails", "mean") as process:
        assert process.wait(120) == 0, process.stderr.read()
    errors = {}
    for record in load_records(folder):
        errors.setdefault(record["cell"]["method"], set()).add(record["error"])
    assert errors == {
        "dies": {"RuntimeError: the process ended with code 3"},
        "fails": {"OSError: no disk"},
        "mean": {None},
    }


class Moody(Maker):
    """Makes an imputer only if the world is fine."""

    fine = False

    def __call__(self, seed, device, **overrides):
        if seed == 1 and not Moody.fine:
            raise OSError("not today")
        return super().__call__(seed, device, **overrides)


def test_failed_cell_is_recorded_and_retried(tmp_path, monkeypatch):
    moody = Method("moody", "moody", "moody", Moody("MeanImputer"), real=True)
    monkeypatch.setitem(METHODS, "moody", moody)
    message = []
    records = go(tmp_path, methods=["moody", "mean"], progress=message.append)
    failed = [record for record in records if record["error"]]
    assert [(r["cell"]["seed"], r["error"]) for r in failed] == [(1, "OSError: not today")] * 2
    assert all(record["metrics"] == {} for record in failed)
    assert (message[-1].done, message[-1].failed, message[-1].running, message[-1].left) == (
        8,
        2,
        0,
        0,
    )
    assert message[-1].share == pytest.approx(1.0)
    shares = [standing.share for standing in message]
    assert shares == sorted(shares)

    monkeypatch.setattr(Moody, "fine", True)
    assert sum(bool(r["error"]) for r in go(tmp_path, methods=["moody", "mean"])) == 2
    again = go(tmp_path, methods=["moody", "mean"], retry=True)
    assert [record["error"] for record in again] == [None] * 8
    assert again[0]["metrics"]["rmse"] == again[2]["metrics"]["rmse"]


def test_scikit_learn_method_can_be_added(tmp_path, monkeypatch):
    def nearest(seed, device, **overrides):
        from sklearn.impute import KNNImputer

        return KNNImputer(**overrides)

    monkeypatch.setitem(METHODS, "nearest", Method("nearest", "nearest", "nearest", nearest))
    experiment = replace(TINY, methods=("nearest",), sweep=((("n_neighbors", 3),),))
    records = go(tmp_path, experiment)
    assert all(0 < record["metrics"]["rmse"] < 1 for record in records)
    assert records[0]["settings"]["n_neighbors"] == 3
    with pytest.raises(ValueError, match="'nearest' cannot be sent to another process"):
        go(tmp_path / "new", experiment, workers=2)


def test_sets_and_classifier_are_measured(tmp_path):
    few = {"methods": ["psmvae-b"], "seeds": [0]}
    sets, multiple = (
        replace(EXPERIMENTS[name].quick(), mechanisms=("mnar",), rates=(0.2,))
        for name in ("pattern-sets", "multiple")
    )
    (first,) = go(tmp_path, sets, **few)
    assert 0.4 <= first["metrics"]["set_accuracy"] <= 1.0
    assert -0.5 <= first["metrics"]["adjusted_rand"] <= 1.0
    (first,) = go(tmp_path, multiple, **few)
    assert 0.5 <= first["metrics"]["accuracy"] <= 1.0


def test_curve_ends_at_error_of_fitted_imputer(tmp_path):
    curve = EXPERIMENTS["curve"].quick()
    few = {"methods": ["psmvae-b-10000", "miwae-10000"], "seeds": [0]}
    curves = go(tmp_path, curve, **few)
    ends = go(tmp_path, replace(curve, measure="impute"), **few)
    for record, end in zip(curves, ends, strict=True):
        assert record["metrics"]["steps"] == [1, 2, 3, 4, 5]
        assert record["metrics"]["rmse"][-1] == pytest.approx(end["metrics"]["rmse"], rel=1e-6)
        assert len(set(record["metrics"]["rmse"])) == 5


def test_classifier_needs_target(tmp_path):
    experiment = replace(EXPERIMENTS["multiple"].quick(), datasets=("trial",), mechanisms=("mcar",))
    with pytest.raises(ValueError, match=r"trial: .* needs a data set with a target"):
        go(tmp_path / "out", experiment, methods=["mean"], seeds=[0])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers must be a whole number from 1, got 0"),
        ({"processes": 1.5}, "processes must be"),
        ({"methods": ["median"]}, "unknown method 'median'"),
        ({"datasets": ["brest"]}, "unknown data set 'brest'"),
        ({"device": "tpu"}, "device must be 'auto', 'cpu'"),
        ({"experiment": replace(TINY, mechanisms=("mnr",))}, "unknown mechanism 'mnr'"),
    ],
)
def test_invalid_run_arguments_are_rejected(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        go(tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_missing_data_error_says_how_to_get_them(tmp_path):
    with pytest.raises(FileNotFoundError, match="PSMVAE_DATA_HOME"):
        go(tmp_path / "out", EXPERIMENTS["rmse20"], data_home=tmp_path)
    assert not (tmp_path / "out").exists()


def test_output_file_is_not_overwritten(tmp_path):
    (tmp_path / "out").write_text("precious")
    with pytest.raises(ValueError, match="out must be a folder"):
        go(tmp_path / "out")
    assert (tmp_path / "out").read_text() == "precious"


def test_interrupted_fit_is_no_result():
    table = np.random.default_rng(0).normal(size=(50, 3))
    table[::3, 0] = np.nan
    imputer = METHODS["vae"].make(0, "cpu", max_epochs=10**6)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), quietly():
            imputer.fit(table, callback=lambda _: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)


def test_gpu_job_has_all_seeds_and_mechanisms():
    cells = TINY.cells()
    jobs = make_jobs(cells, (), "cuda", None)
    assert (jobs[0].device, len(jobs[0].fits), len(jobs[0].cells)) == ("cuda", 4, 8)
    assert all(job.device == "cpu" and len(job.fits) == 1 for job in jobs[1:])
    costs = [job.cost for job in jobs]
    assert costs == sorted(costs, reverse=True)
    # a stack of which one cell is missing is trained whole, and only that cell is written
    deep = [cell for cell in cells if METHODS[cell.method].deep]
    (job,) = make_jobs(deep, [cell.key for cell in deep[1:]], "cuda", None)
    assert (len(job.fits), job.cells) == (4, deep[:1])


@pytest.mark.gpu
def test_stacked_gpu_fits_are_close_to_single_fits(tmp_path):
    experiment = replace(TINY, methods=("psmvae-b", "psmvae-a", "miwae", "gain", "mean"), epochs=50)
    together = run(experiment, tmp_path / "gpu", device="cuda", workers=2, processes=2)
    assert {record["error"] for record in together} == {None}
    single = run(experiment, tmp_path / "cpu", device="cpu", workers=2)
    for ours in together:
        deep = METHODS[ours["cell"]["method"]].deep
        assert ours["stacked"] == (4 if deep else 1)
    # random numbers differ between devices, and one cell of so small a table varies by half
    for method in experiment.methods:
        found, expected = (
            np.mean([one["metrics"]["rmse"] for one in some if one["cell"]["method"] == method])
            for some in (together, single)
        )
        assert found == pytest.approx(expected, rel=0.4 if METHODS[method].deep else 1e-9)
    path = tmp_path / "gpu" / FILE
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[::2]))
    again = run(experiment, tmp_path / "gpu", device="cuda", workers=2, processes=2)
    assert metrics_of(again) == metrics_of(json.loads(line) for line in lines)


@pytest.mark.skipif(sys.platform == "win32", reason="no masks of signals")
def test_sigint_is_blocked_while_a_process_starts(tmp_path, environment):
    code = """
import multiprocessing, signal
from psmvae_paper.pool import sigint_blocked

def report():
    print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []), flush=True)

def start():
    process = multiprocessing.get_context("spawn").Process(target=report)
    with sigint_blocked():
        process.start()
    process.join()

if __name__ == "__main__":
    start()
    start()
    report()
"""
    path = tmp_path / "main.py"
    path.write_text(code)
    done = subprocess.run(
        [sys.executable, str(path)], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "True", "False"]
