"""Parameters out of range raise errors that name them; the limits of each range are allowed."""

import inspect
import re

import numpy as np
import polars as pl
import pytest

from contract.registry import CLASSES, IMPUTERS, QUICK
from psmvae import Advanced, JointMask, LatentMask, LogisticMask, Network, PSMVAEImputer

NAN, INF = float("nan"), float("inf")
WHOLE = [0, -1, 1.5, 2.0, "two", None, True, NAN]
YES_OR_NO = ["yes", None, 1, 0.5]
POSITIVE = [0, -1e-3, NAN, INF, "one", None, True]
SHARE = [-0.1, 1.1, NAN, INF, "half", None, True, [0.5]]
NOT_NEGATIVE = [-1e-3, NAN, INF, "small", None, True]

BAD = {
    "mask_model": ["latnet", "", None, 3, LatentMask, LogisticMask, object()],
    "n_sets": WHOLE,
    "n_latent": WHOLE,
    "pi": [*SHARE, "rates"],
    "n_members": WHOLE,
    "draws": ["proper draws", "", None, 3, True],
    "numeric_draws": ["normal", "", None, 3, True],
    "n_draws": WHOLE,
    "n_train_draws": [*WHOLE, "auto"],
    "advanced": ["all", 10, Advanced, {"target_ess": 5}],
    "kinds": ["real", ["real"], 3, {"x0": "colour"}, {"x9": "real"}, {"x0": 3}, {"x0": None}],
    "bounds": [
        "x0",
        3,
        [(0, 1)],
        {"x9": (0, 1)},
        {"x0": 3},
        {"x0": "01"},
        {"x0": (0, 1, 2)},
        {"x0": (1, 0)},
        {"x0": (NAN, 1)},
        {"x0": ("0", None)},
        {"x0": (1e6, None)},
    ],
    "derived": ["x0", 3, ["x0 + x1"], {"x9": "x0 + 1"}, {"x0": "x9 + 1"}, {"x0": 3}, {"x0": "("}],
    "handle_unknown": ["ignore", None, 3, True],
    "network": ["big", None, 64, Network],
    "regression": ["big", True, 64, Network],
    "scale": [*POSITIVE, "nonsense"],
    "beta": POSITIVE,
    "input_mask_rate": [*SHARE, 1.0],
    "max_epochs": WHOLE,
    "batch_size": WHOLE,
    "max_time": [each for each in POSITIVE if each is not None],
    "learning_rate": POSITIVE,
    "validation_fraction": [*SHARE, 0.6],
    "patience": WHOLE,
    "device": ["gpu", "cpu:x", "", None, 3, "meta"],
    "random_state": ["zero", -1, 2**32, 1.5, np.random.default_rng(0)],
    "verbose": YES_OR_NO,
    "hint_rate": SHARE,
    "alpha": NOT_NEGATIVE,
    "max_iter": WHOLE,
    "tol": NOT_NEGATIVE,
    "n_nearest_features": [each for each in WHOLE if each is not None],
    "standardise": YES_OR_NO,
    "method": ["normal", "", None, 3],
    "predictors": ["x0", ["x0"], 3, {"x0": "x1"}, {"x0": 1}, {"x9": []}, {"x0": ["x9"]}],
    "n_estimators": WHOLE,
    "n_jobs": [0, -2, 1.5, "all", True, NAN],
}
# Values that only some imputers allow.
BAD_FOR = {
    ("GAIN", "network"): ["column", ""],
    ("VAE", "network"): ["columns"],
}
PARAMETERS = [(name, each) for name, cls in CLASSES.items() for each in cls().get_params()]
# Inherited parameters are checked once, in the first class that has them.
CHECKED = {each: name for name, each in reversed(PARAMETERS)}
CASES = [(name, each) for each, name in CHECKED.items()] + sorted(BAD_FOR)

