"""What could only fail is refused before anything is trained or written."""

from dataclasses import replace

import pandas as pd
import pytest

from psmvae_paper import EXPERIMENTS, METHODS, Method, run

QUICK = {name: one.quick().only(seeds=[0]) for name, one in EXPERIMENTS.items()}


@pytest.mark.parametrize(
    ("experiment", "message"),
    [
        (QUICK["pattern-sets"].only(methods=["miwae"]), "method miwae has no n_sets"),
        (QUICK["inpainting"].only(methods=["mean"]), "method mean has no batch_size"),
        (QUICK["inpainting"].only(datasets=["breast"]), "needs square images, .* 30 columns"),
        (replace(QUICK["rmse20"], mechanisms=("label",)), "mechanism 'label' needs label"),
        (replace(QUICK["rmse20"], n_columns=(31,)), "breast: n_columns must be at most 30"),
        (replace(QUICK["rmse20"], n_rows=(1000,)), "breast: n_rows must be at most 569"),
        (QUICK["rmse20"].only(seeds=[2**32]), "seed must be"),
    ],
)
def test_invalid_experiment_is_rejected_before_run(tmp_path, experiment, message):
    with pytest.raises(ValueError, match=message):
        run(experiment, tmp_path / "out", device="cpu", workers=1)
    assert not (tmp_path / "out").exists()


def test_file_without_target_is_rejected_for_classifier(tmp_path):
    path = tmp_path / "mine.csv"
    pd.DataFrame({"a": range(200), "b": range(200)}).to_csv(path, index=False)
    mine = replace(QUICK["multiple"], datasets=(str(path),), n_columns=(2,))
    with pytest.raises(ValueError, match=r"mine.csv: measure .multiple. needs a data set with a"):
        run(mine, tmp_path / "out", device="cpu", workers=1)


@pytest.mark.parametrize("place", ["file", "file/sub", "records.jsonl"])
def test_output_path_that_is_a_file_is_rejected(tmp_path, place):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "out" / "records.jsonl").mkdir(parents=True)
    out = tmp_path / ("out" if place == "records.jsonl" else place)
    with pytest.raises(ValueError, match="out must be a folder"):
        run(QUICK["rmse20"].only(methods=["mean"]), out, device="cpu", workers=1)
    assert (tmp_path / "file").read_text() == "mine"


def leaves(seed, device, **overrides):
    raise SystemExit(3)


def test_method_that_exits_is_recorded_as_failed(tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "leaves", Method("leaves", "leaves", "leaves", leaves))
    records = run(QUICK["rmse20"], tmp_path, methods=["leaves"], device="cpu", workers=1)
    assert {record["error"] for record in records} == {
        "RuntimeError: the method ended the program with 3"
    }
