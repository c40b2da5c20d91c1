"""The same seed gives the same result; rows do not depend on one another; nothing is trained."""

import hashlib

import numpy as np
import pytest
import torch

from contract.registry import (
    CLASSICAL,
    DEEP_ONES,
    DRAWN_IN_TURN,
    EXPECTING,
    IMPUTERS,
    LATENT_ONES,
    VARIANTS,
    WITH_SETS,
    methods_of,
)

# These use no random numbers but for draws.
EXACT = {"MICE", "Mean"}
ROW_ANSWERS = ("transform", "predict_set_proba", "score_samples", "effective_sample_size")


def results(imputer, table):
    """All that an imputer says of a table."""
    answers = {name: getattr(imputer, name)(table) for name in methods_of(imputer)}
    return {name: np.asarray(answer) for name, answer in answers.items()}


def same_bits(one, other):
    return {name for name in one if one[name].tobytes() == other[name].tobytes()}


@pytest.mark.parametrize("name", VARIANTS)
class TestSeed:
    def test_the_same_seed_gives_the_same_bits_and_nothing_global_is_moved(
        self, fitted, numbers, name
    ):
        one = results(fitted(name), numbers)
        torch.manual_seed(1)
        before = everywhere()
        other = results(VARIANTS[name]().fit(numbers), numbers)
        assert everywhere() == before
        assert same_bits(one, other) == set(one)

    @pytest.mark.parametrize("switched_off", [torch.no_grad, torch.inference_mode])
    def test_gradients_may_be_switched_off_outside(self, fitted, numbers, name, switched_off):
        with switched_off():
            imputer = VARIANTS[name]().fit(numbers)
            inside = results(imputer, numbers)
        one = results(fitted(name), numbers)
        assert same_bits(one, inside) == same_bits(one, results(imputer, numbers)) == set(one)

    def test_other_seeds_differ(self, fitted, numbers, name):
        one = results(fitted(name), numbers)
        other = results(VARIANTS[name](random_state=6).fit(numbers), numbers)
        same = same_bits(one, other)
        # sets start as the classes of the masks, which two seeds may find alike
        of_masks = {"predict_set", "predict_set_proba"}
        assert same == {"transform"} if name in EXACT else same <= of_masks

    def test_asking_again_gives_the_same_bits(self, fitted, numbers, name):
        imputer = fitted(name)
        one = results(imputer, numbers)
        imputer.sample(numbers, n=2, random_state=9)
        assert same_bits(one, results(imputer, numbers)) == set(one)

    def test_nothing_is_trained_by_asking(self, fitted, numbers, name):
        """New rows, far from the training table, change no number of the fitted imputer."""
        imputer = fitted(name)
        before, answers = fingerprint(imputer), results(imputer, numbers)
        results(imputer, 100 + 7 * numbers)
        assert fingerprint(imputer) == before
        assert same_bits(answers, results(imputer, numbers)) == set(answers)


def everywhere():
    """What belongs to the whole process: random numbers, and the settings of torch."""
    return (
        torch.get_rng_state().numpy().tobytes(),
        np.random.get_state()[1].tobytes(),  # noqa: NPY002
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
    )


def fingerprint(imputer):
    """A hash of all numbers that a file would hold."""
    arrays, plain = imputer._state()
    total = hashlib.sha256(repr(plain).encode())
    for key in sorted(arrays):
        total.update(key.encode() + torch.as_tensor(arrays[key]).numpy().tobytes())
    return total.hexdigest()


class TestRandomState:
    def test_no_seed_draws_one(self, family, numbers):
        one, other = (family(random_state=None).fit(numbers) for _ in range(2))
        drawn = [np.stack(each.sample(numbers, n=2)) for each in (one, other)]
        assert drawn[0].tobytes() != drawn[1].tobytes()
        assert one.transform(numbers).tobytes() == one.transform(numbers).tobytes()

    def test_a_random_state_moves_on(self, family, numbers):
        imputer = family(random_state=np.random.RandomState(0))
        one = imputer.fit(numbers).sample(numbers, n=1)[0]
        other = imputer.fit(numbers).sample(numbers, n=1)[0]
        assert one.tobytes() != other.tobytes()


def check_rows_one_by_one(imputer, table, tolerance):
    together = results(imputer, table)
    for name in set(ROW_ANSWERS) & set(together):
        ask = getattr(imputer, name)
        alone = np.concatenate([ask(table[i : i + 1]) for i in range(8)])
        np.testing.assert_allclose(alone, together[name][:8], **tolerance)


def check_permuted_rows(imputer, table, tolerance):
    order = np.random.default_rng(1).permutation(len(table))
    one, other = results(imputer, table), results(imputer, table[order])
    for name in set(ROW_ANSWERS) & set(one):
        np.testing.assert_allclose(other[name], one[name][order], **tolerance)


# products of float32 matrices of other shapes are rounded elsewhere
ROUNDED = {"rtol": 1e-4, "atol": 1e-5}
# the classical ones compute in float64
SHARP = {"rtol": 1e-12, "atol": 1e-12}


