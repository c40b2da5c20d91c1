"""Tipping points: against R, against an independent computation, in words and in pictures."""

import json
import warnings
from pathlib import Path

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from psmvae import MICEImputer, MultipleImputation, tipping_point
from psmvae.multiple import MissingInformationWarning
from psmvae.sensitivity import TippingPoint, wording
from psmvae.sensitivity.inference import Inference

FOLDER = Path(__file__).parent
# written by benchmarks/r_delta.R
R = json.loads((FOLDER / "r_delta.json").read_text())
TABLES = json.loads((FOLDER.parent / "multiple" / "r_pool.json").read_text())["statsmodels"]["data"]
NAMES = ("estimate", "std_error", "p_value", "conf_low", "conf_high")


def two_arms(n=200, effect=1.0, m=20, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"arm": np.where(rng.random(n) < 0.5, "control", "treated")})
    frame["y"] = rng.normal(size=n) + effect * (frame["arm"] == "treated")
    frame.loc[rng.random(n) < 0.2, "y"] = np.nan
    return MICEImputer(random_state=0).fit(frame).impute_multiple(frame, m=m)


def difference(table):
    """Difference of the means of two arms, with the variance of Welch's test."""
    frame = nw.from_native(table, eager_only=True)
    y, treated = frame["y"].to_numpy(), frame["arm"].to_numpy() == "treated"
    one, other = y[treated], y[~treated]
    variance = one.var(ddof=1) / one.size + other.var(ddof=1) / other.size
    return {"difference": (one.mean() - other.mean(), variance)}


@pytest.fixture(scope="module")
def r_tables():
    return MultipleImputation.from_long(pd.DataFrame(TABLES))


@pytest.fixture(scope="module")
def trial():
    return two_arms()


def regression(table):
    smf = pytest.importorskip("statsmodels.formula.api")
    return smf.ols("y ~ x1 + x2 + g", table).fit()


def test_one_shift_equals_r(r_tables):
    found = tipping_point(r_tables, regression, "y", R["deltas"], term="x1").summary()
    assert found["delta"].tolist() == R["deltas"]
    for name in NAMES:
        np.testing.assert_allclose(found[name], [one[name] for one in R["all"]], rtol=1e-7)


def test_shifts_of_two_groups_equal_r(r_tables):
    found = tipping_point(r_tables, regression, "y", R["deltas"], by="z", term="x1").summary()
    by_delta = found.set_index(["delta_1", "delta_0"])
    for one, zero, expected in zip(R["grid"]["one"], R["grid"]["zero"], R["by_z"], strict=True):
        row = by_delta.loc[(one, zero)]
        np.testing.assert_allclose([row[k] for k in NAMES], [expected[k] for k in NAMES], rtol=1e-7)


def test_rubins_rules_by_hand(trial):
    """δ is added after imputation, the analysis repeated and pooled: rbmi's definition."""
    deltas = [-3.0, -1.0, 0.5]
    found = tipping_point(trial, difference, "y", deltas, dfcom=198, alpha=0.1)
    for k, delta in enumerate(deltas):
        q, u = [], []
        for table in trial:
            y, treated = table["y"] + delta * trial.mask[:, 1], table["arm"] == "treated"
            q.append(y[treated].mean() - y[~treated].mean())
            u.append(y[treated].var() / treated.sum() + y[~treated].var() / (~treated).sum())
        m, b = len(q), np.var(q, ddof=1)
        t = np.mean(u) + (1 + 1 / m) * b
        share = (1 + 1 / m) * b / t
        df = 1 / (share**2 / (m - 1) + 1 / ((199 / 201) * 198 * (1 - share)))
        half = stats.t.ppf(0.95, df) * np.sqrt(t)
        p = 2 * stats.t.sf(abs(np.mean(q)) / np.sqrt(t), df)
        expected = Inference(np.mean(q), np.sqrt(t), np.mean(q) - half, np.mean(q) + half, p)
        np.testing.assert_allclose(found.at(k), expected, rtol=1e-10)


def test_the_conclusion_turns_where_the_limit_crosses_zero(trial):
    grid = {"control": [0.0, 1.0], "treated": np.linspace(-6, 0, 25)}
    both = tipping_point(trial, difference, "y", grid, by="arm")
    assert both.groups == ("control", "treated")
    assert both.holds.shape == (2, 25)
    # the exact limit at the neighbours of the tipping point of the treated
    turns = int(np.flatnonzero(both.holds[0])[0])
    assert both.results["conf_low"][0, turns] > 0 >= both.results["conf_low"][0, turns - 1]
    np.testing.assert_array_equal(both.holds, both.results["p_value"] < 0.05)


