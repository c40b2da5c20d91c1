"""How many pattern sets there are where a user does not say."""

import numpy as np
import pytest
from psmvae_paper.stacked_fit import fit_stacked

import psmvae
from psmvae import DLGMImputer, GMVAEImputer, PSMVAEImputer, SelfMask

QUICK = {"max_epochs": 2, "n_draws": 5, "random_state": 0}


def table(*, together: bool, seed: int = 0) -> np.ndarray:
    """Values that go missing by themselves, or half of the row at once."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, 6))
    holes = rng.random(x.shape) < 0.1
    if together:
        holes[rng.random(300) < 0.4, 3:] = True
    return np.where(holes, np.nan, x)


@pytest.mark.parametrize(("together", "expected"), [(False, 1), (True, 2)])
def test_the_masks_say(together, expected, tmp_path):
    x = table(together=together)
    imputer = PSMVAEImputer(**QUICK).fit(x)
    assert imputer.n_sets == "auto"
    assert imputer.n_sets_ == expected
    assert imputer.set_sizes_.shape == (expected,)
    assert imputer.predict_set_proba(x).shape == (300, expected)
    assert imputer.describe()["n_sets"] == expected
    imputer.save(tmp_path / "model.safetensors")
    again = psmvae.load(tmp_path / "model.safetensors")
    assert again.n_sets_ == expected
    np.testing.assert_array_equal(again.transform(x), imputer.transform(x))


def test_the_user_has_the_last_word():
    x = table(together=False)
    assert PSMVAEImputer(n_sets=3, **QUICK).fit(x).n_sets_ == 3
    assert GMVAEImputer(**QUICK).fit(x).n_sets_ == 4


def test_a_mask_that_is_ignored_says_nothing():
    assert PSMVAEImputer("none", **QUICK).fit(table(together=True)).n_sets_ == 1


def test_the_same_seed_gives_the_same_number_and_a_fit_starts_anew():
    imputer = PSMVAEImputer(**QUICK)
    found = [imputer.fit(table(together=t)).n_sets_ for t in (True, False, True)]
    assert found == [2, 1, 2]


def test_another_word_is_told_the_right_one():
    with pytest.raises(ValueError, match="n_sets must be a whole number >= 1 or 'auto'"):
        PSMVAEImputer(n_sets="many").fit(table(together=True))


@pytest.mark.parametrize("cls", [GMVAEImputer, DLGMImputer])
def test_sets_of_the_data_are_not_counted_in_the_masks(cls):
    with pytest.raises(TypeError, match="n_sets must be a whole number"):
        cls(n_sets="auto", **QUICK).fit(table(together=True))


def test_a_number_set_after_fit_is_no_description_of_the_model(tmp_path):
    imputer = PSMVAEImputer(**QUICK).fit(table(together=True)).set_params(n_sets=3)
    with pytest.raises(ValueError, match="n_sets from 2 to 3"):
        imputer.save(tmp_path / "model.safetensors")


def unlike():
    return [table(together=t, seed=k) for k, t in enumerate((True, False, True))]


class Own(SelfMask):
    """A mask model that equals nothing but itself."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other


@pytest.mark.parametrize("mask_model", ["latent", Own()], ids=["latent", "own"])
def test_tables_with_other_numbers_are_stacked_apart(mask_model):
    tables = unlike()
    imputers = [PSMVAEImputer(mask_model, **(QUICK | {"random_state": k})) for k in range(3)]
    assert fit_stacked(imputers, tables) == imputers
    assert [imputer.n_sets_ for imputer in imputers] == [2, 1, 2]
    for imputer, x in zip(imputers, tables, strict=True):
        assert not np.isnan(imputer.transform(x)).any()


def test_a_stack_of_one_learns_its_table():
    tables = unlike()
    slow = {"max_epochs": 40, "learning_rate": 1e-2, "random_state": 0, "n_draws": 5}
    stacked = fit_stacked([PSMVAEImputer(**slow) for _ in tables], tables)[1]
    alone = PSMVAEImputer(**slow).fit(tables[1])
    assert stacked.n_sets_ == 1
    assert stacked.best_validation_error_ == pytest.approx(alone.best_validation_error_, rel=0.2)


def test_all_stacks_share_the_time_and_an_error_leaves_all_as_they_were():
    imputers = [PSMVAEImputer(random_state=k, max_epochs=10**6, max_time=2.0) for k in range(3)]
    ends = []
    fit_stacked(imputers, unlike(), callback=lambda progress: ends.append(progress.seconds))
    # seconds are counted from the one beginning
    assert ends == sorted(ends)

    def stop(_):
        raise RuntimeError("enough")

    fresh = [PSMVAEImputer(**(QUICK | {"random_state": k})) for k in range(3)]
    with pytest.raises(RuntimeError, match="enough"):
        fit_stacked(fresh, unlike(), callback=stop)
    assert not any(hasattr(imputer, "n_sets_") for imputer in fresh)


def test_tables_of_other_shapes_are_refused_before_anything_is_trained():
    tables = unlike()
    tables[1] = tables[1][:200]
    seen = []
    with pytest.raises(ValueError, match="as many rows"):
        fit_stacked([PSMVAEImputer(**QUICK) for _ in tables], tables, callback=seen.append)
    assert not seen
