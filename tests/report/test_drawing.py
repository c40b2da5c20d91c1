"""Drawings of parts of a report: what the artists show is the data."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.colors import ListedColormap, to_rgb  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from psmvae import reporting  # noqa: E402
from psmvae.graphics import labels, palette  # noqa: E402
from psmvae.reporting.drawing import (  # noqa: E402
    imputed,
    mechanism,
    missing,
    results,
    validation,
)
from report.dictionary import HOSTILE, report_data, tipping_map  # noqa: E402

DATA = report_data()


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def texts(ax):
    return [text.get_text() for text in ax.texts]


def rows(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def luminance(colour):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one, other):
    """Contrast ratio of WCAG 2."""
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("role", ["observed", "imputed", "third", "muted"])
def test_marks_can_be_seen_on_both_backgrounds(role):
    for background in ("#ffffff", "#111827"):
        assert contrast(palette.LIGHT[role], background) >= 3
    assert contrast(palette.DARK[role], palette.DARK["bg"]) >= 4.5


@pytest.mark.parametrize("colours", [palette.LIGHT, palette.DARK])
@pytest.mark.parametrize("role", ["fg", "muted"])
def test_text_has_the_contrast_of_level_aa(colours, role):
    assert contrast(colours[role], colours["bg"]) >= 4.5


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize(
    ("colours", "values", "strong"),
    [
        (palette.rates, np.linspace(0, 1, 201), palette.STRONG_RATE),
        (palette.differences, np.linspace(-1, 1, 201), palette.STRONG_DIFFERENCE),
    ],
)
def test_numbers_on_cells_have_the_contrast_of_level_aa(mode, colours, values, strong):
    style = Path(reporting.__file__).with_name("templates").joinpath("style.css").read_text()
    page = {
        role: found[mode]
        for role, *found in re.findall(r"--psm-([a-z]+): light-dark\((#\w+), (#\w+)\)", style)
    }
    scale = ListedColormap(colours().colors)
    low = values[0]
    for value in values:
        *_, alpha = scale((value - low) / (1 - low))
        cell = page["observed"] if value < 0 else page["imputed"]
        mixed = alpha * np.array(to_rgb(cell)) + (1 - alpha) * np.array(to_rgb(page["bg"]))
        text = palette.INK if abs(value) >= strong else page["fg"]
        assert contrast(text, mixed) >= 4.5, value


def test_contrast_of_black_and_white():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("name", HOSTILE)
def test_labels_are_one_line_of_xml_characters(name):
    text = labels.clean(name, 20)
    assert 1 <= len(text) <= 20
    assert text.isprintable() or "\u200d" in text
    assert not set(text) & set("\n\t\x00\x07\ud800\ufffe\u202e")


def test_labels():
    assert labels.clean("bmi") == "bmi"
    assert labels.clean("") == labels.clean(" \n\x00") == "(empty)"
    assert labels.clean("a\nb") == "a b"
    assert labels.clean("x" * 300, 5) == "xxxx…"
    assert labels.isolated("שלום") == "\u2068שלום\u2069"
    assert labels.isolated("bmi") == "bmi"


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0, "0 %"), (0.0004, "< 0.1 %"), (0.004, "0.4 %"), (0.123, "12 %"), (0.9999, "99.9 %"),
     (1, "100 %"), (None, "–")],
)  # fmt: skip
def test_percent(fraction, text):
    assert labels.percent(fraction) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (-1.234567, "−1.23"), (1234567, "1,234,567"), (0.000123, "0.000123"), (None, "–"),
     (1e-9, "1e−09")],
)  # fmt: skip
def test_short_numbers(value, text):
    assert labels.short(value) == text


def test_bars_of_missing_rates(ax):
    columns = [
        {**row, "fraction": f}
        for row, f in zip(DATA["missing"]["columns"][:3], (0.1, 0.5, 0.2), strict=True)
    ]
    missing.draw_rates(ax, columns)
    assert [bar.get_width() for bar in ax.patches] == [0.5, 0.2, 0.1]
    assert rows(ax) == ["bmi", "chol", "age"]
    assert texts(ax) == ["50 %", "20 %", "10 %"]


def test_pattern_matrix(ax):
    data = DATA["missing"]["patterns"]
    missing.draw_patterns(ax, data)
    mesh = ax.collections[0]
    shown = np.reshape(mesh.get_array(), (len(data["columns"]), len(data["rows"])))
    np.testing.assert_array_equal(shown, np.transpose([row["observed"] for row in data["rows"]]))
    heights = np.array([-bar.get_height() for bar in ax.patches])
    counts = np.array([row["n"] for row in data["rows"]])
    np.testing.assert_allclose(heights / heights[0], counts / counts[0])
    assert texts(ax) == [f"{n:,}" for n in counts]
    assert rows(ax) == data["columns"]
    # red is missing, blue observed
    colours = mesh.get_cmap()([0.0, 1.0])[:, :3]
    np.testing.assert_allclose(colours, [to_rgb(palette.IMPUTED), to_rgb(palette.OBSERVED)])


def test_correlation_is_the_lower_triangle(ax):
    data = DATA["missing"]["correlation"]
    missing.draw_correlation(ax, data)
    n = len(data["columns"])
    shown = np.ma.reshape(ax.collections[0].get_array(), (n, n))
    np.testing.assert_array_equal(np.ma.getmaskarray(shown), np.triu(np.ones((n, n), bool)))
    np.testing.assert_allclose(shown.compressed(), np.array(data["values"])[np.tril_indices(n, -1)])
    assert texts(ax)[:n] == data["columns"]


def test_undefined_correlations_are_not_drawn(ax):
    missing.draw_correlation(ax, {"columns": ["a", "b"], "values": [[None, None], [None, 1.0]]})
    assert ax.collections[0].get_array().mask.all()


def test_flux(ax):
    columns = DATA["missing"]["columns"]
    missing.draw_flux(ax, [*columns, {**columns[0], "name": "none", "influx": None}])
    points = ax.lines[1].get_xydata()
    np.testing.assert_allclose(points, [[row["influx"], row["outflux"]] for row in columns])
    assert set(texts(ax)) <= {row["name"] for row in columns}


def test_names_in_the_flux_plot_do_not_overlap(ax):
    columns = [
        {**DATA["missing"]["columns"][0], "name": f"column {k}", "influx": 0.2, "outflux": 0.5}
        for k in range(9)
    ]
    missing.draw_flux(ax, columns)
    assert texts(ax) == ["column 0"]


def test_row_map(ax):
    data = {"columns": ["a", "b"], "first_row": [0, 10], "fraction": [[0.0, 0.5], [0.01, 1.0]]}
    missing.draw_row_map(ax, data, n_rows=20)
    mesh = ax.collections[0]
    shown = np.reshape(mesh.get_array(), (2, 2))
    # a single missing cell is drawn, none is not
    alpha = mesh.get_cmap()(mesh.norm(shown))[..., 3]
    assert alpha[0, 0] == 0
    assert 0 < alpha[0, 1] < alpha[1, 0] < alpha[1, 1]
    assert ax.get_xlim() == (0, 20)


def test_odds_over_a_histogram(ax):
    column = DATA["mechanism"]["columns"][0]
    mechanism.draw_odds(ax, column)
    steps, counts = ax.patches[0].get_data().values, column["observed"]["counts"]
    np.testing.assert_allclose(steps / max(steps), np.array(counts) / max(counts))
    np.testing.assert_allclose(ax.lines[0].get_ydata(), column["odds"]["probability"])
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(max(column["odds"]["high"]))
    assert ax.get_ylim()[1] <= 1


def test_odds_of_levels(ax):
    column = DATA["mechanism"]["columns"][3]
    mechanism.draw_odds(ax, column)
    assert rows(ax) == column["observed"]["levels"]
    intervals, points = ax.lines
    np.testing.assert_allclose(points.get_xdata(), column["odds"]["probability"])
    np.testing.assert_allclose(intervals.get_xdata()[::3], column["odds"]["low"])
    np.testing.assert_allclose(intervals.get_xdata()[1::3], column["odds"]["high"])


@pytest.mark.parametrize("k", [0, 3])
def test_histogram_without_odds(ax, k):
    column = {**DATA["mechanism"]["columns"][k], "odds": None}
    mechanism.draw_odds(ax, column)
    assert ax.lines[:] == []


def test_predictors(ax):
    given = DATA["mechanism"]["columns"][0]["predictors"]
    mechanism.draw_predictors(ax, given)
    assert rows(ax)[:2] == ["bmi", "chol missing"]
    assert rows(ax)[-1] == "all other columns"
    drawn = [line.get_xydata() for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(np.concatenate(drawn)[:, 0], [row["auc"] for row in given])


def test_sets_show_the_columns_that_differ(ax):
    sets = DATA["mechanism"]["sets"]
    assert mechanism.set_columns(sets, 25) == list(sets[0]["mask_rates"])
    two = mechanism.set_columns(
        [{**s, "mask_rates": {"a": 0.1, "b": k, "c": 0.2 * k}} for k, s in enumerate(sets[:2])], 2
    )
    assert two == ["b", "c"]
    mechanism.draw_sets(ax, sets)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1", "2", "3"]
    assert "50 %" in texts(ax)


def test_densities(ax):
    data = DATA["imputed"]["columns"][0]["density"]
    imputed.draw_densities(ax, data, "age")
    *red, blue = ax.lines
    np.testing.assert_allclose([line.get_ydata() for line in red], data["imputed"])
    np.testing.assert_allclose(blue.get_ydata(), data["observed"])
    assert {line.get_color() for line in red} == {palette.IMPUTED}
    assert blue.get_color() == palette.OBSERVED
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["observed", "imputed"]


def test_bars_of_levels(ax):
    data = DATA["imputed"]["columns"][3]["bars"]
    imputed.draw_bars(ax, data)
    observed, drawn = ax.containers
    np.testing.assert_allclose([bar.get_width() for bar in observed], data["observed"])
    np.testing.assert_allclose([bar.get_width() for bar in drawn], data["imputed"])
    ends = np.array([path.vertices[:, 0] for path in ax.collections[0].get_paths()])
    np.testing.assert_allclose(ends, np.transpose([data["imputed_low"], data["imputed_high"]]))


def test_strip(ax):
    data = DATA["imputed"]["columns"][0]["strip"]
    imputed.draw_strip(ax, data, "age", n_observed=1000, n_imputed=10)
    np.testing.assert_allclose(ax.lines[0].get_xdata(), data["observed"])
    assert [len(line.get_xdata()) for line in ax.lines[1:]] == [10] * 5
    for k, line in enumerate(ax.lines):
        assert np.abs(line.get_ydata() - k).max() < 0.3
        assert set(line.get_xdata()) <= set([data["observed"], *data["imputed"]][k])


def test_scatter(ax):
    data = DATA["imputed"]["scatters"][0]
    imputed.draw_scatter(ax, data)
    np.testing.assert_allclose(ax.lines[0].get_xydata(), data["observed"])
    np.testing.assert_allclose(ax.lines[1].get_xydata(), data["imputed"])


def test_overimputation_marks_intervals_without_the_value(ax):
    column = {
        **DATA["validation"]["columns"][0],
        "truth": [1.0, 2.0, 3.0],
        "point": [1.1, 2.5, 2.0],
        "low": [0.5, 2.2, 1.0],
        "high": [1.5, 3.0, 2.9],
    }
    validation.draw_overimputation(ax, column)
    points = {
        line.get_color(): line.get_xydata().tolist()
        for line in ax.lines
        if line.get_marker() == "o"
    }
    assert points[palette.OBSERVED] == [[1.0, 1.1]]
    assert points[palette.IMPUTED] == [[2.0, 2.5], [3.0, 2.0]]
    diagonal = ax.lines[0].get_xydata()
    np.testing.assert_allclose(diagonal[:, 0], diagonal[:, 1])


def test_pit_band_has_the_binomial_probability(ax):
    counts = [100, 120, 80, 95, 105, 90, 110, 100, 101, 99]
    validation.draw_pit(ax, counts)
    assert [bar.get_height() for bar in ax.containers[0]] == counts
    low, high = (line.get_ydata()[0] for line in ax.lines)
    # the smallest interval of counts with at least 95 %
    assert binom.cdf(high, 1000, 0.1) - binom.cdf(low - 1, 1000, 0.1) >= 0.95
    assert binom.cdf(high - 1, 1000, 0.1) < 0.975


def test_errors_by_method(ax):
    methods = ["PSMVAEImputer", "MeanImputer"]
    given = [
        ("a", {"PSMVAEImputer": 0.5, "MeanImputer": 1.0}),
        ("b", {"PSMVAEImputer": 0.7, "MeanImputer": None}),
    ]
    validation.draw_errors(ax, given, methods, unit="RMSE")
    drawn = {line.get_label(): line.get_xdata() for line in ax.lines if line.get_label() in methods}
    np.testing.assert_allclose(drawn["PSMVAEImputer"], [0.5, 0.7])
    np.testing.assert_allclose(drawn["MeanImputer"], [1.0, np.nan])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == methods


def test_training_marks_the_minimum(ax):
    data = {"epoch": [0, 10, 20], "validation_error": [1.0, 0.25, None], "seconds": 1.0}
    validation.draw_training(ax, data)
    assert ax.lines[1].get_xydata().tolist() == [[10, 0.25]]
    assert texts(ax) == ["lowest: 0.250"]


def test_r_hat_and_traces(ax):
    data = DATA["validation"]["convergence"]
    validation.draw_r_hat(ax, data)
    by_label = {line.get_label(): line.get_xdata() for line in ax.lines}
    np.testing.assert_allclose(by_label["mean"], data["r_hat_mean"])
    other = Figure().subplots()
    chains = data["traces"]["age"]
    validation.draw_trace(other, chains, "age")
    np.testing.assert_allclose([line.get_ydata() for line in other.lines], chains)


def test_estimates_beside_complete_cases(ax):
    given = DATA["results"]["estimates"]
    results.draw_estimates(
        ax, [*given, {**given[0], "conf_low": None, "conf_high": None, "complete_cases": None}]
    )
    by_label = {line.get_label(): line for line in ax.lines}
    pooled, other = by_label["pooled, 95 % interval"], by_label["complete cases"]
    np.testing.assert_allclose(pooled.get_xdata()[:-1], [row["estimate"] for row in given])
    np.testing.assert_allclose(other.get_xdata(), [row["complete_cases"][0] for row in given])
    assert (pooled.get_ydata()[:-1] < other.get_ydata()).all()


def test_assumptions(ax):
    given = DATA["results"]["assumptions"]
    results.draw_assumptions(ax, given)
    assert rows(ax) == [row["assumption"] for row in given]
    points = next(line for line in ax.lines if line.get_marker() == "o")
    np.testing.assert_allclose(points.get_xdata(), [row["estimate"] for row in given])
    assert ax.get_xlabel().endswith("with 90 % interval")
    # the line of the null hypothesis, at 0.5
    assert any(list(line.get_xdata()) == [0.5, 0.5] for line in ax.lines)


def test_tipping_point_is_where_the_limit_crosses(ax):
    results.draw_tipping(ax, DATA["results"]["tipping"])
    # 2 − 0.2 δ − 1.1 = 0
    assert texts(ax) == ["δ = 4.50"]
    turns = next(line for line in ax.lines if line.get_label() == "conclusion turns")
    assert turns.get_xdata()[0] == pytest.approx(4.5)
    by_label = {one.get_label(): one for one in (*ax.lines, *ax.collections)}
    assert "90 % interval" in by_label
    assert list(by_label["imputation model"].get_xdata()) == [0.0, 0.0]
    assert "added to imputed values of" in ax.get_xlabel()


def test_tipping_map():
    figure = Figure()
    ax = figure.subplots()
    data = tipping_map(DATA)
    results.draw_tipping(ax, data)
    mesh = next(one for one in ax.collections if one.get_array() is not None)
    np.testing.assert_allclose(np.ravel(mesh.get_array()), np.ravel(np.transpose(data["estimate"])))
    assert ax.get_title() == "conclusion turns at the line"


def test_no_text_is_parsed_as_mathematics():
    data = report_data(["$x^2$ $", "a$b"])
    for draw in (
        lambda ax: missing.draw_rates(ax, data["missing"]["columns"]),
        lambda ax: missing.draw_patterns(ax, data["missing"]["patterns"]),
        lambda ax: missing.draw_correlation(ax, data["missing"]["correlation"]),
        lambda ax: mechanism.draw_odds(ax, data["mechanism"]["columns"][0]),
        lambda ax: imputed.draw_densities(ax, data["imputed"]["columns"][0]["density"], "$x$"),
        lambda ax: results.draw_estimates(ax, data["results"]["estimates"]),
        lambda ax: results.draw_tipping(ax, data["results"]["tipping"]),
    ):
        figure = Figure()
        draw(figure.subplots())
        figure.canvas.draw()
        found = figure.findobj(matplotlib.text.Text)
        with_dollar = [text for text in found if "$" in text.get_text()]
        assert with_dollar
        assert not any(text.get_parse_math() for text in with_dollar)


def test_colour_maps_are_transparent_where_nothing_is():
    for colours in (palette.rates(), palette.differences()):
        alphas = colours(np.linspace(0, 1, colours.N))[:, 3]
        assert alphas.min() == 0
    differences = palette.differences()(np.linspace(0, 1, 21))[:, 3]
    np.testing.assert_allclose(differences, differences[::-1])
    assert all(a < b for a, b in itertools.pairwise(palette.rates()(np.linspace(0, 1, 10))[:, 3]))