@pytest.fixture(scope="module")
def treated(trial):
    """The trial, where only the treated have imputed cells."""
    rows = (trial.original["arm"] == "treated").to_numpy()[:, None]
    return MultipleImputation(trial.original, trial.tables, trial.mask & rows)


@pytest.mark.parametrize("deltas", [np.linspace(-400, 400, 5), [-60, 5], np.linspace(-6, 0, 9)])
def test_points_are_as_exact_as_those_of_a_fine_grid(treated, deltas):
    fine = tipping_point(treated, difference, "y", np.linspace(-5.5, -4.5, 101))
    turns = fine.axes[0][np.flatnonzero(np.diff(fine.holds))]
    assert len(turns) == 1
    seen = []
    found = tipping_point(treated, difference, "y", deltas, progress=lambda *at: seen.append(at))
    # the gap of the fine grid
    assert turns[0] <= found.points[-1] <= turns[0] + 0.01
    assert f"turns at δ = {wording.number(found.points[0])}" in found.sentence()
    # the summary has the given values only
    assert found.summary()["delta"].tolist() == list(deltas)
    n = len(deltas)
    assert seen[:n] == [(k + 1, n) for k in range(n)]
    assert n < len(seen) <= n + 10 * len(found.points)
    assert seen[n:] == [(k + 1, k + 1) for k in range(n, len(seen))]


def test_points_of_odds_that_change_in_steps():
    rng = np.random.default_rng(0)
    drawn = [rng.random(300) < 0.5 for _ in range(20)]
    mask = np.arange(300) < 60
    tables = tuple(pd.DataFrame({"v": np.where(mask, one, drawn[0])}) for one in drawn)
    original = pd.DataFrame({"v": pd.Series(drawn[0]).mask(mask)})
    mi = MultipleImputation(original, tables, mask[:, None])

    def rate(table):
        return {"rate": (table["v"].mean(), 0.25 / 300)}

    wide, narrow = (
        tipping_point(mi, rate, "v", deltas, operation="odds", null=0.5)
        for deltas in ([0.01, 1], np.geomspace(0.01, 1, 60))
    )
    assert len(wide.points) == 1
    assert wide.points == pytest.approx(narrow.points, abs=0.01)


def test_a_point_outside_the_grid_is_said_to_be(treated):
    inside = tipping_point(treated, difference, "y", [-6, 0])
    for deltas, where in (([-7, -6], "above"), ([0.5, 1], None)):
        found = tipping_point(treated, difference, "y", deltas)
        if where is None:
            assert found.points == ()
        else:
            assert found.points == pytest.approx(inside.points, rel=2e-3)
            assert f", {where} the range analysed." in found.sentence()
    mirrored = tipping_point(
        treated, lambda t: {"d": (-difference(t)["difference"][0], 0.02)}, "y", [-7, -6]
    )
    assert "above the range analysed" in mirrored.sentence()
    ax = pytest.importorskip("matplotlib.figure").Figure().subplots()
    mirrored.plot(ax)
    assert ax.get_xlim()[1] == mirrored.points[0]


def test_a_conclusion_of_no_difference_turns_too():
    mi = two_arms(effect=0.0, seed=3)
    only = MultipleImputation(
        mi.original, mi.tables, mi.mask & (mi.original["arm"] == "treated").to_numpy()[:, None]
    )
    result = tipping_point(only, difference, "y", np.linspace(-4, 4, 17))
    assert result.reference.p_value > 0.05
    assert len(result.points) == 2
    assert result.points[0] < 0 < result.points[1]
    np.testing.assert_array_equal(result.holds, result.results["p_value"] >= 0.05)
    assert (
        "no evidence of a difference from 0 at the 5 % level, turns at δ = -" in result.sentence()
    )


