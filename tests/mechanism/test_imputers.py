"""The parameter mask_model of the imputers."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit
from sklearn.base import clone

import psmvae
from contract.conftest import SHORT
from mechanism.tables import masked, numbers
from psmvae import MICEImputer, MissForestImputer, PSMVAEImputer, SelfMask

QUICK = {"max_epochs": 3, "n_draws": 5, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module", autouse=True)
def _few_trees():
    """Grow small forests, and take one of fewer proposals."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("leaves", "rivals", "correction"):
            patch.setattr(f"psmvae.mechanism.{name}.N_TREES", 30)
        patch.setattr("psmvae.chained.tilt.N_PROPOSALS", 40)
        for name, value in SHORT.items():
            patch.setattr(name, value)
        yield


@pytest.fixture(scope="module")
def step():
    """A table whose column a goes missing above 0.4, and the complete table."""
    full, rng = numbers(400, 50, noise=0.4)
    missing = (full["a"] > 0.4) & (rng.random(400) < 0.7)
    return masked(full, a=missing), full, missing


@pytest.fixture(scope="module")
def mice(step):
    return MICEImputer(mask_model="self", random_state=0).fit(step[0])


@pytest.fixture(scope="module")
def forest(step):
    return MissForestImputer(
        mask_model="self", n_estimators=5, max_iter=2, random_state=0, n_jobs=1
    ).fit(step[0])


@pytest.fixture(scope="module")
def deep(step):
    return PSMVAEImputer("self", **QUICK).fit(step[0])


@pytest.fixture(scope="module")
def model_draws(step):
    return PSMVAEImputer("self", draws="model", n_sets=2, **QUICK).fit(step[0])


@pytest.mark.filterwarnings("ignore:imputed values outside the observed range")
@pytest.mark.parametrize("mask_model", ["auto", SelfMask(["y"], shape="straight")])
def test_the_mean_under_logistic_self_masking(mask_model):
    bias, at_random = [], []
    for seed in range(2):
        rng = np.random.default_rng(60 + seed)
        # with a single other column, the masks could as well depend on that
        x, z = rng.normal(size=(2, 500))
        y = 1 + 0.7 * x + 0.7 * z + 0.7 * rng.normal(size=500)
        table = pd.DataFrame(
            {"x": x, "z": z, "y": np.where(rng.random(500) < expit(2 * y - 2.5), np.nan, y)}
        )
        for model, found in ((mask_model, bias), ("none", at_random)):
            imputer = MICEImputer(mask_model=model, random_state=seed).fit(table)
            found.append(
                np.mean([one["y"].mean() for one in imputer.sample(table, n=5)]) - y.mean()
            )
    assert np.mean(at_random) < -0.15
    assert abs(np.mean(bias)) < 0.1


@pytest.mark.parametrize("name", ["mice", "forest", "deep", "model_draws"])
def test_imputations_are_corrected(name, request, step):
    table, full, missing = step
    imputer = request.getfixturevalue(name)
    assert imputer.mechanism_["a"].assumed
    truth = full["a"][missing].mean()
    at_random = MICEImputer(random_state=0).fit_transform(table)["a"][missing].mean()
    assert at_random < truth - 0.1
    found = imputer.transform(table)["a"][missing].mean()
    assert abs(found - truth) < 0.8 * abs(at_random - truth)
    drawn = np.mean([one["a"][missing].mean() for one in imputer.sample(table, n=4)])
    assert abs(drawn - truth) < 0.8 * abs(at_random - truth)


@pytest.mark.parametrize("name", ["mice", "forest", "deep", "model_draws"])
def test_a_file_holds_the_mechanism(name, request, step, tmp_path):
    table = step[0]
    imputer = request.getfixturevalue(name)
    path = tmp_path / "model.safetensors"
    imputer.save(path)
    again = psmvae.load(path, device="cpu")
    assert again.mask_model == imputer.mask_model
    pd.testing.assert_frame_equal(again.transform(table), imputer.transform(table))
    for one, other in zip(again.sample(table, n=3), imputer.sample(table, n=3), strict=True):
        pd.testing.assert_frame_equal(one, other)
    pd.testing.assert_frame_equal(again.mechanism_.summary(), imputer.mechanism_.summary())
    pd.testing.assert_frame_equal(again.mechanism_.odds("a"), imputer.mechanism_.odds("a"))
    if isinstance(imputer, PSMVAEImputer):
        np.testing.assert_array_equal(
            again.predict_set_proba(table), imputer.predict_set_proba(table)
        )
        pd.testing.assert_frame_equal(again.describe_sets(), imputer.describe_sets())


