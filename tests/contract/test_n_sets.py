"""The number of pattern sets chosen by n_sets="auto"."""

import numpy as np
import pytest

import psmvae
from psmvae import DLGMImputer, GMVAEImputer, PSMVAEImputer

QUICK = {"max_epochs": 1, "n_draws": 5, "random_state": 0}


def table(*, patterns):
    """Cells that are missing independently, and with `patterns` half a row at a time as well."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, 6))
    missing = rng.random(x.shape) < 0.1
    if patterns:
        missing[rng.random(300) < 0.4, 3:] = True
    return np.where(missing, np.nan, x)


@pytest.mark.parametrize(("patterns", "expected"), [(False, 1), (True, 2)])
def test_auto_counts_the_classes_of_the_masks(patterns, expected, tmp_path):
    x = table(patterns=patterns)
    imputer = PSMVAEImputer(**QUICK).fit(x)
    assert imputer.n_sets == "auto"
    assert imputer.n_sets_ == imputer.config_.n_sets == expected
    assert imputer.set_sizes_.shape == (expected,)
    assert imputer.predict_set_proba(x).shape == (300, expected)
    assert imputer.describe()["config"]["n_sets"] == expected
    imputer.save(tmp_path / "model.safetensors")
    again = psmvae.load(tmp_path / "model.safetensors")
    assert again.n_sets_ == expected
    np.testing.assert_array_equal(again.transform(x), imputer.transform(x))


def test_a_given_number_is_used():
    x = table(patterns=False)
    assert PSMVAEImputer(n_sets=3, **QUICK).fit(x).n_sets_ == 3
    assert GMVAEImputer(**QUICK).fit(x).n_sets_ == 4


def test_auto_is_one_set_without_a_mask_model():
    assert PSMVAEImputer("none", **QUICK).fit(table(patterns=True)).n_sets_ == 1


def test_every_fit_counts_anew():
    imputer = PSMVAEImputer(**QUICK)
    assert [imputer.fit(table(patterns=p)).n_sets_ for p in (True, False)] == [2, 1]


def test_another_word_is_refused():
    with pytest.raises(ValueError, match="n_sets must be a whole number >= 1 or 'auto'"):
        PSMVAEImputer(n_sets="many").fit(table(patterns=True))


@pytest.mark.parametrize("cls", [GMVAEImputer, DLGMImputer])
def test_auto_is_refused_where_sets_are_mixture_components(cls):
    with pytest.raises(TypeError, match="n_sets must be a whole number"):
        cls(n_sets="auto", **QUICK).fit(table(patterns=True))


@pytest.mark.parametrize("cls", [PSMVAEImputer, GMVAEImputer, DLGMImputer])
def test_more_sets_than_a_model_file_can_hold_are_refused(cls):
    with pytest.raises(ValueError, match="n_sets must be <= 1000, got 1001"):
        cls(n_sets=1001, **QUICK).fit(table(patterns=False))
