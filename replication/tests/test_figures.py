"""Figures from records: what is drawn is what was measured."""

import numpy as np
import pytest

from made_records import made_up, record, small
from psmvae_paper import EXPERIMENTS
from psmvae_paper import figures as f

matplotlib = pytest.importorskip("matplotlib")

FIGURES = [name for name, one in EXPERIMENTS.items() if f.has_figure(one)]
PNG = b"\x89PNG\r\n"


def good(experiment, make=made_up) -> dict:
    return {cell: make(cell) for cell in experiment.cells()}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn(name, tmp_path):
    experiment = EXPERIMENTS[name].quick()
    path = tmp_path / "figure.png"
    assert f.draw(experiment, list(good(experiment).values()), path) == []
    assert path.read_bytes().startswith(PNG)
    assert [file.name for file in tmp_path.iterdir()] == ["figure.png"]


def test_experiments_with_figures():
    lines, pictures = FIGURES[:5], FIGURES[5:]
    assert lines == ["curve", "pi", "rate", "rows", "columns"]
    assert pictures == ["inpainting", "inpainting-mnist"]


def test_same_records_give_same_file(tmp_path):
    experiment = EXPERIMENTS["rate"].quick()
    records = list(good(experiment).values())
    for name in ("a.png", "b.png"):
        f.draw(experiment, records, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_line_is_mean_over_seeds():
    experiment = EXPERIMENTS["rate"].only(methods=["mice"])
    records = good(experiment, lambda cell: record(cell, rmse=cell.rate + 0.1 * cell.seed))
    figure = f._lines(experiment, records)
    assert [axes.get_title() for axes in figure.axes] == ["MCAR", "MNAR"]
    for axes in figure.axes:
        (line,) = axes.get_lines()
        np.testing.assert_allclose(line.get_xdata(), [20, 30, 40, 50, 60, 70, 80])
        np.testing.assert_allclose(line.get_ydata(), np.arange(2, 9) / 10 + 0.2)
        (band,) = axes.collections
        y = band.get_paths()[0].vertices[:, 1]
        assert (y.min(), y.max()) == pytest.approx((0.2, 1.2))


def test_point_with_fewer_seeds_is_omitted():
    experiment = EXPERIMENTS["rate"].only(methods=["mice"])
    records = good(experiment)
    gone = next(c for c in records if (c.mechanism, c.rate, c.seed) == ("mnar", 0.5, 3))
    del records[gone]
    mcar, mnar = f._lines(experiment, records).axes
    np.testing.assert_allclose(mcar.get_lines()[0].get_xdata(), [20, 30, 40, 50, 60, 70, 80])
    np.testing.assert_allclose(mnar.get_lines()[0].get_xdata(), [20, 30, 40, 60, 70, 80])


def test_curve_is_drawn_over_epochs():
    experiment = EXPERIMENTS["curve"].only(methods=["not-miwae"], seeds=[0])
    figure = f._lines(experiment, good(experiment))
    (line,) = figure.axes[0].get_lines()
    assert line.get_xdata().tolist() == [1, 10, 100]
    assert figure.axes[0].get_xlabel() == "epochs of training"


def test_pi_figure_has_panel_for_each_mechanism_and_rate():
    experiment = EXPERIMENTS["pi"].only(seeds=[0])
    figure = f._lines(experiment, good(experiment))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"{m}, {r} % missing" for r in (20, 80) for m in ("MCAR", "MNAR")]
    for axes in figure.axes:
        assert [line.get_label() for line in axes.get_lines()] == ["breast", "wine"]
        assert axes.get_lines()[0].get_xdata().tolist() == [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1]


def test_lines_differ_in_marker_and_style():
    experiment = EXPERIMENTS["rows"]
    lines = f._lines(experiment, good(experiment)).axes[0].get_lines()
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(lines) == 5
    assert len({line.get_marker() for line in lines}) == 5