@pytest.mark.parametrize("name", ["mice", "forest", "deep", "model_draws"])
def test_draws_do_not_depend_on_their_number_or_on_other_rows(name, request, step):
    table = step[0]
    imputer = request.getfixturevalue(name)
    three, five = imputer.sample(table, n=3), imputer.sample(table, n=5)
    for one, other in zip(three, five[:3], strict=True):
        pd.testing.assert_frame_equal(one, other)
    rows = table[table["a"].isna()].iloc[[3, 7]]
    pd.testing.assert_frame_equal(
        imputer.transform(rows), imputer.transform(table).loc[rows.index], rtol=1e-4
    )
    complete = table.dropna()
    pd.testing.assert_frame_equal(imputer.sample(complete, n=1)[0], complete)


def test_the_same_seed_gives_the_same_result(step, mice):
    again = MICEImputer(mask_model="self", random_state=0).fit(step[0])
    pd.testing.assert_frame_equal(again.transform(step[0]), mice.transform(step[0]))
    pd.testing.assert_frame_equal(again.sample(step[0], 1)[0], mice.sample(step[0], 1)[0])
    assert not again.sample(step[0], 1, random_state=5)[0].equals(mice.sample(step[0], 1)[0])


def test_polars_gives_the_values_of_pandas(step, mice):
    frame = pl.from_pandas(step[0])
    filled = mice.transform(frame)
    assert isinstance(filled, pl.DataFrame)
    np.testing.assert_allclose(filled.to_numpy(), mice.transform(step[0]).to_numpy())
    assert isinstance(mice.mechanism_.summary(backend="polars"), pl.DataFrame)


def test_sets_are_rows_at_risk(deep, step):
    table, full, _ = step
    assert deep.n_sets_ == 2
    assert deep.risk_sets_ is not None
    sets = deep.describe_sets()
    words = sets["mechanism"].tolist()
    assert words[0] == "at no elevated risk"
    assert words[1].startswith("a above ")
    assert words[1].endswith(" % go missing")
    limit = float(words[1].split(":")[0].removeprefix("a above "))
    assert limit == pytest.approx(0.4, abs=0.4)
    assert sets["size"].sum() == pytest.approx(1)
    assert sets["missing"][1].startswith("a ")
    predicted = deep.predict_set(table)
    assert np.mean(predicted == (full["a"] > limit)) > 0.85
    np.testing.assert_allclose(deep.predict_set_proba(table).sum(1), 1)
    assert isinstance(deep.describe_sets(backend="polars"), pl.DataFrame)


@pytest.mark.slow
def test_one_set_can_be_asked_for(step):
    imputer = PSMVAEImputer("self", draws="model", n_sets=1, **QUICK).fit(step[0])
    assert imputer.n_sets_ == 1
    np.testing.assert_array_equal(imputer.predict_set_proba(step[0]), np.ones((400, 1)))
    assert len(imputer.describe_sets()) == 1


def test_a_column_observed_nowhere_stays_missing(step):
    table = step[0].assign(nothing=np.nan)
    with pytest.warns(UserWarning, match="nothing"):
        imputer = MICEImputer(mask_model="auto", random_state=0).fit(table)
    assert list(imputer.mechanism_) == ["a"]
    filled = imputer.transform(table)
    assert filled["nothing"].isna().all()
    assert not filled["a"].isna().any()


def test_new_tables_may_have_holes_elsewhere(mice, forest, step):
    full = step[1]
    new = full.iloc[:20].copy()
    new.iloc[::2, 1] = np.nan
    new.iloc[1::2, 0] = np.nan
    new.iloc[0] = np.nan
    for imputer in (mice, forest):
        assert not imputer.transform(new).isna().any().any()
        assert not imputer.sample(new, n=2)[1].isna().any().any()


MANY = {
    "heavy": lambda z, rng: z + 0.3 * rng.standard_t(2, len(z)),
    "zero": lambda z, rng: np.where(z + 0.3 * rng.normal(size=len(z)) < 0, 0.0, np.exp(z)),
    "whole": lambda z, rng: np.rint(3 * z + rng.normal(size=len(z))),
    "count": lambda z, rng: rng.poisson(np.exp(1 + 0.7 * z)),
}


