"""What is found in simulated tables."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import psmvae
from mechanism.tables import masked, mechanism_of, numbers
from psmvae import SelfMask
from psmvae.imputers.fit_warnings import CompleteColumnWarning, UnusedSelfMaskWarning
from psmvae.mechanism import BayesFactors, Likelihoods
from psmvae.mechanism.correction import Correction


@pytest.fixture
def few_trees(monkeypatch):
    """Grow small forests where only the course of a fit matters."""
    for name in ("leaves", "rivals", "correction"):
        monkeypatch.setattr(f"psmvae.mechanism.{name}.N_TREES", 30)


def step(table, name, at, rate, rng):
    return (table[name] > at) & (rng.random(len(table)) < rate)


def test_a_step_is_found_with_its_threshold(few_trees):
    full, rng = numbers(800, 1, noise=0.4)
    found = mechanism_of(masked(full, a=step(full, "a", 0.5, 0.75, rng)))
    finding = found["a"]
    assert finding.chosen == "own value"
    assert not finding.assumed
    assert finding.n_missing == found["a"].n_missing > 80
    assert finding.likelihoods.own_value > 7
    odds = found.odds("a")
    high = odds["value"][odds["probability"] > 0.35]
    # a step is hard to tell from a straight line through noisy shadow variables
    assert high.min() == pytest.approx(0.5, abs=0.7)
    assert odds["probability"].iloc[0] < 0.12
    assert odds["probability"].max() == pytest.approx(0.75, abs=0.15)
    assert (odds["low"] <= odds["probability"] + 0.1).all()
    assert (odds["high"] >= odds["probability"] - 0.1).all()
    assert odds["share"].sum() == pytest.approx(1)
    summary = found.summary()
    assert summary["column"].tolist() == ["a"]
    assert summary["missing"][0] == pytest.approx(finding.n_missing / 800)


@pytest.mark.parametrize("seed", range(3))
def test_completely_at_random_is_not_taken_for_self_masking(seed):
    full, rng = numbers(400, 10 + seed, 4)
    table = full.mask(rng.random(full.shape) < 0.25)
    found = mechanism_of(table)
    assert len(found) == 4
    assert not found.tilts
    assert {finding.chosen for finding in found.values()} == {"at random"}
    with pytest.raises(ValueError, match="missing at random: there are no odds"):
        found.odds("a")


@pytest.mark.parametrize("seed", range(3))
def test_missing_by_another_column_is_not_taken_for_self_masking(seed):
    full, rng = numbers(500, 20 + seed, noise=1.3)
    missing = rng.random(500) < expit(-1 + 1.5 * full["b"])
    found = mechanism_of(masked(full, a=missing))
    assert found["a"].chosen == "at random"
    assert found["a"].likelihoods.at_random > found["a"].likelihoods.own_value


def test_both_tails(few_trees):
    full, rng = numbers(1200, 30)
    missing = (np.abs(full["a"]) > 1.2) & (rng.random(1200) < 0.8)
    found = mechanism_of(masked(full, a=missing), "self")
    odds = found.odds("a")
    inner = odds["probability"][np.abs(odds["value"]) < 0.8]
    for side in (odds["value"] < -1.5, odds["value"] > 1.5):
        assert odds["probability"][side].min() > inner.max() + 0.2


def test_a_line_has_the_odds_of_a_logistic_regression(few_trees):
    full, rng = numbers(900, 31)
    missing = rng.random(900) < expit(-1.2 + 1.3 * full["a"])
    found = mechanism_of(masked(full, a=missing), SelfMask(columns=["a"], shape="straight"))
    odds = found.odds("a")
    log_odds = np.log(odds["probability"] / (1 - odds["probability"]))
    slope, constant = np.polyfit(odds["value"], log_odds, 1)
    assert slope == pytest.approx(1.3, abs=0.4)
    assert constant == pytest.approx(-1.2, abs=0.3)


@pytest.mark.parametrize(
    ("kind", "scale"), [("real", 0.01), ("real", 100.0), ("integer", 1.0), ("positive", 100.0)]
)
def test_a_given_slope_is_in_units_of_the_column(few_trees, kind, scale):
    full, rng = numbers(150, 32)
    if kind == "integer":
        full["a"] = np.rint(full["a"] * 400 * scale)
    elif kind == "positive":
        full["a"] = np.exp(full["a"]) * scale
    else:
        full["a"] *= scale
    unit = full["a"].std() if kind != "positive" else np.log(full["a"]).std()
    table = masked(full, a=rng.random(150) < 0.3)
    given = SelfMask(columns=["a"], slope=0.7 / unit)
    found = mechanism_of(table, given, kinds={"a": kind})
    odds = found.odds("a")
    value = np.log(odds["value"]) if kind == "positive" else odds["value"]
    log_odds = np.log(odds["probability"] / (1 - odds["probability"]))
    # values of a bin of whole numbers are rounded
    assert np.polyfit(value, log_odds, 1)[0] == pytest.approx(0.7 / unit, rel=0.05)


def test_a_slope_of_counts_is_for_their_logarithm(few_trees):
    rng = np.random.default_rng(33)
    rate = np.exp(rng.normal(1.5, 0.5, 300))
    full = pd.DataFrame({"a": rng.poisson(rate), "b": rate})
    table = masked(full, a=rng.random(300) < 0.3)
    found = mechanism_of(table, SelfMask(columns=["a"], slope=1.1), kinds={"a": "count"})
    odds = found.odds("a")
    log_odds = np.log(odds["probability"] / (1 - odds["probability"]))
    assert np.polyfit(np.log1p(odds["value"]), log_odds, 1)[0] == pytest.approx(1.1, rel=0.02)


@pytest.mark.parametrize(
    ("kind", "fitted"), [("real", True), ("integer", True), ("positive", False), ("count", False)]
)
def test_regressions_are_fitted_where_imputations_use_them(few_trees, monkeypatch, kind, fitted):
    full, rng = numbers(400, 3)
    full["a"] = np.round(np.exp(full["a"]) * 10) + 1.0
    calls, fit = [], Correction.fit
    monkeypatch.setattr(Correction, "fit", lambda *a, **k: calls.append(1) or fit(*a, **k))
    table = masked(full, a=rng.random(400) < 0.3)
    found = mechanism_of(table, SelfMask(columns=["a"]), kinds={"a": kind})
    assert bool(calls) == (found["a"].tilt.correction is not None) == fitted


def levels(n, seed, words):
    """Return a column of levels that depends on two numbers."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    total = x.sum(1) + 0.4 * rng.normal(size=n)
    cuts = np.quantile(total, np.linspace(0, 1, len(words) + 1)[1:-1])
    code = np.searchsorted(cuts, total)
    full = pd.DataFrame({"x": x[:, 0], "y": x[:, 1]})
    full["level"] = np.array(words, dtype=object)[code]
    return full, code, rng


