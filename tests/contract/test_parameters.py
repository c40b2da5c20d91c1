"""Parameters out of range: errors that name the parameter; the ends of each range are allowed."""

import inspect

import numpy as np
import polars as pl
import pytest

from contract.registry import CLASSES, DEEP_ONES, IMPUTERS, QUICK
from psmvae import JointMask, Network, PSMVAEImputer, SelfMask
from psmvae.nn.mask import LatentMask

NAN, INF = float("nan"), float("inf")
WHOLE = [0, -1, 1.5, 2.0, "two", None, True, NAN]
YES_OR_NO = ["yes", None, 1, 0.5]
POSITIVE = [0, -1e-3, NAN, INF, "one", None, True]
SHARE = [-0.1, 1.1, NAN, INF, "half", None, True, [0.5]]
NOT_NEGATIVE = [-1e-3, NAN, INF, "small", None, True]

BAD = {
    "mask_model": ["latnet", "", None, 3, LatentMask, SelfMask, object()],
    "mask": YES_OR_NO,
    "n_sets": WHOLE,
    "n_latent": WHOLE,
    "pi": [*SHARE, "rates"],
    "n_members": WHOLE,
    "bootstrap": YES_OR_NO,
    "n_draws": WHOLE,
    "n_train_draws": [*WHOLE, "auto"],
    "target_ess": [0, 0.5, -1, NAN, INF, "many", True],
    "max_memory": [*WHOLE, "all"],
    "kinds": ["real", ["real"], 3, {"x0": "colour"}, {"x9": "real"}, {"x0": 3}, {"x0": None}],
    "handle_unknown": ["ignore", None, 3, True],
    "network": ["big", None, 64, Network],
    "regression": ["big", True, 64, Network],
    "impute_from": ["x", "x_obs ", None, 1],
    "scale": [*POSITIVE, "nonsense"],
    "beta": POSITIVE,
    "input_mask_rate": [*SHARE, 1.0],
    "weight_observed": YES_OR_NO,
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
    "standardise": YES_OR_NO,
    "sample_posterior": YES_OR_NO,
    "n_chains": WHOLE,
    "n_estimators": WHOLE,
    "n_jobs": [0, -2, 1.5, "all", True, NAN],
}
# What is allowed for one imputer and not for another.
BAD_FOR = {
    ("PSMVAE", "mask_model"): ["self-high", "linear", "network"],
    ("NotMIWAE", "mask_model"): ["latent", "none"],
    ("GAIN", "network"): ["column", ""],
    ("VAE", "network"): ["columns"],
}
PARAMETERS = [(name, each) for name, cls in CLASSES.items() for each in cls().get_params()]

ENDS = {
    "n_sets": np.int64(1),
    "n_latent": 1,
    "pi": 1,
    "bootstrap": np.True_,
    "n_draws": 1,
    "n_train_draws": np.int32(1),
    "target_ess": 1,
    "max_memory": 1,
    "max_time": 1e-9,
    "kinds": {},
    "scale": np.float32(0.5),
    "beta": 1e-6,
    "input_mask_rate": 0,
    "weight_observed": np.bool_(1),
    "max_epochs": 1,
    "batch_size": 10**6,
    "validation_fraction": 0.5,
    "patience": 1,
    "random_state": 2**32 - 1,
    "mask": np.True_,
    "hint_rate": 1,
    "alpha": 0,
    "max_iter": np.int64(1),
    "tol": 0,
    "standardise": np.False_,
    "sample_posterior": np.True_,
    "n_chains": 1,
    "n_estimators": 1,
    "n_jobs": None,
    "regression": None,
}


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_out_of_range_or_of_another_type(numbers, name, parameter):
    spoken = "kind" if parameter == "kinds" else parameter
    for value in [*BAD[parameter], *BAD_FOR.get((name, parameter), [])]:
        # the constructor only stores
        imputer = IMPUTERS[name](**{parameter: value})
        with pytest.raises((ValueError, TypeError), match=spoken) as caught:
            imputer.fit(numbers)
        if not isinstance(value, type | dict):
            assert repr(value) in str(caught.value)
        assert not [each for each in vars(imputer) if each.endswith("_")], value


def test_every_list_is_of_a_parameter():
    used = {parameter for _, parameter in PARAMETERS}
    assert used == set(BAD)
    assert set(ENDS) < used


