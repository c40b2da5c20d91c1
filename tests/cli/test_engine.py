"""Options of a cluster on the command line; tests/cluster has those that start Ray."""

import sys

import pytest

from psmvae import MeanImputer
from psmvae.table import read_table


@pytest.fixture
def model(table, tmp_path):
    path = tmp_path / "model.safetensors"
    MeanImputer(random_state=0).fit(read_table(table)).save(path)
    return path


@pytest.mark.parametrize("option", [("--workers", 2), ("--address", "auto")])
def test_options_of_a_cluster_need_one(psmvae, table, model, tmp_path, option):
    result = psmvae("impute", table, "-m", model, "-o", tmp_path / "out", *option)
    assert (result.code, result.err) == (2, f"error: {option[0]} is an option of --engine ray\n")


def test_only_networks_are_fitted_by_a_cluster(psmvae, table, tmp_path):
    output = tmp_path / "other.safetensors"
    result = psmvae("fit", table, "-o", output, "--method", "mice", "--engine", "ray")
    assert result.code == 2
    assert result.err == "error: --engine ray trains networks, and mice has none\n"


def test_without_ray_the_error_says_how_to_install_it(psmvae, table, model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    output = tmp_path / "out"
    result = psmvae("impute", table, "-m", model, "-o", output, "--engine", "ray")
    assert result.code == 1
    assert result.err.splitlines()[-1] == "error: psmvae.ray needs ray: pip install 'psmvae[ray]'"
    assert not output.exists()