@pytest.mark.parametrize(
    ("words", "kind", "risky"),
    [
        (("no", "yes"), "binary", ["yes"]),
        (("low", "mid", "high"), ("ordinal", ["low", "mid", "high"]), ["high"]),
        (("red", "green", "blue"), "categorical", ["green"]),
    ],
)
def test_levels_have_odds_of_their_own(words, kind, risky, few_trees):
    full, code, rng = levels(900, 34, words)
    at = [words.index(word) for word in risky]
    missing = np.isin(code, at) & (rng.random(900) < 0.7)
    found = mechanism_of(masked(full, level=missing), "self", kinds={"level": kind})
    odds = found.odds("level").set_index("value")["probability"]
    assert set(odds.index) == set(words)
    assert odds[risky].min() > 0.4
    assert odds.drop(risky).max() < 0.3


def test_a_level_in_the_middle_of_an_order(few_trees):
    words = ("low", "mid", "high")
    full, code, rng = levels(700, 34, words)
    table = masked(full, level=(code == 1) & (rng.random(700) < 0.7))
    found = mechanism_of(table, "self", kinds={"level": ("ordinal", list(words))})
    odds = found.odds("level").set_index("value")["probability"]
    assert odds["mid"] > 0.4
    assert odds.drop("mid").max() < 0.3


def test_a_slope_does_not_apply_to_levels(few_trees):
    full, code, rng = levels(300, 35, ("low", "mid", "high"))
    missing = (code == 2) & (rng.random(300) < 0.7)
    kinds = {"level": ("ordinal", ["low", "mid", "high"])}
    found = mechanism_of(masked(full, level=missing), SelfMask(slope=99.0), kinds=kinds)
    assert found.odds("level")["probability"].max() < 0.95


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (SelfMask(["level"], slope=1.0), "a slope for 'level', a column of kind"),
        (SelfMask(["level"], sign="high"), "sign applies to numbers and ordered levels"),
    ],
)
def test_a_statement_that_does_not_apply_to_a_named_column_is_an_error(setting, words):
    full, code, _ = levels(300, 35, ("low", "mid", "high", "top"))
    with pytest.raises(ValueError, match=words):
        mechanism_of(masked(full, level=code == 2), setting)