def test_sentences(trial):
    one = tipping_point(trial, difference, "y", np.linspace(0, 0.2, 3))
    start, end = one.reference, one.at(2)
    assert one.sentence("the treatment effect") == (
        "With the same estimand and analysis, adding δ to the imputed values of y, with δ from 0 "
        f"to 0.2, moves the treatment effect from {start.estimate:.2f} (95 % CI "
        f"{start.conf_low:.2f} to {start.conf_high:.2f}; p < 0.001) under the assumption of the "
        f"imputation model (δ = 0) to {end.estimate:.2f} (95 % CI {end.conf_low:.2f} to "
        f"{end.conf_high:.2f}; p < 0.001) at δ = 0.2, a change of "
        f"{end.estimate - start.estimate:.2f}; the conclusion, a value above 0 at the 5 % level, "
        "does not turn in this range."
    )
    two = tipping_point(trial, difference, "y", [-4, 0, 4], by="arm").sentence()
    assert "with δ from -4 to 4 where arm = control and from -4 to 4 where arm = treated," in two
    assert "combinations, of which the one nearest to no shift is δ = " in two
    assert "δ = -4 where arm = control, δ = 4 where arm = treated), changes of " in two
    small = tipping_point(trial, difference, "y", [0, 0.01], by="arm").sentence()
    assert small.endswith("does not turn in this range.")


def test_null_hypothesis_and_direction(trial):
    result = tipping_point(trial, difference, "y", [0, 1], null=3.0)
    assert result.reference.estimate < 3
    assert "a value below 3 at the 5 % level" in result.sentence()
    statistic = (result.reference.estimate - 3) / result.reference.std_error
    # degrees of freedom are between m - 1 and infinity
    assert (
        2 * stats.norm.sf(-statistic) <= result.reference.p_value <= 2 * stats.t.sf(-statistic, 19)
    )


def test_factors_and_odds():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"arm": rng.choice(["a", "b"], 300), "v": rng.choice(["no", "yes"], 300)})
    drawn = [rng.choice(["no", "yes"], 300) for _ in range(20)]
    mask = rng.random(300) < 0.3
    tables = tuple(
        frame.with_columns(v=pl.Series(np.where(mask, one, frame["v"].to_numpy()))) for one in drawn
    )
    original = frame.with_columns(v=pl.Series(np.where(mask, None, frame["v"].to_numpy())))
    mi = MultipleImputation(original, tables, np.column_stack([np.zeros(300, bool), mask]))

    def rate(table):
        yes = (table["v"] == "yes").to_numpy()
        return {"rate": (yes.mean(), yes.var() / 300)}

    result = tipping_point(mi, rate, "v", [0.25, 1, 4], operation="odds", null=0.5)
    assert isinstance(result.summary(), pl.DataFrame)
    assert result.at(1) == result.reference
    observed = (frame["v"].to_numpy() == "yes")[~mask].mean()
    imputed = np.mean([(one == "yes")[mask].mean() for one in drawn])
    expected = [
        (1 - mask.mean()) * observed + mask.mean() * c * imputed / (1 - imputed + c * imputed)
        for c in (0.25, 1, 4)
    ]
    np.testing.assert_allclose(result.results["estimate"], expected, atol=0.02)
    assert "multiplying the odds in the imputed cells of v by δ" in result.sentence()
    named = tipping_point(mi, rate, "v", [1, 4], operation="odds of yes", null=0.5)
    assert named.at(1).estimate == pytest.approx(expected[2], abs=0.02)
    trial = two_arms()
    result = tipping_point(trial, difference, "y", [0.5, 1, 2], operation="multiply")
    assert result.at(1) == result.reference
    assert "multiplying the imputed values of y by δ" in result.sentence()


def test_bootstrap_gives_standard_errors(trial):
    def estimate(table):
        return {"difference": difference(table)["difference"][0]}

    with pytest.raises(ValueError, match=r"no standard error of 'difference'.*bootstrap=200"):
        tipping_point(trial, estimate, "y", [0, 1])
    few = MultipleImputation(trial.original, trial.tables[:10], trial.mask)
    found = tipping_point(few, estimate, "y", [0, 1], bootstrap=40)
    expected = tipping_point(few, difference, "y", [0, 1])
    for k in range(2):
        assert found.at(k).std_error == pytest.approx(expected.at(k).std_error, rel=0.2)


def test_one_warning_of_missing_information():
    mi = two_arms(m=3)
    moved = 5 * mi.mask[:, 1] * (mi[0]["arm"] == "treated")
    far = mi.tables[0].assign(y=mi.tables[0]["y"] + moved)
    wild = MultipleImputation(mi.original, (far, *mi.tables[1:]), mi.mask)
    with pytest.warns(MissingInformationWarning) as caught:
        tipping_point(wild, difference, "y", [0, 1, 2])
    assert len(caught) == 1


def test_filters_of_warnings_stay_as_they_are(trial):
    """They belong to the process: another thread would see them changed."""
    outside, inside = list(warnings.filters), []

    def recorded(table):
        inside.append(list(warnings.filters))
        return difference(table)

    tipping_point(trial, recorded, "y", [0, 1])
    assert all(filters == outside for filters in inside)