@pytest.mark.parametrize("name", CLASSES)
class TestConstructor:
    def test_ends_of_the_ranges_are_allowed(self, numbers, name):
        has = CLASSES[name]().get_params()
        ends = {each: value for each, value in ENDS.items() if each in has}
        imputer = IMPUTERS[name](**ends)
        assert np.isfinite(imputer.fit(numbers).transform(numbers)).all()
        assert np.isfinite(np.stack(imputer.sample(numbers, n=2))).all()

    def test_an_unknown_parameter(self, name):
        with pytest.raises(TypeError, match="n_trials"):
            CLASSES[name](n_trials=3)
        with pytest.raises(TypeError, match="n_trials"):
            CLASSES[name].paper(n_trials=3)

    def test_only_the_first_parameter_of_some_goes_without_its_name(self, name):
        first = {"PSMVAE": "mask_model", "NotMIWAE": "mask_model", "GMVAE": "mask"}
        parameters = inspect.signature(CLASSES[name]).parameters.values()
        free = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
        assert free == ([first[name]] if name in first else [])

    def test_parameters_are_documented(self, name):
        """Its own by name, the shared ones in the class it points to."""
        text = "\n".join(cls.__doc__ or "" for cls in CLASSES[name].__mro__)
        assert [p for p in CLASSES[name]().get_params() if f"{p} : " not in text] == []


class TestPaper:
    @pytest.mark.parametrize("name", CLASSES)
    def test_it_fits_a_table(self, numbers, name):
        imputer = CLASSES[name].paper(**(QUICK[CLASSES[name]] | {"random_state": 1}))
        assert type(imputer) is CLASSES[name]
        assert imputer.random_state == 1
        filled = imputer.fit_transform(numbers)
        assert np.isfinite(filled).all()
        assert (filled == numbers)[~np.isnan(numbers)].all()

    @pytest.mark.parametrize("name", CLASSES)
    def test_parameters_are_within_their_ranges(self, name):
        CLASSES[name].paper()._check_parameters()

    def test_the_model_of_psmvae(self, numbers):
        for wrong in ("c", "A", "", None, 1):
            with pytest.raises(ValueError, match=r"model must be one of \['a', 'b'\]"):
                PSMVAEImputer.paper(wrong)
        assert PSMVAEImputer.paper("a", n_sets=3).n_sets == 3
        quick = {"max_epochs": 2, "n_draws": 5, "random_state": 0}
        assert np.isfinite(PSMVAEImputer.paper("a", **quick).fit_transform(numbers)).all()


class TestSettings:
    @pytest.mark.parametrize("name", DEEP_ONES)
    def test_no_cuda_here(self, numbers, monkeypatch, name):
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        with pytest.raises(ValueError, match=r"device='cuda'.*no CUDA device"):
            IMPUTERS[name](device="cuda").fit(numbers)

    def test_kinds_that_do_not_fit(self, make, mixed):
        for kinds, message in [
            ({"arm": "real"}, "'arm' is declared real but holds strings"),
            ({"arm": "binary"}, "'arm' is declared binary but has 3 levels"),
            ({"weight": "integer"}, "'weight' is declared integer but .* not whole"),
        ]:
            with pytest.raises(ValueError, match=message):
                make(kinds=kinds).fit(pl.DataFrame(mixed))

    def test_each_names_the_mask_models_it_has(self, numbers):
        for name, others in (("PSMVAE", "latent.*none.*self"), ("NotMIWAE", "linear.*self-high")):
            for wrong in ("colour", 3):
                with pytest.raises(ValueError, match=f"mask_model must be one of .*{others}"):
                    IMPUTERS[name](mask_model=wrong).fit(numbers)

    def test_words_that_are_allowed_are_named(self, numbers):
        for name, wrong, words in (
            ("VAE", {"scale": "learnt"}, r"'learned' or 'student' or a number in \(0, inf\)"),
            ("MIWAE", {"scale": -1.0}, r"'learned' or 'student' or in \(0, inf\)"),
            ("PSMVAE", {"pi": "rates"}, r"'rate' or a number in \[0, 1\]"),
        ):
            with pytest.raises((ValueError, TypeError), match=f"must be {words}, got"):
                IMPUTERS[name](**wrong).fit(numbers)

    @pytest.mark.parametrize("name", ["PSMVAE", "NotMIWAE"])
    def test_the_mask_of_a_column_that_is_not_there(self, mixed, name):
        mask = SelfMask(["weight", "income"])
        with pytest.raises(ValueError, match=r"SelfMask.*not modelled: \['income'\].*'weight'"):
            IMPUTERS[name](mask_model=mask).fit(pl.DataFrame(mixed))

    def test_masks_out_of_range(self):
        with pytest.raises(TypeError, match=r"did you mean \['weight'\]"):
            SelfMask("weight")
        with pytest.raises(TypeError, match="list of column names"):
            SelfMask(3)
        with pytest.raises(ValueError, match="integrate"):
            SelfMask(integrate="guess")
        with pytest.raises(ValueError, match="sign"):
            SelfMask(sign="up")
        for wrong in (-1, 1.5, True, "many", None):
            with pytest.raises(ValueError, match="hidden"):
                JointMask(hidden=wrong)

    def test_network_out_of_range(self):
        for wrong in ({"width": 0}, {"depth": 0}, {"dropout": 1.0}, {"dropout": -0.1}):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                Network(**wrong)