def test_large_errors_give_log_scale():
    experiment = EXPERIMENTS["rate"]
    high = good(experiment, lambda c: record(c, rmse=90.0 if c.method == "mice" else 0.2))
    assert f._lines(experiment, high).axes[0].get_yscale() == "log"
    assert f._lines(experiment, good(experiment)).axes[0].get_yscale() == "linear"


def test_missing_pixels_are_red():
    experiment = EXPERIMENTS["inpainting"]
    records = good(experiment)
    figure = f._image_figure(records)
    found = next(iter(records.values()))
    truth, m = (np.array(found["metrics"][name]) for name in ("truth", "m"))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"{k}, {r} % MCAR" for r in (20, 80) for k in ("PSMVAE(b) K=1", "GAIN")]
    strip = figure.axes[0].get_images()[0].get_array()
    assert strip.shape == (20, 80, 3)
    # the second picture: frames of one pixel around pictures of eight
    above, below = strip[1:9, 11:19], strip[11:19, 11:19]
    red = np.isclose(above, f._MISSING_PIXEL).all(-1)
    np.testing.assert_array_equal(red, m[1] == 0)
    np.testing.assert_allclose(above[~red][:, 0], 1 - truth[1][~red] / truth.max())
    np.testing.assert_allclose(below[..., 0], 1 - truth[1] / truth.max())


def test_out_of_range_pixels_are_clipped():
    cell = EXPERIMENTS["inpainting"].cells()[0]
    found = record(cell, truth=[[0, 4, 2, 1]], m=[[1, 1, 1, 0]], filled=[[0, 4, 2, 9]])
    strip = f._strip(found["metrics"])
    assert strip.shape == (8, 4, 3)
    np.testing.assert_array_equal(strip[5:7, 1:3, 0], [[1, 0], [0.5, 0]])


def test_figure_notes_failed_and_missing_cells(tmp_path):
    experiment = EXPERIMENTS["rows"].only(methods=["mice", "psmvae", "psmvae-a"])
    records = good(experiment)
    for cell in list(records):
        if cell.method == "psmvae" and cell.seed == 0:
            records[cell] = record(cell, error="ValueError: no")
        if cell.method == "psmvae-a":
            del records[cell]
    message = f.draw(experiment, list(records.values()), tmp_path / "rows.png")
    assert message == [
        "PSMVAE default: 10 failed of 50 cells.",
        "PSMVAE(a) K=10000: 50 not run of 50 cells.",
    ]


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("rmse20", "a.png", "one with a figure, got 'rmse20'"),
        ("rate", "a.pdf", r"path must end in \.png, got '.*a\.pdf'"),
        ("rate", "a.png", "records must hold some of rate that did not fail"),
    ],
)
def test_invalid_figure_is_rejected(name, file, message, tmp_path):
    experiment = EXPERIMENTS[name].quick()
    failed = [record(cell, error="ValueError: no") for cell in experiment.cells()]
    with pytest.raises(ValueError, match=message):
        f.draw(experiment, failed, tmp_path / file)
    assert list(tmp_path.iterdir()) == []


def test_user_experiment_has_figure(tmp_path):
    mine = small(rates=(0.1, 0.5), axis="rate")
    f.draw(mine, list(good(mine).values()), tmp_path / "mine.png")
    figure = f._lines(mine, good(mine))
    labels = [line.get_label() for line in figure.axes[0].get_lines()]
    assert labels == ["wine, mean", "wine, MICE", "letter, mean", "letter, MICE"]


def test_curve_with_missing_points_is_drawn():
    experiment = EXPERIMENTS["curve"].only(seeds=[0], methods=["miwae-10000"])
    records = good(experiment)
    for one in records.values():
        one["metrics"]["rmse"][0] = None
    (lines,) = f._panels(records, "steps").values()
    (line,) = lines.values()
    assert line.x == [10, 100]


def test_files_of_same_name_have_separate_lines():
    experiment = small(datasets=("a/mine.csv", "b/mine.csv"), methods=("mean",), axis="rate")
    panels = f._panels(good(experiment), "rate")
    assert set(panels["MCAR"]) == {"a/mine.csv", "b/mine.csv"}