def test_masks_that_contradict_the_sign(few_trees):
    full, rng = numbers(400, 40)
    table = masked(full, a=step(full, "a", 0.3, 0.8, rng))
    imputer = psmvae.MICEImputer(mask_model=SelfMask(["a"], sign="low"), random_state=0)
    with pytest.warns(UnusedSelfMaskWarning, match="agrees with the stated sign"):
        found = imputer.fit(table).mechanism_
    assert "no value goes missing more often than another" in found.sentence("a")
    assert found.summary()["at_risk"].tolist() == [0.0]


def test_nothing_above_a_limit_is_ever_seen(few_trees):
    full, _ = numbers(300, 36)
    table = masked(full, a=full["a"] > 1)
    for setting in ("auto", SelfMask(sign="high")):
        found = mechanism_of(table, setting)
        assert found["a"].n_missing == (full["a"] > 1).sum()
        assert np.isfinite(found.summary()["missing"]).all()


@pytest.mark.slow
def test_all_columns_mask_themselves(few_trees):
    full, rng = numbers(400, 39, 4)
    table = full.mask((full > 0.7) & (rng.random(full.shape) < 0.7))
    found = mechanism_of(table)
    assert list(found) == ["a", "b", "c", "d"]
    assert sum(finding.chosen == "own value" for finding in found.values()) >= 2
    for j in found.tilts:
        odds = found.odds("abcd"[j])
        assert odds["probability"].iloc[-3:].mean() > odds["probability"].iloc[:8].mean() + 0.2


def test_holes_of_other_columns_do_not_hide_it(few_trees):
    full, rng = numbers(800, 38, 4)
    holes = rng.random((800, 3)) < 0.2
    missing = step(full, "a", 0.5, 0.8, rng)
    found = mechanism_of(masked(full, a=missing, b=holes[:, 0], c=holes[:, 1], d=holes[:, 2]))
    assert found["a"].chosen == "own value"
    assert [found[name].chosen for name in "bcd"] == ["at random"] * 3


def test_the_shadow_may_be_named(few_trees):
    # the mask of a depends on its value and on b directly
    full, rng = numbers(900, 39)
    missing = rng.random(900) < expit(-1.5 + 1.2 * full["a"] + 1.2 * full["b"])
    table = masked(full, a=missing)
    slopes = []
    for shadow in (None, ["c"]):
        found = mechanism_of(table, SelfMask(["a"], shape="straight", shadow=shadow))
        odds = found.odds("a")
        log_odds = np.log(odds["probability"] / (1 - odds["probability"]))
        slopes.append(np.polyfit(odds["value"], log_odds, 1)[0])
    # all others as shadows take what b does for the value's own effect
    assert abs(slopes[1] - 1.2) < abs(slopes[0] - 1.2)


def test_a_shadow_must_be_another_column():
    full, rng = numbers(60, 40)
    table = masked(full, a=rng.random(60) < 0.3)
    with pytest.raises(ValueError, match="needs a shadow variable beside 'a'"):
        mechanism_of(table, SelfMask(["a"], shadow=["a"]))


@pytest.mark.filterwarnings("ignore::psmvae.imputers.fit_warnings.UnusedSelfMaskWarning")
@pytest.mark.parametrize(
    "mask_model", ["auto", "self", SelfMask(sign="low"), SelfMask(slope=(0.5, 0.2))]
)
def test_tiny_and_degenerate_tables(mask_model):
    full, rng = numbers(10, 41)
    table = full.mask(rng.random(full.shape) < 0.3)
    found = mechanism_of(table, mask_model)
    assert not found.tilts
    assert set(found.summary()["chosen"]) == {"at random"}
    assert found.summary()["own_value"].isna().all()


