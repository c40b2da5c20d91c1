"""What docs/models.md shows runs and gives what it says; its tables fit the package."""

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, root_mean_squared_error

import psmvae
from psmvae.imputers.base import Imputer
from psmvae.kinds import KINDS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "models.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
CLASSES = sorted(name for name in psmvae.__all__ if name.endswith("Imputer"))
# `print(...)  # what it prints[: a remark]`
PROMISED = re.compile(r"^print\(.*\)  # ([^:\n]*[^:\n ])", re.MULTILINE)


def rows_of(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, its head left out."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return rows[2:]


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_an_example_prints_what_the_page_says(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, printed = BLOCKS[number], io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, f"docs/models.md, example {number + 1}", "exec"), {})
    assert printed.getvalue().splitlines() == PROMISED.findall(code)
    assert PROMISED.findall(code)


def test_every_imputer_has_a_section_with_an_example():
    for name in CLASSES:
        section = PAGE.split(f"\n### {name}\n")[1].split("\n## ")[0].split("\n### ")[0]
        assert f"{name}(" in "".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
        for word in ("Assumes", "Identifies", "Use it", "Costs"):
            assert f"*{word}*" in section, (name, word)
        assert "`.paper(" in section, name


def test_the_papers_rows_are_calls_that_work():
    rows = rows_of("The paper's rows")
    assert len({row[0] for row in rows}) == len(rows) == 16
    names = {name: getattr(psmvae, name) for name in CLASSES}
    made = [eval(row[1].strip("`"), names) for row in rows]
    assert all(isinstance(imputer, Imputer) for imputer in made)
    assert {type(imputer).__name__ for imputer in made} == set(CLASSES)
    assert len({repr((type(i).__name__, i.get_params())) for i in made}) == 16


def test_every_kind_is_in_the_table():
    assert {row[0].strip("`") for row in rows_of("Kinds of columns")} == set(KINDS)


def test_files_and_code_it_names_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
    for script in re.findall(r"`(benchmarks/\w+\.py)`", PAGE):
        assert (ROOT / script).is_file(), script


@pytest.fixture(scope="module")
def benchmark(benchmark):
    """benchmarks/models.py as a module."""
    return benchmark("models")


def test_it_scores_as_scikit_learn_does(benchmark):
    rng = np.random.default_rng(0)
    truth = pd.DataFrame({"a": rng.normal(size=50), "b": rng.choice(["u", "v"], 50)})
    filled = pd.DataFrame({"a": rng.normal(size=50), "b": rng.choice(["u", "v"], 50)})
    m = rng.random((50, 2)) < 0.5
    found = benchmark.score(truth, filled, m, ["b"])
    holes = [~m[:, 0], ~m[:, 1]]
    rmse = root_mean_squared_error(truth["a"][holes[0]], filled["a"][holes[0]])
    assert found["rmse"] == pytest.approx(rmse / (truth["a"].max() - truth["a"].min()))
    assert found["accuracy"] == accuracy_score(truth["b"][holes[1]], filled["b"][holes[1]])
    observed = np.ones((50, 2), dtype=bool)
    assert benchmark.score(truth, filled, observed, ["b"]) == {"rmse": None, "accuracy": None}


def test_its_tables_are_as_told(benchmark):
    tables = {name: make() for name, make in benchmark.TABLES.items()}
    assert {name: table.complete.shape for name, table in tables.items()} == {
        "breast": (569, 30),
        "digits": (1797, 61),
        "mixed": (1500, 13),
    }
    mixed = tables["mixed"]
    frame = psmvae.MeanImputer(kinds=mixed.kinds).fit(mixed.complete)
    assert {column.kind for column in frame.schema_.columns} == set(KINDS)
    pd.testing.assert_frame_equal(mixed.complete, benchmark.mixed().complete)
    # what is told of the table in levels, not numbers
    is_level = {c.name for c in frame.schema_.columns if KINDS[c.kind].has_levels}
    assert set(mixed.levels) == is_level


@pytest.mark.parametrize("table", ["breast", "mixed"])
def test_not_at_random_high_values_of_one_column_a_group_go(benchmark, table):
    made = benchmark.TABLES[table]()
    m = benchmark.simulate_mask(made, "mnar", 0.5, np.random.default_rng(0))
    lost = np.flatnonzero(~m.all(0))
    assert len(lost) == (2 if made.levels else 1)
    for j in lost:
        codes = made.codes()[:, j]
        above = codes > np.median(codes)
        assert m[~above, j].all()
        assert (~m[above, j]).mean() == pytest.approx(0.5, abs=0.1)


def test_its_table_has_means_ranks_and_the_best_in_bold(benchmark):
    def record(method, rate, seed, rmse):
        key = {"table": "breast", "mechanism": "mcar", "rate": rate, "seed": seed}
        return {**key, "method": method, "rmse": rmse, "seconds": 2.0, "device": "cpu"}

    errors = {"mean": [0.2, 0.4, 0.3], "mice": [0.1, 0.2, 0.5]}
    records = [
        record(method, rate, seed, rmse)
        for method, found in errors.items()
        for (rate, seed), rmse in zip([(0.2, 0), (0.2, 1), (0.5, 0)], found, strict=True)
    ]
    lines = benchmark.markdown(records, "rmse").splitlines()
    assert lines[0] == "| imputer | MCAR 20% | MCAR 50% | rank | seconds |"
    assert lines[2] == "| `MeanImputer()` | .3000 ± .1000 | **.3000 ± .0000** | 1.7 | 2.0 |"
    assert lines[3] == "| `MICEImputer()` | **.1500 ± .0500** | .5000 ± .0000 | 1.3 | 2.0 |"
    # a method that lacks a cell is left out there, and ranks are of what all have
    lines = benchmark.markdown(records[:-1], "rmse").splitlines()
    assert lines[3] == "| `MICEImputer()` | **.1500 ± .0500** | – | 1.0 | 2.0 |"
    # seconds of two kinds of devices have no mean
    mixed = [*records[:-1], records[-1] | {"device": "cuda", "seconds": 100.0}]
    assert benchmark.markdown(mixed, "rmse").splitlines()[3].endswith("| 1.3 | 2.0 |")


def test_the_page_has_the_marks_and_is_written_between_them(benchmark, tmp_path):
    copy = tmp_path / "models.md"
    copy.write_text(PAGE)
    benchmark.write_page(copy, "models", "| a table |")
    once = copy.read_text()
    before, after = once.split("\n\n| a table |\n\n")
    assert PAGE.startswith(before)
    assert PAGE.endswith(after)
    benchmark.write_page(copy, "models", "| a table |")
    assert copy.read_text() == once


@pytest.mark.slow
def test_it_runs_and_resumes(environment, tmp_path):
    out = tmp_path / "models.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "models.py"), "--tables", "breast"]
    command += ["--mechanisms", "mcar", "--methods", "mean", "--seeds", "0", "--resume"]

    def run(*rates):
        more = ["--rates", *rates, "--out", str(out)]
        subprocess.run([*command, *more], env=environment, check=True, timeout=300)
        return json.loads(out.read_text())

    first, second = run("0.2"), run("0.2", "0.5")
    assert len(first["records"]) == 1
    assert [record["rate"] for record in second["records"]] == [0.2, 0.5]
    assert second["records"][0] == first["records"][0]
    assert [record["run"] for record in second["records"]] == [0, 1]
    assert second["runs"][1]["settings"]["workers"] == 1