@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize("cls", [MICEImputer, MissForestImputer])
def test_numbers_stay_in_the_observed_range(name, cls):
    rng = np.random.default_rng(70)
    z = rng.normal(size=160)
    full = pd.DataFrame({"x": z + 0.3 * rng.normal(size=160), "w": z + 0.3 * rng.normal(size=160)})
    full["y"] = MANY[name](z, rng)
    missing = (full["y"] > full["y"].median()) & (rng.random(160) < 0.6)
    table = masked(full, y=missing)
    options = {"method": "pmm"} if cls is MICEImputer else {"n_jobs": 1, "n_estimators": 3}
    kinds = {"y": "count"} if name == "count" else None
    imputer = cls(mask_model="self", random_state=0, kinds=kinds, **options).fit(table)
    seen = table["y"].dropna().astype(float)
    for one in (*imputer.sample(table, n=3), imputer.transform(table)):
        imputed = one["y"][missing].astype(float)
        assert imputed.between(seen.min() - 1e-9, seen.max() + 1e-9).all()
    if name in ("whole", "count"):
        assert (imputed % 1 == 0).all()
    if cls is MICEImputer:
        assert np.isin(
            np.round(imputer.sample(table, 1)[0]["y"].astype(float), 9), np.round(seen, 9)
        ).all()
    elif name == "zero":
        # 0 has a bin of its own: it is drawn, and not only values near it
        drawn = np.concatenate([one["y"][missing] for one in imputer.sample(table, n=10)])
        smallest = seen[seen > 1e-9].min()
        assert not ((drawn > 1e-9) & (drawn < 0.99 * smallest)).any()


@pytest.mark.parametrize("cls", [MICEImputer, MissForestImputer])
@pytest.mark.parametrize("kind", ["ordinal", "categorical", "binary"])
def test_levels_that_were_not_seen_are_not_imputed(kind, cls):
    rng = np.random.default_rng(71)
    z = rng.normal(size=300)
    words = ["a", "b"] if kind == "binary" else ["a", "b", "c"]
    code = np.searchsorted(
        [0.0] if kind == "binary" else [-0.5, 0.5], z + 0.3 * rng.normal(size=300)
    )
    full = pd.DataFrame({"x": z, "y": np.array(words, dtype=object)[code]})
    missing = (code == 1) & (rng.random(300) < 0.6)
    kinds = {"y": ("ordinal", [*words, "never"]) if kind == "ordinal" else kind}
    options = {} if cls is MICEImputer else {"n_jobs": 1, "n_estimators": 3}
    table = masked(full, y=missing)
    imputer = cls(mask_model="self", random_state=0, kinds=kinds, **options).fit(table)
    for one in (*imputer.sample(table, n=2), imputer.transform(table)):
        assert set(one["y"]) <= set(words)
    # the level that goes missing is imputed more often than at random
    plain = cls(random_state=0, kinds=kinds, **options).fit(table)
    tilted, at_random = ((i.transform(table)["y"][missing] == "b").mean() for i in (imputer, plain))
    assert tilted >= at_random
    # a row does not depend on the others of its table
    rows = table[missing].iloc[:3]
    pd.testing.assert_frame_equal(imputer.transform(rows), imputer.transform(table).loc[rows.index])


@pytest.mark.parametrize("cls", [MICEImputer, MissForestImputer, PSMVAEImputer])
def test_wrong_settings_are_refused_before_any_work(cls, step, monkeypatch):
    options = QUICK if cls is PSMVAEImputer else {}

    def fit(mask_model):
        return cls(mask_model=mask_model, **options).fit(step[0])

    monkeypatch.setattr("psmvae.training.loop.train", None)
    with pytest.raises(
        ValueError, match=r"SelfMask names 'income' in columns.* it has 'a', 'b', 'c'"
    ):
        fit(SelfMask(columns=["income"]))
    with pytest.raises(ValueError, match=r"SelfMask names 'income' in shadow"):
        fit(SelfMask(shadow=["income"]))
    with pytest.raises(ValueError, match=r"mask_model must be .*'auto'|mask_model"):
        fit("selfish")
    assert cls(mask_model="auto").get_params()["mask_model"] == "auto"


def test_defaults():
    assert PSMVAEImputer().mask_model == "auto"
    assert MICEImputer().mask_model == MissForestImputer().mask_model == "none"
    assert not isinstance(PSMVAEImputer.paper("a").mask_model, str | SelfMask)


def test_without_a_question_there_is_no_mechanism(step):
    assert MICEImputer(random_state=0).fit(step[0]).mechanism_ is None
    assert MICEImputer(mask_model="auto", random_state=0).fit(step[1]).mechanism_ is None


def test_a_passed_time_limit_leaves_the_masks_unexplained(step):
    with pytest.warns() as caught:
        imputer = PSMVAEImputer(max_time=0.01, random_state=0, n_draws=5, device="cpu").fit(step[0])
    messages = {type(one.message).__name__: str(one.message) for one in caught}
    assert "MaxTimeWarning" in messages
    for name in step[0].columns[step[0].isna().any()]:
        assert f"'{name}'" in messages["MechanismTimeWarning"]
    assert len(imputer.mechanism_) == 0
    assert imputer.risk_sets_ is None
    assert not imputer.transform(step[0]).isna().any().any()