@pytest.mark.filterwarnings("ignore::psmvae.imputers.fit_warnings.UnusedSelfMaskWarning")
def test_constant_columns_and_single_columns(few_trees):
    full, rng = numbers(200, 42)
    full["b"] = 3.0
    table = masked(full, a=rng.random(200) < 0.3, b=rng.random(200) < 0.3)
    with pytest.warns(UserWarning, match="one distinct observed value"):
        found = mechanism_of(table, "self", kinds={"b": "real"})
    assert found["b"].tilt is None
    assert found["a"].tilt is not None
    alone = mechanism_of(table[["a"]], "self")
    assert np.isfinite(alone.odds("a")["probability"]).all()


def test_few_missing_cells_of_a_long_table(few_trees, monkeypatch):
    monkeypatch.setattr("psmvae.mechanism.column.MAX_ROWS", 50)
    full, _ = numbers(2000, 43)
    table = masked(full, a=np.arange(2000) % 150 == 0)
    with pytest.warns(UnusedSelfMaskWarning, match="cells of 'a' are missing because"):
        found = mechanism_of(table, "self")
    assert found["a"].n_missing == 14
    assert found["a"].tilt is None


def test_a_complete_table_has_no_mechanism():
    full, _ = numbers(30, 44)
    assert mechanism_of(full) is None
    assert mechanism_of(full, SelfMask()) is None


def test_a_passed_deadline_leaves_columns_unexamined(monkeypatch):
    from psmvae.mechanism.table import Mechanism

    plain = Mechanism._fit
    monkeypatch.setattr(
        Mechanism, "_fit", lambda *args, **options: plain(*args, **options, deadline=0.0)
    )
    full, rng = numbers(200, 45)
    found = mechanism_of(full.mask(rng.random(full.shape) < 0.3))
    assert len(found) == 0
    assert found.tilts == {}
    assert len(found.summary()) == 0


def test_the_number_of_threads_does_not_matter(few_trees, monkeypatch):
    from psmvae.mechanism import table as module

    full, rng = numbers(300, 48)
    table = full.mask((full > 0.5) & (rng.random(full.shape) < 0.7))
    summaries = []
    for n_threads in (1, 3):
        monkeypatch.setattr(module, "MAX_THREADS", n_threads)
        summaries.append(mechanism_of(table).summary())
    pd.testing.assert_frame_equal(*summaries, check_exact=True)


def test_frames_of_each_library(few_trees):
    full, rng = numbers(120, 46)
    found = mechanism_of(masked(full, a=step(full, "a", 0.3, 0.8, rng)), "self")
    for backend in ("pandas", "polars", "pyarrow"):
        summary, odds = found.summary(backend=backend), found.odds("a", backend=backend)
        assert type(summary).__module__.startswith(backend)
        assert "chosen" in getattr(summary, "column_names", getattr(summary, "columns", ()))
        assert len(odds) > 5
    with pytest.raises(KeyError):
        found.odds("nothing")


def test_masks_are_compared_once(few_trees, monkeypatch):
    from psmvae.mechanism import table as module

    calls, missing_with = [], module.missing_with
    monkeypatch.setattr(module, "missing_with", lambda m, j: calls.append(j) or missing_with(m, j))
    full, rng = numbers(100, 47)
    mechanism_of(full.mask(rng.random(full.shape) < 0.3))
    assert sorted(calls) == [0, 1, 2]


def test_large_limits_are_written_out(few_trees):
    full, rng = numbers(400, 50, noise=0.4)
    full["a"] = np.round(4e6 + 1e6 * full["a"])
    found = mechanism_of(masked(full, a=step(full, "a", 4.4e6, 0.8, rng)), "self")
    assert re.search(r"^a above \d,\d{3},\d{3}: ", found.sentence("a"))


def test_what_is_printed_is_short():
    empty = np.random.default_rng(0).normal(size=(60, 2))
    holes = empty.copy()
    holes[:20, 1] = np.nan
    found = psmvae.MICEImputer(mask_model="auto", random_state=0).fit(holes).mechanism_
    assert repr(found) == "<Mechanism of 1 column: 1 at random>"
    assert str(found).startswith("x1: ")
    none = psmvae.MICEImputer(mask_model="auto", random_state=0).fit(empty).mechanism_
    assert none is None or str(none) == "No explanations of masks were compared."


