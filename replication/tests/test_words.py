"""What is said in words about the figures is what the committed records say."""

import statistics
from pathlib import Path

import pytest
from psmvae_paper import EXPERIMENTS, load_records
from psmvae_paper.grid import pivot
from psmvae_paper.paper import paper
from psmvae_paper.remarks import FIGURES, MISPRINTS, WHY
from psmvae_paper.tables import asked

RECORDS = Path(__file__).parents[2] / "benchmarks" / "results" / "experiments"


@pytest.fixture(scope="module")
def records():
    return load_records(RECORDS)


def means_of(records, name, by):
    """Means over seeds, by mechanism, then what ``by`` gives of row and column, then method."""
    grid = pivot(records, asked(EXPERIMENTS[name], records))
    found = {}
    for (row, column), entry in grid.entries.items():
        at = found.setdefault(column.mechanism, {}).setdefault(by(row, column), {})
        at[row.method] = entry.mean
    return found


def test_curve(records):
    cells = {cell.key: cell for cell in asked(EXPERIMENTS["curve"], records)}
    lines = {}
    for record in records:
        if record["key"] in cells:
            metrics = record["metrics"]
            own = dict(zip(metrics["steps"], metrics["rmse"], strict=True))
            lines.setdefault(cells[record["key"]].method, []).append(own)
    means = {
        method: {step: statistics.fmean(line[step] for line in own) for step in own[0]}
        for method, own in lines.items()
    }
    assert len(means) == 5
    for mean in means.values():
        after = min(step for step in mean if step >= 167)
        assert mean[1000] < min(mean[after], mean[500])
    constant, by_rate = means["psmvae-b-10000"], means["psmvae-rate"]
    late = [by_rate[step] / constant[step] for step in constant if step >= 200]
    assert 0.98 < min(late) < max(late) < 1.02


def test_pi(records):
    found = means_of(
        records, "pi", lambda row, column: (column.dataset, column.rate, *row.settings)
    )
    for mechanism, most in (("mcar", 1.04), ("mnar", 1.11)):
        for dataset, rate in {at[:2] for at in found[mechanism]}:
            line = {
                dict(at[2:])["pi"]: methods["psmvae-b-10000"]
                for at, methods in found[mechanism].items()
                if at[:2] == (dataset, rate)
            }
            last = line.pop(1.0)
            assert max(line.values()) <= most * min(line.values())
            assert last > 1.1 * max(line.values())
            best = min(line, key=line.get)
            if mechanism == "mnar":
                assert (best <= 0.1) is (dataset == "breast")


def test_rate(records):
    found = means_of(records, "rate", lambda _, column: column.rate)
    for rates in found.values():
        line = [methods["not-miwae"] for methods in rates.values()]
        assert max(line) < 1.12 * min(line)
        assert all(methods["psmvae-a"] > methods["mice"] for methods in rates.values())
    at_random = found["mcar"]
    assert at_random[0.2]["psmvae-b-10000"] > at_random[0.2]["mice"]
    assert at_random[0.8]["psmvae-b-10000"] < at_random[0.8]["mice"]
    assert all(m["psmvae-b-10000"] > m["mice"] for m in found["mnar"].values())


def test_rows(records):
    found = means_of(records, "rows", lambda _, column: column.n_rows)
    few, many = (found["mnar"][n] for n in (2_000, 20_000))
    assert all(many[method] < few[method] for method in few)
    assert found["mcar"][20_000]["psmvae-a"] > found["mcar"][2_000]["psmvae-a"]
    for sizes in found.values():
        assert all(methods["psmvae-b-10000"] > methods["mice"] for methods in sizes.values())


def test_columns(records):
    found = means_of(records, "columns", lambda _, column: column.n_columns)
    few, many = (found["mcar"][n] for n in (3, 15))
    assert [method for method in few if many[method] > few[method]] == ["psmvae-a"]
    ratios = [f"{at['psmvae-b-10000'] / at['mice']:.2f}" for at in (few, many)]
    assert all(ratio in FIGURES["columns"] for ratio in ratios)


def test_inpainting(records):
    for name in ("inpainting", "inpainting-mnist"):
        found = means_of(records, name, lambda _, column: column.rate)
        for methods in found["mcar"].values():
            assert methods["psmvae-b"] < methods["gain"]


def test_a_deviation_that_looks_like_a_misprint_stands_out():
    (told,) = (text for text in MISPRINTS if text.startswith("HIVAE, credit"))
    column = {
        key.method: f.std for key, f in paper("rmse80").items() if key[:2] == ("credit", "mcar")
    }
    odd = column.pop("hivae")
    assert (f"{odd:.2f}"[1:], f"{max(column.values()):.4f}"[1:]) == (".11", ".0045")
    assert ".11 beside at most .0045" in told


def test_every_figure_and_every_row_that_is_spoken_of_is_known():
    from psmvae_paper import METHODS

    assert set(FIGURES) <= set(EXPERIMENTS)
    assert set(WHY) <= set(METHODS)