LIMITS = {
    "n_sets": np.int64(1),
    "n_latent": 1,
    "pi": 1,
    "draws": "model",
    "numeric_draws": "pmm",
    "n_draws": 1,
    "n_train_draws": np.int32(1),
    "advanced": Advanced(target_ess=1, max_memory=1, weight_observed=np.bool_(1)),
    "max_time": 1e-9,
    "kinds": {},
    "bounds": {"x0": (None, INF), "x1": (np.float32(-100), np.int64(100))},
    "derived": {},
    "scale": np.float32(0.5),
    "beta": 1e-6,
    "input_mask_rate": 0,
    "max_epochs": 1,
    "batch_size": 10**6,
    "validation_fraction": 0.5,
    "patience": 1,
    "random_state": 2**32 - 1,
    "hint_rate": 1,
    "alpha": 0,
    "max_iter": np.int64(1),
    "tol": 0,
    "n_nearest_features": np.int64(1),
    "standardise": np.False_,
    "predictors": {"x0": []},
    "n_estimators": 1,
    "n_jobs": None,
    "regression": None,
}


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_values_out_of_range_or_of_another_type(numbers, name, parameter):
    named = "kind" if parameter == "kinds" else parameter
    for value in [*BAD[parameter], *BAD_FOR.get((name, parameter), [])]:
        # the constructor does not check
        imputer = IMPUTERS[name](**{parameter: value})
        with pytest.raises((ValueError, TypeError), match=named) as caught:
            imputer.fit(numbers)
        if not isinstance(value, type | dict):
            assert repr(value) in str(caught.value)
        assert not [each for each in vars(imputer) if each.endswith("_")], value


def test_every_parameter_has_bad_values():
    used = {parameter for _, parameter in PARAMETERS}
    assert used == set(BAD)
    assert set(LIMITS) < used


@pytest.mark.parametrize("name", CLASSES)
class TestConstructor:
    @pytest.mark.filterwarnings("ignore:max_time")
    def test_limits_of_the_ranges_are_allowed(self, numbers, name):
        parameters = CLASSES[name]().get_params()
        limits = {each: value for each, value in LIMITS.items() if each in parameters}
        imputer = IMPUTERS[name](**limits)
        assert np.isfinite(imputer.fit(numbers).transform(numbers)).all()
        assert np.isfinite(np.stack(imputer.sample(numbers, n=2))).all()

    def test_an_unknown_parameter(self, name):
        with pytest.raises(TypeError, match="n_trials"):
            CLASSES[name](n_trials=3)
        with pytest.raises(TypeError, match="n_trials"):
            CLASSES[name].paper(n_trials=3)

    def test_only_the_mask_model_is_positional(self, name):
        first = dict.fromkeys(("PSMVAE", "NotMIWAE", "GMVAE"), "mask_model")
        parameters = inspect.signature(CLASSES[name]).parameters.values()
        positional = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
        assert positional == ([first[name]] if name in first else [])


class TestPaper:
    @pytest.mark.parametrize("name", CLASSES)
    def test_paper_settings_fit_a_table(self, numbers, name):
        imputer = CLASSES[name].paper(**(QUICK[CLASSES[name]] | {"random_state": 1}))
        assert type(imputer) is CLASSES[name]
        assert imputer.random_state == 1
        filled = imputer.fit_transform(numbers)
        assert np.isfinite(filled).all()
        assert (filled == numbers)[~np.isnan(numbers)].all()

    def test_model_a_and_b_of_psmvae(self, numbers):
        for wrong in ("c", "A", "", None, 1):
            with pytest.raises(ValueError, match=r"model must be one of \['a', 'b'\]"):
                PSMVAEImputer.paper(wrong)
        assert PSMVAEImputer.paper("a", n_sets=3).n_sets == 3
        quick = {"max_epochs": 2, "n_draws": 5, "random_state": 0}
        assert np.isfinite(PSMVAEImputer.paper("a", **quick).fit_transform(numbers)).all()


