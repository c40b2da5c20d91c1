"""The scripts in benchmarks/ import names that exist, and run with small sizes."""

import ast
import gzip
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import psmvae

SCRIPTS = sorted((Path(__file__).parent.parent / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_imported_names_exist(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "psmvae":
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")


@pytest.mark.slow
def test_cpu(script):
    small = "--threads 1 --rows 400 --columns 4 --draws 5 --rounds 2 --impute-rounds 1"
    _, result = script("cpu", *small.split(), "--plain-steps", "2", "--few", "3")
    ratios = [record["ratio"] for record in result["records"] if "ratio" in record]
    assert len(ratios) == 4
    assert min(ratios) > 0
    assert result["machine"]["torch_threads"] == 1


@pytest.mark.slow
def test_workers(script, benchmark):
    small = "run --workers 1 2 --ray --jobs 4 --rows 300 --fit-seconds 3"
    _, result = script("workers", *small.split())
    rates = result["records"][0]["rates"]
    assert [(one["workers"], one["multiple"]) for one in rates] == [
        (1, None),
        (2, None),
        (1, 5),
        (2, 5),
    ]
    assert min(one["rows_per_second"] for one in rates) > 0
    page = benchmark("workers").page(result["records"])
    assert "| multiprocessing | 2 |" in page
    assert "1,000,000,000 rows" in page


@pytest.mark.slow
def test_since_0_1(script, tmp_path):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(300, 1)) + 0.2 * rng.normal(size=(300, 13))
    with gzip.open(tmp_path / "wine.csv.gz", "wt") as file:
        np.savetxt(file, table, delimiter=",", header=",".join("abcdefghijklm"), comments="")
    # the package itself stands for version 0.1
    old = Path(psmvae.__file__).parent.parent
    arguments = ["--tables", "wine", "--seeds", "0", "--old", str(old)]
    _, result = script("since_0_1", *arguments, PSMVAE_DATA_HOME=str(tmp_path))
    records = {record["method"]: record for record in result["records"]}
    assert set(records) == {"psmvae 0.1", "psmvae", "missforest", "psmvae, same time"}
    assert records["psmvae 0.1"]["rmse"] == records["psmvae"]["rmse"] < 0.1
    assert records["psmvae, same time"]["max_time"] < records["missforest"]["seconds"]


@pytest.mark.slow
def test_small_tables(script, benchmark, tmp_path):
    x = np.random.default_rng(0).normal(size=(1000, 4))
    x[:, 1] = x[:, 0] ** 2 + 0.3 * x[:, 1]
    with gzip.open(tmp_path / "wine.csv.gz", "wt") as file:
        np.savetxt(file, x, delimiter=",", header="a,b,c,d", comments="")
    arguments = ["--tables", "wine", "--rows", "600", "--seeds", "0", "1", "--workers", "1"]
    _, result = script("small_tables", *arguments, PSMVAE_DATA_HOME=str(tmp_path))
    records = {(one["method"], one["seed"]): one for one in result["records"]}
    assert len(records) == 8
    for seed in (0, 1):
        assert records["psmvae", seed]["regression"]
        without = records["psmvae, no regression", seed]["rmse"]
        assert records["psmvae", seed]["rmse"] < 0.95 * without
    assert "| wine | 600 | 2 of 2 |" in benchmark("small_tables").markdown(result["records"])


@pytest.mark.slow
def test_one_column(script, benchmark, tmp_path):
    x = np.random.default_rng(0).normal(size=(2600, 4))
    x[:, 0] = 3.0 * (x[:, 1] > 0.5) * (x[:, 2] < 0.5) + 0.3 * x[:, 0]
    with gzip.open(tmp_path / "wine.csv.gz", "wt") as file:
        np.savetxt(file, x, delimiter=",", header="a,b,c,d", comments="")
    arguments = ["--tables", "wine", "--seeds", "0", "1", "--workers", "1"]
    _, result = script("one_column", *arguments, PSMVAE_DATA_HOME=str(tmp_path))
    assert [one["seed"] for one in result["records"]] == [0, 1]
    for one in result["records"]:
        assert 0 <= one["weight"] <= 1
        assert one["rmse"] <= 1.05 * one["without"]
    assert "| wine | 2 |" in benchmark("one_column").markdown(result["records"])


@pytest.mark.slow
def test_command(script):
    # the package itself stands for version 0.1
    old = Path(psmvae.__file__).parent.parent
    small = f"--rows 60 --columns 4 --repeats 1 --threads 1 --epochs 1 --old {old}"
    _, result = script("command", *small.split())
    assert len(result["records"]) == 6
    assert all(record["seconds"] > 0 for record in result["records"])
    assert "torch" not in result["import_seconds"]


@pytest.mark.slow
def test_scaling(script, tmp_path):
    printed, result = script("scaling", "--quick", "--axes", "draws")
    assert [record["draws"] for record in result["records"]] == [10, 100]
    assert all(record["memory_gib"] > 0 for record in result["records"])
    again, _ = script("scaling", "--read", tmp_path / "scaling.json")
    assert again.strip() == printed[printed.index("| |") :].strip()


@pytest.mark.slow
def test_coverage(environment, tmp_path):
    out, path = tmp_path / "coverage.json", SCRIPTS[0].parent / "coverage.py"
    small = ["--rows", "100", "--tables", "2", "--workers", "1", "--designs", "mixed, MCAR"]
    command = [sys.executable, path, "run", *small, "--out", out]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)
    entry = json.loads(out.read_text())["mixed, MCAR, 100"]
    assert {"full data", "complete cases", "PSMVAEImputer", "MICE norm", "MICE pmm"} <= set(entry)
    assert entry["PSMVAEImputer"]["mean"]["tables"] == 2


@pytest.mark.slow
def test_self_masking(environment, tmp_path):
    out, path = tmp_path / "self_masking.json", SCRIPTS[0].parent / "self_masking.py"
    small = ["--parts", "a", "c", "--imputers", "MICE", "--rows", "100", "--tables", "2"]
    command = [sys.executable, path, "run", *small, "--workers", "1", "--out", out]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)
    records = json.loads(out.read_text())
    entry = records["a"]["MICE, own value, 100"]
    assert {"full data", "none", "auto", "SelfMask", "SelfMask, straight"} <= set(entry)
    assert records["c"]["MICE, by another column"]["ratio"] > 0