class TestRows:
    @pytest.mark.parametrize("name", EXPECTING)
    def test_rows_do_not_depend_on_one_another(self, fitted, numbers, name):
        tolerance = SHARP if name in CLASSICAL else ROUNDED
        check_rows_one_by_one(fitted(name), numbers, tolerance)
        check_permuted_rows(fitted(name), numbers, tolerance)

    @pytest.mark.parametrize("name", DEEP_ONES)
    def test_nor_with_members(self, fitted, numbers, name):
        imputer = fitted(name, n_members=3)
        check_rows_one_by_one(imputer, numbers, ROUNDED)
        check_permuted_rows(imputer, numbers, ROUNDED)

    @pytest.mark.parametrize("name", DRAWN_IN_TURN)
    def test_a_draw_in_turn_depends_on_the_rows_before(self, fitted, numbers, name):
        imputer = fitted(name)
        one, other = imputer.transform(numbers), imputer.transform(numbers[::-1])[::-1]
        holes = np.isnan(numbers)
        assert (one[holes] != other[holes]).any()
        assert imputer.transform(numbers).tobytes() == one.tobytes()


class TestSample:
    @pytest.mark.parametrize("name", [n for n in VARIANTS if n != "MissForest"])
    def test_two_identical_rows_get_draws_of_their_own(self, fitted, name):
        imputer = fitted(name)
        twins = np.array([[0.5, np.nan, np.nan, 0.1]] * 2)
        for drawn in imputer.sample(twins, n=3):
            assert (drawn[0, 1:3] != drawn[1, 1:3]).all()
        first, second = imputer.sample(twins, n=2)
        assert (first[:, 1:3] != second[:, 1:3]).all()

    def test_the_trees_that_speak_are_drawn_for_each_row(self, fitted):
        """A forest of three trees has three values to draw at most, so twins may share one."""
        twins = np.array([[0.5, np.nan, np.nan, 0.1]] * 40)
        for drawn in fitted("MissForest").sample(twins, n=2):
            assert len(np.unique(drawn[:, 1])) > 1

    @pytest.mark.parametrize("name", VARIANTS)
    def test_the_same_random_state_gives_the_same_draws(self, fitted, numbers, name):
        imputer = fitted(name)
        one, other = (np.stack(imputer.sample(numbers, 3, random_state=4)) for _ in range(2))
        assert one.tobytes() == other.tobytes()
        third = np.stack(imputer.sample(numbers, 3, random_state=5))
        assert one.tobytes() != third.tobytes()
        assert third.tobytes() != np.stack(imputer.sample(numbers, 3)).tobytes()
        state = np.random.RandomState(4)
        assert np.stack(imputer.sample(numbers, 3, random_state=state)).tobytes() == one.tobytes()

    def test_draws_spread_about_the_point_estimate(self, quick, numbers):
        imputer = quick(n_draws=50).fit(numbers)
        point, draws = imputer.transform(numbers), np.stack(imputer.sample(numbers, n=200))
        holes = np.isnan(numbers)
        spread = draws.std(0)[holes]
        assert (spread > 0.05).all()
        error = (draws.mean(0)[holes] - point[holes]) / spread
        assert abs(error.mean()) < 0.1
        assert error.std() < 0.5

    def test_all_members_are_drawn_from(self, quick, numbers):
        imputer = quick(n_members=3).fit(numbers)
        holes = np.isnan(numbers)
        # far apart, so that a draw tells which member it is from
        with torch.no_grad():
            imputer.model_.p_x.net.last.bias += 1000 * torch.arange(3.0)[:, None, None]
        for n in (3, 7):
            drawn = [round(t[holes].mean() / 1000) for t in imputer.sample(numbers, n=n)]
            member = {value: k for k, value in enumerate(sorted(set(drawn)))}
            assert len(member) == 3
            counts = np.bincount([member[value] for value in drawn])
            assert counts.max() - counts.min() <= 1

    def test_the_members_are_averaged(self, quick, numbers):
        imputer = quick(n_members=3).fit(numbers)
        holes = np.isnan(numbers)
        before = imputer.transform(numbers)[holes]
        with torch.no_grad():
            imputer.model_.p_x.net.last.bias[1] += 1000.0
        moved = imputer.transform(numbers)[holes] - before
        assert (moved > 100).all()


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("name", LATENT_ONES)
def test_what_the_answers_look_like(fitted, numbers, name, n_members):
    imputer = fitted(name, n_members=n_members)
    answers = results(imputer, numbers)
    n = len(numbers)
    assert answers["score_samples"].shape == (n,)
    assert answers["score"] == pytest.approx(answers["score_samples"].mean())
    size = answers["effective_sample_size"]
    assert size.shape == (n,)
    assert ((size > 1 - 1e-5) & (size < imputer.n_draws + 1e-4)).all()
    assert all(np.isfinite(value).all() for value in answers.values())


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("name", WITH_SETS)
def test_what_the_sets_look_like(fitted, numbers, name, n_members):
    imputer = fitted(name, n_members=n_members)
    proba, best = imputer.predict_set_proba(numbers), imputer.predict_set(numbers)
    assert proba.shape == (len(numbers), 2)
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(1), 1.0, rtol=0, atol=1e-12)
    assert (best == proba.argmax(1)).all()
    assert best.dtype.kind == "i"
    assert imputer.set_sizes_.shape == (2,)
    assert (np.diff(imputer.set_sizes_) <= 0).all()
    np.testing.assert_allclose(imputer.set_sizes_, proba.mean(0), atol=1e-6)


@pytest.mark.parametrize("name", IMPUTERS)
def test_who_answers_what(name):
    has = set(methods_of(IMPUTERS[name]()))
    assert {"transform", "sample"} <= has
    scores = {"score_samples", "score", "effective_sample_size"}
    assert has & scores == (scores if name in LATENT_ONES else set())
    sets = {"predict_set", "predict_set_proba"}
    assert has & sets == (sets if name in WITH_SETS else set())