class TestSettings:
    def test_a_device_that_is_not_available(self, numbers, monkeypatch):
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        with pytest.raises(ValueError, match=r"device='cuda'.*no CUDA device"):
            IMPUTERS["GAIN"](device="cuda").fit(numbers)

    def test_kinds_that_do_not_match_the_column(self, family, mixed):
        for kinds, message in [
            ({"arm": "real"}, "'arm' is declared real but holds strings"),
            ({"arm": "binary"}, "'arm' is declared binary but has 3 levels"),
            ({"weight": "integer"}, "'weight' is declared integer but .* not whole"),
        ]:
            with pytest.raises(ValueError, match=message):
                family(kinds=kinds).fit(pl.DataFrame(mixed))

    @pytest.mark.parametrize("name", ["PSMVAE", "GMVAE", "NotMIWAE"])
    def test_errors_list_the_names_of_mask_models(self, numbers, name):
        names = ["latent", "linear", "logistic", "logistic-ceiling", "network", "none"]
        names = re.escape(str(sorted([*names, *(["auto", "self"] if name == "PSMVAE" else [])])))
        for wrong in ("colour", "self-high", 3):
            with pytest.raises(ValueError, match=f"mask_model must be one of {names}"):
                IMPUTERS[name](mask_model=wrong).fit(numbers)

    @pytest.mark.parametrize(
        "mask_model", ["latent", "linear", "logistic", "network", "logistic-ceiling"]
    )
    @pytest.mark.parametrize("name", ["PSMVAE", "GMVAE", "NotMIWAE"])
    def test_every_mask_model_is_allowed_for_every_imputer_that_has_one(
        self, numbers, name, mask_model
    ):
        imputer = IMPUTERS[name](mask_model=mask_model).fit(numbers)
        assert np.isfinite(imputer.transform(numbers)).all()

    def test_errors_list_the_allowed_words(self, numbers):
        for name, wrong, words in (
            ("VAE", {"scale": "learnt"}, r"'learned' or 'student' or a number in \(0, inf\)"),
            ("MIWAE", {"scale": -1.0}, r"'learned' or 'student' or in \(0, inf\)"),
            ("PSMVAE", {"pi": "rates"}, r"'rate' or a number in \[0, 1\]"),
        ):
            with pytest.raises((ValueError, TypeError), match=f"must be {words}, got"):
                IMPUTERS[name](**wrong).fit(numbers)

    @pytest.mark.parametrize("name", ["PSMVAE", "NotMIWAE"])
    def test_self_masking_of_a_column_that_does_not_exist(self, mixed, name):
        mask = LogisticMask(["weight", "income"])
        with pytest.raises(ValueError, match=r"LogisticMask.*not modelled: \['income'\].*'weight'"):
            IMPUTERS[name](mask_model=mask).fit(pl.DataFrame(mixed))

    def test_settings_of_mask_models_are_checked(self):
        with pytest.raises(TypeError, match=r"did you mean \['weight'\]"):
            LogisticMask("weight")
        with pytest.raises(TypeError, match="list of column names"):
            LogisticMask(3)
        with pytest.raises(ValueError, match="integrate"):
            LogisticMask(integrate="guess")
        with pytest.raises(ValueError, match="sign"):
            LogisticMask(sign="up")
        for wrong in (-1, 1.5, True, "many", None):
            with pytest.raises(ValueError, match="hidden"):
                JointMask(hidden=wrong)

    def test_settings_of_networks_are_checked(self):
        for wrong in ({"width": 0}, {"depth": 0}, {"dropout": 1.0}, {"dropout": -0.1}):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                Network(**wrong)

    @pytest.mark.parametrize(
        ("option", "values"),
        [
            ("target_ess", [0, 0.5, -1, NAN, INF, "many", True]),
            ("max_memory", [*WHOLE, "all"]),
            ("weight_observed", YES_OR_NO),
            ("impute_from", ["x", "x_obs ", None, 1]),
        ],
    )
    def test_advanced_options_are_checked(self, option, values):
        for value in values:
            with pytest.raises((ValueError, TypeError), match=option) as caught:
                Advanced(**{option: value})
            assert repr(value) in str(caught.value)