def test_progress_is_reported(trial):
    seen = []
    tipping_point(trial, difference, "y", [0, 1], by="arm", progress=lambda *at: seen.append(at))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_groups_without_imputed_cells_are_left_out(trial):
    mask = trial.mask & (trial.original["arm"] == "treated").to_numpy()[:, None]
    mi = MultipleImputation(trial.original, trial.tables, mask)
    result = tipping_point(mi, difference, "y", [0, 1], by="arm")
    assert result.groups == ("treated",)
    assert result.summary().columns[0] == "delta_treated"
    given = {"control": [0, 5], "treated": [0, 1]}
    again = tipping_point(mi, difference, "y", given, by="arm")
    assert again.summary().equals(result.summary())
    with pytest.raises(ValueError, match=r"'control' of 'arm', and none .* are 'treated'"):
        tipping_point(mi, difference, "y", {"control": [0, 5]}, by="arm")


def test_groups_without_deltas_are_not_shifted(trial, treated):
    one = tipping_point(trial, difference, "y", {"treated": [-6, 0]}, by="arm")
    expected = tipping_point(treated, difference, "y", [-6, 0])
    np.testing.assert_array_equal(one.results["estimate"], expected.results["estimate"])
    assert one.points == expected.points


def test_many_groups_are_refused_before_any_analysis(trial):
    names = [f"site {k}" for k in range(200)]
    tables = tuple(table.assign(site=names) for table in trial)
    mi = MultipleImputation(
        trial.original.assign(site=names), tables, np.column_stack([trial.mask, [False] * 200])
    )
    with pytest.raises(
        ValueError, match=r"'site' has \d+ groups .* which makes 8,589,934,592 combinations"
    ):
        tipping_point(mi, lambda table: 1 / 0, "y", [0, 1], by="site")


def test_groups_of_whole_floats_are_named_without_a_fraction(trial):
    arm = (trial.original["arm"] == "treated").astype(float)
    mi = MultipleImputation(
        trial.original.assign(arm=arm), tuple(t.assign(arm=arm) for t in trial), trial.mask
    )

    def mean(table):
        return {"mean": (table["y"].mean(), 0.01)}

    found = tipping_point(mi, mean, "y", [0, 1], by="arm").summary()
    assert found.columns[:2].tolist() == ["delta_0", "delta_1"]


@pytest.mark.parametrize("given", ["original", "tables"])
def test_tables_are_no_multiple_imputation(trial, given):
    with pytest.raises(TypeError, match=r"impute_multiple\(X\) or by .*from_long\(table\), got"):
        tipping_point(getattr(trial, given), difference, "y", [0, 1])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"column": "z"}, "no column 'z'"),
        ({"column": "arm"}, "'arm' has no imputed cells"),
        ({"column": "arm", "by": "arm"}, "'arm' has no imputed cells"),
        ({"deltas": [1]}, "at least two"),
        ({"deltas": [1, np.nan]}, "finite"),
        ({"deltas": {"treatd": [0, 1]}, "by": "arm"}, "'treatd', .*are 'control', 'treated'"),
        ({"deltas": {"treated": [0, 1]}}, "groups 'treated': pass by="),
        ({"deltas": "0:20:21"}, r"numbers, such as np.linspace\(0, 20, 21\), got '0:20:21'"),
        ({"deltas": 5}, "at least two"),
        ({"deltas": range(101), "by": "arm"}, r"2 groups .* 10,201 combinations, more than 10,000"),
        ({"by": "site"}, "no column 'site'"),
        ({"by": "y"}, "by='y' has missing values"),
        ({"term": "ratio"}, r"unknown term 'ratio'; the analysis has \['difference'\]"),
        ({"operation": "divide"}, "operation must be"),
        ({"alpha": 5}, "alpha must be between 0 and 1"),
    ],
)
def test_bad_arguments_are_named(trial, options, match):
    arguments = {"column": "y", "deltas": [0, 1]} | options
    with pytest.raises(ValueError, match=match):
        tipping_point(trial, difference, **arguments)


def test_the_term_of_interest_must_be_named(trial):
    def two(table):
        return {"a": (1.0, 1.0), "b": (2.0, 1.0)}

    with pytest.raises(ValueError, match=r"terms \['a', 'b'\].*term='a'"):
        tipping_point(trial, two, "y", [0, 1])
    alone = tipping_point(trial, lambda t: {"Intercept": (1, 1), "b": (2, 1)}, "y", [0, 1])
    assert alone.term == "b"