@pytest.mark.slow
def test_streaming(script):
    _, result = script("streaming", "--rows", "3000", "--method", "mean")
    (record,) = result["records"]
    assert record["stream"]["rows_per_second"] > 0
    assert record["memory"]["peak_gib"] > 0


@pytest.mark.slow
def test_faults(environment, root):
    done = subprocess.run(
        [sys.executable, root / "benchmarks" / "faults.py", "--n", "4"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 rounds, 0 faults" in done.stdout


@pytest.mark.slow
def test_soak(script):
    _, result = script("soak", "--n", "12", "--rows", "60")
    assert result["files"] == sorted(result["files"])
    assert set(result["slope_mb_per_fit"]) == {"memory"}


FINE = {"name": "a", "version": "1", "vulns": []}
BAD = {
    "name": "b",
    "version": "2",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"], "aliases": []}],
}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found on PyPI"}


class TestAudit:
    def test_all_fine(self, benchmark):
        code, lines = benchmark("audit").report([FINE], "")
        assert (code, lines) == (0, ["1 packages audited, 0 with advisories"])

    def test_an_advisory(self, benchmark):
        code, lines = benchmark("audit").report([FINE, BAD, SKIPPED], "")
        assert code == 1
        assert lines[0] == "b 2: PYSEC-1, fixed in 3"
        assert lines[-1] == "NOT AUDITED: c"

    def test_packages_that_were_skipped_are_no_success(self, benchmark):
        assert benchmark("audit").report([FINE, SKIPPED], "")[0] == 2
        code, lines = benchmark("audit").report([SKIPPED], "")
        assert code == 2
        assert lines[0].startswith("NOT AUDITED")
        assert benchmark("audit").report([], "no route")[1] == [
            "NOT AUDITED: no advisories could be read (no route)"
        ]