@pytest.mark.parametrize(
    ("cls", "kind", "tolerance"),
    [
        (MICEImputer, "count", 0.15),
        (MissForestImputer, "count", 0.15),
        # the linear regression of MICE is far from the truth
        (MICEImputer, "positive", 0.3),
    ],
)
def test_means_of_skewed_columns_are_those_of_their_values(cls, kind, tolerance):
    # the mean of x is not exp of the mean of log x
    rng = np.random.default_rng(72)
    z = rng.normal(size=500)
    noise = rng.normal(size=500)
    values = np.exp(0.5 * z + 0.9 * noise) if kind == "positive" else rng.poisson(np.exp(0.5 * z))
    full = pd.DataFrame({"x": z, "y": values})
    missing = rng.random(500) < 0.4
    options = {} if cls is MICEImputer else {"n_jobs": 1, "n_estimators": 5}
    imputer = cls(mask_model="self", random_state=0, kinds={"y": kind}, **options)
    filled = imputer.fit_transform(masked(full, y=missing))["y"].astype(float)
    assert filled[missing].mean() == pytest.approx(values[~missing].mean(), rel=tolerance)


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize(
    ("cls", "options"),
    [(MICEImputer, {"random_state": 0}), (PSMVAEImputer, QUICK), (PSMVAEImputer, None)],
)
def test_warnings_of_a_fit_name_the_line_that_called_it(cls, options, method):
    options = QUICK | {"draws": "model"} if options is None else options
    full, _ = numbers(40, 0)
    table = masked(full, a=np.arange(40) < 3)
    imputer = cls(mask_model=SelfMask(columns=["a"]), **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(imputer, method)(table)
    files = {type(each.message).__name__: each.filename for each in caught}
    assert "UnusedSelfMaskWarning" in files
    assert ("FewRowsWarning" in files) == (cls is PSMVAEImputer)
    assert set(files.values()) == {__file__}


@pytest.mark.parametrize("n", [300, 1000])
def test_a_mask_by_another_column_is_not_attributed_to_a_value_that_it_predicts(n):
    """Two columns predict y, and one of them decides on its mask."""
    wrong = []
    for seed in range(4):
        rng = np.random.default_rng(30 + seed)
        x1, x2, noise = rng.normal(size=(3, n))
        x2 = 0.4 * x1 + x2
        missing = rng.random(n) < expit(1.5 * x1 - 0.5)
        y = np.where(missing, np.nan, 1 + x1 + 0.5 * x2 + noise)
        table = pd.DataFrame({"y": y, "x1": x1, "x2": x2})
        found = MICEImputer(mask_model="auto", max_iter=1, random_state=seed).fit(table)
        wrong.append(found.mechanism_["y"].chosen == "own value")
    assert np.mean(wrong) <= 0.25


@pytest.mark.filterwarnings("ignore:imputed values outside the observed range")
def test_long_tables_are_compared_in_a_sample_of_rows(monkeypatch):
    monkeypatch.setattr("psmvae.imputers.classical.MAX_MASK_ROWS", 1000)
    rng = np.random.default_rng(8)
    x = rng.normal(size=(1500, 2))
    y = x.sum(1) + 0.7 * rng.normal(size=1500)
    missing = (y > 0.5) & (rng.random(1500) < 0.7)
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": np.where(missing, np.nan, y)})
    imputer = MICEImputer(mask_model="auto", random_state=0).fit(table)
    found = imputer.mechanism_["y"]
    assert (found.n_rows, found.chosen) == (1000, "own value")
    error = imputer.transform(table)["y"][missing].mean() - y[missing].mean()
    assert abs(error) < 0.2


@pytest.mark.parametrize("mask", ["product", "both", "either"])
def test_an_interaction_of_other_columns_is_not_taken_for_the_value(mask):
    chosen = []
    for seed in range(3):
        rng = np.random.default_rng([9, seed])
        a, b, c, e = rng.normal(size=(4, 400))
        y = a + b + 0.5 * c + 0.8 * e
        probability = {
            "product": expit(1.5 * a * b - 0.7),
            "both": 0.05 + 0.7 * ((a > 0) & (b > 0)),
            "either": 0.05 + 0.6 * ((a > 0) | (b > 0)),
        }[mask]
        missing = rng.random(400) < probability
        table = pd.DataFrame({"a": a, "b": b, "c": c, "y": np.where(missing, np.nan, y)})
        imputer = MICEImputer(mask_model="auto", random_state=0).fit(table)
        chosen.append(imputer.mechanism_["y"].chosen)
    assert chosen.count("own value") <= 1


# most large values are missing, and about 5 % of the draws are beyond the observed ones
@pytest.mark.filterwarnings("ignore:imputed values outside the observed range")
def test_the_explanation_is_drawn_where_the_masks_do_not_tell(tmp_path):
    rng = np.random.default_rng(7)
    x = rng.normal(size=1000)
    y = x + 0.6 * rng.normal(size=1000)
    # with a single other column, the masks could as well depend on that
    missing = rng.random(1000) < expit(2 * y - 1)
    table = pd.DataFrame({"x": x, "y": np.where(missing, np.nan, y)})
    imputer = MICEImputer(mask_model="auto", random_state=0).fit(table)
    found = imputer.mechanism_["y"]
    assert found.chosen == "own value"
    factor = found.log_bayes_factors.one_column
    assert abs(factor) < 3
    share = 1 - found.share_by_value
    assert share == pytest.approx(expit(min(-factor, 0.0)), abs=0.026)
    words = f"{round(100 * share)} % of the draws impute its cells as missing at random."
    assert words in imputer.mechanism_.sentence("y")
    at_random = ~found.tilt.draws.gamma.any(1)
    first = at_random.cumsum() / np.arange(1, 61)
    assert np.all(np.abs(first - share) * np.arange(1, 61) < 2)
    # draws with the parameters of one of the 20 chains are all of one kind
    assert (at_random.reshape(3, 20) == at_random[:20]).all()
    means = np.array([one["y"][missing].mean() for one in imputer.sample(table, n=60)])
    assert means[at_random].max() < means[~at_random].min()
    assumed = MICEImputer(mask_model=SelfMask(["y"]), random_state=0).fit(table).mechanism_["y"]
    assert assumed.share_by_value == 1
    imputer.save(tmp_path / "model.safetensors")
    again = psmvae.load(tmp_path / "model.safetensors").mechanism_
    assert again["y"].log_bayes_factors == found.log_bayes_factors
    assert again["y"].share_by_value == found.share_by_value
    # the band is that of the value as the explanation
    assert again.odds("y")["low"].iloc[-1] > 0.6


@pytest.mark.filterwarnings("ignore:imputed values outside the observed range")
@pytest.mark.parametrize(
    "imputer",
    [
        MICEImputer(mask_model="auto", random_state=0),
        MissForestImputer(mask_model="auto", n_estimators=20, random_state=0),
    ],
)
def test_a_share_of_the_draws_is_by_value_where_at_random_is_chosen_narrowly(imputer, tmp_path):
    rng = np.random.default_rng(3)
    x, w, e = rng.normal(size=400), rng.normal(size=400), rng.normal(size=400)
    y = x + 0.3 * w + 0.7 * e
    missing = rng.random(400) < expit(2 * x - 1)
    table = pd.DataFrame({"x": x, "w": w, "y": np.where(missing, np.nan, y)})
    found = imputer.fit(table).mechanism_["y"]
    assert (found.chosen, found.tilt) == ("at random", None)
    share = found.share_by_value
    assert -3.2 < found.log_bayes_factors.one_column < -0.75
    assert 0 < share < 0.35
    words = f"{round(100 * share)} % of the draws impute its cells as missing by their value"
    sentence = imputer.mechanism_.sentence("y")
    assert words in sentence
    assert f"log Bayes factors: {found.log_bayes_factors.one_column:.1f} nats" in sentence
    assert imputer.mechanism_.summary()["share_by_value"].tolist() == [share]
    report = psmvae.report(table, imputer=imputer, validate=False).markdown()
    assert f"excluded narrowly in y ({share:.0%})" in report
    # single imputations are those without a mechanism
    without = clone(imputer).set_params(mask_model="none").fit(table)
    np.testing.assert_array_equal(imputer.transform(table), without.transform(table))
    by_value = found.alternative.draws.gamma.any(1)
    draws = imputer.sample(table, n=60)
    means = np.array([one["y"][missing].mean() for one in draws])
    assert means[by_value].min() > np.median(means[~by_value])
    imputer.save(tmp_path / "model.safetensors")
    loaded = psmvae.load(tmp_path / "model.safetensors")
    assert loaded.mechanism_["y"].share_by_value == share
    for one, again in zip(draws, loaded.sample(table, n=60), strict=True):
        pd.testing.assert_frame_equal(one, again)
    with pytest.raises(ValueError, match="missing at random: there are no odds"):
        imputer.mechanism_.odds("y")