@pytest.mark.parametrize(
    ("own", "others", "words"),
    [
        (20.0, 30.0, "explains its mask less well than the other columns do (log-likelihood"),
        (28.0, 30.0, "explains its mask nearly as well as the other columns do (log-likelihood"),
        (30.0, 30.04, "explains its mask as well as the other columns do (log-likelihood"),
        (40.0, 30.0, "explains its mask as well as the other columns do (log-likelihood"),
    ],
)
def test_words_of_a_comparison(few_trees, own, others, words):
    full, rng = numbers(300, 46)
    found = mechanism_of(masked(full, a=step(full, "a", 0.3, 0.8, rng)), "self")
    finding = replace(found["a"], likelihoods=Likelihoods(others, own, own), assumed=False)
    sentence = replace(found, findings={"a": finding}).sentence("a")
    assert words in sentence
    assert f"{own:.1f} nats by its value, {others:.1f} by the other columns" in sentence


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (30.0, "Its value explains its mask as assumed (log-"),
        (2.9, "This was stated; its mask neither supports nor contradicts it (log-"),
        (-2.9, "This was stated; its mask neither supports nor contradicts it (log-"),
        (-3.1, "This was stated, and explains its mask worse than a constant missing rate (log-"),
    ],
)
def test_words_of_a_statement(few_trees, own, words):
    full, rng = numbers(300, 46)
    found = mechanism_of(masked(full, a=step(full, "a", 0.3, 0.8, rng)), "self")
    finding = replace(found["a"], likelihoods=Likelihoods(30.0, own, own))
    assert words in replace(found, findings={"a": finding}).sentence("a")


def test_a_slope_in_other_units_is_refused(few_trees):
    full, rng = numbers(300, 47)
    table = masked(full, a=step(full, "a", 0.3, 0.8, rng)).assign(c=np.exp(full["c"]))
    table.loc[:30, "c"] = np.nan
    with pytest.raises(ValueError, match=r"slope=20 for 'a'.*one unit of the column"):
        mechanism_of(table, SelfMask(["a"], slope=20.0))
    with pytest.raises(ValueError, match=r"slope=-20 for 'c'.*one unit of its logarithm"):
        mechanism_of(table, SelfMask(["c"], slope=(-20.0, 1.0)), kinds={"c": "positive"})


def test_a_statement_about_a_complete_column_is_reported(few_trees):
    full, rng = numbers(300, 48)
    table = masked(full, a=step(full, "a", 0.3, 0.8, rng))
    with pytest.warns(CompleteColumnWarning, match="cells of 'b' are missing"):
        found = mechanism_of(table, SelfMask(["a", "b"]))
    assert list(found) == ["a"]
    with pytest.warns(CompleteColumnWarning, match="cells of 'b' are missing"):
        assert mechanism_of(table, SelfMask(["b"])) is None


def test_findings_in_notebooks_and_in_the_console(few_trees):
    full, rng = numbers(300, 46)
    table = masked(full, a=step(full, "a", 0.3, 0.8, rng), b=rng.random(300) < 0.2)
    found = mechanism_of(table)
    page = found._repr_html_()
    for name in ("a", "b"):
        assert f"{found[name].likelihoods.own_value:.3g}" in page
    assert found.sentence("a").split(".")[-2] in page
    assert "taken to be missing at random" not in page
    assert len(repr(found["a"])) < 500
    assert "chosen='own value'" in repr(found["a"])


def test_a_column_that_was_not_examined_is_named(few_trees):
    full, rng = numbers(300, 49)
    found = mechanism_of(masked(full, a=step(full, "a", 0.3, 0.8, rng)))
    for ask in (found.__getitem__, found.sentence, found.odds):
        with pytest.raises(KeyError, match="masks of 'b' were not examined; those of 'a' were"):
            ask("b")
    assert "b" not in found


@pytest.mark.parametrize("factor", [-3.1, -2.9, 0.0, 2.9, 3.1, np.nan])
def test_a_sentence_says_where_the_masks_do_not_tell(few_trees, factor):
    full, rng = numbers(300, 46)
    found = mechanism_of(masked(full, a=step(full, "a", 0.3, 0.8, rng)), "self")
    finding = replace(found["a"], log_bayes_factors=BayesFactors(factor, 0.0), assumed=False)
    sentence = replace(found, findings={"a": finding}).sentence("a")
    assert (f"(log Bayes factor: {factor:.1f} nats)" in sentence) == (factor < 3)
    assert ("One other column explains its mask better" in sentence) == (factor < -3)
    assumed = replace(found, findings={"a": replace(finding, assumed=True)})
    assert "Bayes factor" not in assumed.sentence("a")
