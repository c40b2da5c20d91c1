"""The examples of docs/models.md run and print what they show; its tables match the package."""

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
# `print(...)  # output[: remark]`
PRINTED = re.compile(r"^print\(.*\)  # ([^:\n]*[^:\n ])", re.MULTILINE)


def rows_of(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its header."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return rows[2:]


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_example_prints_the_output_it_shows(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, printed = BLOCKS[number], io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, f"docs/models.md, example {number + 1}", "exec"), {})
    assert printed.getvalue().splitlines() == PRINTED.findall(code)
    assert PRINTED.findall(code)


def test_every_imputer_has_a_section_with_an_example():
    for name in CLASSES:
        section = PAGE.split(f"\n### {name}\n")[1].split("\n## ")[0].split("\n### ")[0]
        assert f"{name}(" in "".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
        for word in ("Assumes", "Identifies", "Use it", "Costs"):
            assert f"*{word}*" in section, (name, word)
        assert "`.paper(" in section, name


def test_rows_of_the_paper_construct_sixteen_imputers():
    rows = rows_of("Rows of the paper's tables")
    assert len({row[0] for row in rows}) == len(rows) == 16
    names = {name: getattr(psmvae, name) for name in CLASSES}
    made = [eval(row[1].strip("`"), names) for row in rows]
    assert all(isinstance(imputer, Imputer) for imputer in made)
    assert {type(imputer).__name__ for imputer in made} == set(CLASSES)
    # "MICE" and "MICE sample" are `transform` and `sample` of one imputer
    assert len({repr((type(i).__name__, i.get_params())) for i in made}) == 15


def test_table_of_kinds_is_complete():
    assert {row[0].strip("`") for row in rows_of("Kinds of columns")} == set(KINDS)


def test_links_and_scripts_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
    for script in re.findall(r"`(benchmarks/\w+\.py)`", PAGE):
        assert (ROOT / script).is_file(), script


@pytest.fixture(scope="module")
def benchmark(benchmark):
    """benchmarks/models.py as a module."""
    return benchmark("models")


def test_score_equals_scikit_learn(benchmark):
    rng = np.random.default_rng(0)
    truth = pd.DataFrame({"a": rng.normal(size=50), "b": rng.choice(["u", "v"], 50)})
    filled = pd.DataFrame({"a": rng.normal(size=50), "b": rng.choice(["u", "v"], 50)})
    m = rng.random((50, 2)) < 0.5
    found = benchmark.score(truth, filled, m, ["b"])
    missing = [~m[:, 0], ~m[:, 1]]
    rmse = root_mean_squared_error(truth["a"][missing[0]], filled["a"][missing[0]])
    assert found["rmse"] == pytest.approx(rmse / (truth["a"].max() - truth["a"].min()))
    assert found["accuracy"] == accuracy_score(truth["b"][missing[1]], filled["b"][missing[1]])
    observed = np.ones((50, 2), dtype=bool)
    assert benchmark.score(truth, filled, observed, ["b"]) == {"rmse": None, "accuracy": None}


def test_tables_have_the_documented_shapes_and_kinds(benchmark):
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
    # columns scored by accuracy instead of RMSE
    is_level = {c.name for c in frame.schema_.columns if KINDS[c.kind].has_levels}
    assert set(mixed.levels) == is_level


@pytest.mark.parametrize("table", ["breast", "mixed"])
def test_mnar_mask_removes_values_above_the_median_of_one_column(benchmark, table):
    made = benchmark.TABLES[table]()
    m = benchmark.simulate_mask(made, "mnar", 0.5, np.random.default_rng(0))
    lost = np.flatnonzero(~m.all(0))
    assert len(lost) == (2 if made.levels else 1)
    for j in lost:
        codes = made.codes()[:, j]
        above = codes > np.median(codes)
        assert m[~above, j].all()
        assert (~m[above, j]).mean() == pytest.approx(0.5, abs=0.1)


def test_table_shows_means_ranks_and_best_in_bold(benchmark):
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
    # a method without a record has no mean there; ranks use the cells that all methods have
    lines = benchmark.markdown(records[:-1], "rmse").splitlines()
    assert lines[3] == "| `MICEImputer()` | **.1500 ± .0500** | – | 1.0 | 2.0 |"
    # seconds of different devices are not averaged
    mixed = [*records[:-1], records[-1] | {"device": "cuda", "seconds": 100.0}]
    assert benchmark.markdown(mixed, "rmse").splitlines()[3].endswith("| 1.3 | 2.0 |")


def test_write_page_replaces_the_text_between_the_marks(benchmark, tmp_path):
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
def test_script_runs_and_resumes(environment, tmp_path):
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