@pytest.mark.parametrize("by", [None, "arm"])
def test_plots(trial, by):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    result = tipping_point(trial, difference, "y", np.linspace(-6, 6, 5), by=by)
    ax = figure.subplots()
    assert result.plot(ax) is ax
    assert "y" in ax.get_xlabel()
    if by is None:
        line = next(one for one in ax.get_lines() if one.get_label() == "pooled estimate")
        np.testing.assert_allclose(line.get_ydata(), result.results["estimate"])
    else:
        mesh = next(one for one in ax.collections if one.get_array() is not None)
        np.testing.assert_allclose(np.ravel(mesh.get_array()), result.results["estimate"].T.ravel())
        assert ax.get_title() == "conclusion turns at the line"
    figure.canvas.draw()


def test_three_groups_have_no_plot():
    axes = (np.array([0.0, 1.0]),) * 3
    arrays = {name: np.ones((2, 2, 2)) for name in Inference._fields}
    reference = Inference(1.0, 0.1, 0.8, 1.2, 0.0)
    result = TippingPoint(
        "y", "x", "add", "arm", ("a", "b", "c"), axes, arrays, reference, 0.0, 0.05, 5
    )
    assert len(result.summary()) == 8
    with pytest.raises(ValueError, match="one or two groups"):
        result.plot()
    with pytest.raises(ValueError, match="for each of 'a', 'b', 'c'"):
        result.points  # noqa: B018


@pytest.mark.parametrize(
    ("result", "match"),
    [
        ((np.nan, 1.0), "(?s)estimate of 'd' is nan; it must be a finite number.*at δ = 9"),
        ((np.inf, 1.0), "(?s)estimate of 'd' is inf.*at δ = 9"),
        ((1.0, np.nan), "no standard error of 'd' at δ = 9"),
    ],
)
def test_an_analysis_that_fails_at_one_shift_is_no_conclusion(trial, result, match):
    def failing(table):
        return {"d": result if table["y"].max() > 6 else (1.0, 1.0)}

    with pytest.raises(ValueError, match=match):
        tipping_point(trial, failing, "y", [0, 1, 9])


def test_an_error_of_the_analysis_says_at_which_shift(trial):
    def failing(table):
        return {"d": (1 / int(table["y"].max() < 6), 1.0)}

    with pytest.raises(ZeroDivisionError) as caught:
        tipping_point(trial, failing, "y", [0, 9], by="arm")
    place = "at δ = 0 where arm = control, δ = 9 where arm = treated"
    assert caught.value.__notes__ == ["analysis of imputation 1 of 20", place]


def test_terms_must_be_the_same_at_every_shift(trial):
    def changing(table):
        return {"A" if table["y"].max() < 6 else "B": (1.0, 1.0)}

    with pytest.raises(ValueError, match="'A' without a shift and 'B' at δ = 9"):
        tipping_point(trial, changing, "y", [0, 9])


def test_a_column_that_the_analysis_does_not_use_is_no_robustness(trial):
    def rows(table):
        return {"rate": ((table["arm"] == "treated").mean(), 0.01)}

    for by in (None, "arm"):
        text = tipping_point(trial, rows, "y", [-5, 5], by=by).sentence()
        assert " does not change the estimate of rate from 0." in text
        assert text.endswith(": the estimate does not depend on the imputed values of y.")
        assert "turn" not in text


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda mean: mean, " moves the estimate from "),
        (lambda mean: {"mean": mean}, " moves the estimated mean from "),
        (lambda mean: {"arm[T.treated]": mean}, " moves the estimate of arm[T.treated] from "),
    ],
)
def test_what_is_estimated_in_words(trial, result, words):
    found = tipping_point(trial, lambda t: result(t["y"].mean()), "y", [0, 1], bootstrap=5)
    assert words in found.sentence()


def test_all_numbers_have_the_decimals_of_the_first(trial):
    def precise(table):
        # a hundredth of the standard error where cells are shifted
        return {"mean": (table["y"].mean(), 0.04 if table["y"].max() < 6 else 0.000004)}

    found = tipping_point(trial, precise, "y", [0, 9])
    assert (
        f"to {found.at(1).estimate:.2f} (95 % CI {found.at(1).conf_low:.2f} to" in found.sentence()
    )
    assert f" {found.at(1).estimate:.2f} " in repr(found)
    tiny = tipping_point(trial, precise, "y", [0, 0.001])
    change = tiny.at(1).estimate - tiny.reference.estimate
    assert f"a change of {wording.number(change)};" in tiny.sentence()
