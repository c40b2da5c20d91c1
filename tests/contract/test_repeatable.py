"""The same seed gives the same result; rows do not depend on one another."""

import numpy as np
import pytest
import torch

MASKS = ["latent", "self", "none"]


def results(imputer, table):
    """All that an imputer says of a table."""
    return {
        "transform": imputer.transform(table),
        "sample": np.stack(imputer.sample(table, n=4)),
        "predict_set_proba": imputer.predict_set_proba(table),
        "predict_set": imputer.predict_set(table),
        "score_samples": imputer.score_samples(table),
        "effective_sample_size": imputer.effective_sample_size(table),
    }


def same_bits(one, other):
    return {name for name in one if one[name].tobytes() == other[name].tobytes()}


@pytest.mark.parametrize("mask", MASKS)
class TestSeed:
    def test_the_same_seed_gives_the_same_bits(self, quick, fitted, numbers, mask):
        one = results(fitted(mask), numbers)
        other = results(quick(mask).fit(numbers), numbers)
        assert same_bits(one, other) == set(one)

    def test_other_seeds_differ(self, quick, fitted, numbers, mask):
        one = results(fitted(mask), numbers)
        other = results(quick(mask, random_state=6).fit(numbers), numbers)
        assert same_bits(one, other) <= {"predict_set"}

    def test_asking_again_gives_the_same_bits(self, fitted, numbers, mask):
        imputer = fitted(mask)
        one = results(imputer, numbers)
        imputer.sample(numbers, n=2, random_state=9)
        assert same_bits(one, results(imputer, numbers)) == set(one)


class TestRandomState:
    def test_no_seed_draws_one(self, quick, numbers):
        one, other = quick(random_state=None).fit(numbers), quick(random_state=None).fit(numbers)
        assert one.transform(numbers).tobytes() != other.transform(numbers).tobytes()
        assert one.transform(numbers).tobytes() == one.transform(numbers).tobytes()

    def test_a_random_state_moves_on(self, quick, numbers):
        state = np.random.RandomState(0)
        imputer = quick(random_state=state)
        one = imputer.fit(numbers).transform(numbers)
        other = imputer.fit(numbers).transform(numbers)
        assert one.tobytes() != other.tobytes()

    def test_global_random_numbers_are_neither_used_nor_moved(self, quick, numbers):
        torch.manual_seed(1)
        before = torch.get_rng_state(), np.random.get_state()[1].tobytes()  # noqa: NPY002
        one = results(quick().fit(numbers), numbers)
        assert bool((torch.get_rng_state() == before[0]).all())
        assert np.random.get_state()[1].tobytes() == before[1]  # noqa: NPY002
        torch.manual_seed(2)
        assert same_bits(one, results(quick().fit(numbers), numbers)) == set(one)

    def test_torch_is_left_as_it_was(self, quick, numbers):
        def state():
            return (
                torch.get_num_threads(),
                torch.get_default_dtype(),
                torch.is_grad_enabled(),
                torch.are_deterministic_algorithms_enabled(),
            )

        before = state()
        results(quick().fit(numbers), numbers)
        assert state() == before


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("mask", MASKS)
class TestRows:
    def test_rows_one_by_one(self, fitted, numbers, mask, n_members):
        imputer = fitted(mask, n_members=n_members)
        together = results(imputer, numbers)
        for name in ("transform", "predict_set_proba", "score_samples", "effective_sample_size"):
            method = getattr(imputer, name)
            alone = np.concatenate([method(numbers[i : i + 1]) for i in range(8)])
            np.testing.assert_allclose(alone, together[name][:8], rtol=1e-4, atol=1e-5)

    def test_permuted_rows(self, fitted, numbers, mask, n_members):
        imputer = fitted(mask, n_members=n_members)
        order = np.random.default_rng(1).permutation(len(numbers))
        one, other = results(imputer, numbers), results(imputer, numbers[order])
        for name in ("transform", "predict_set_proba", "score_samples", "effective_sample_size"):
            np.testing.assert_allclose(other[name], one[name][order], rtol=1e-4, atol=1e-5)


class TestSample:
    @pytest.mark.parametrize("mask", MASKS)
    def test_two_identical_rows_get_draws_of_their_own(self, fitted, mask):
        imputer = fitted(mask)
        twins = np.array([[0.5, np.nan, np.nan, 0.1]] * 2)
        for drawn in imputer.sample(twins, n=3):
            assert (drawn[0, 1:3] != drawn[1, 1:3]).all()
        first, second = imputer.sample(twins, n=2)
        assert (first[:, 1:3] != second[:, 1:3]).all()

    def test_the_same_random_state_gives_the_same_draws(self, fitted, numbers):
        imputer = fitted()
        one, other = (np.stack(imputer.sample(numbers, 3, random_state=4)) for _ in range(2))
        assert one.tobytes() == other.tobytes()
        third = np.stack(imputer.sample(numbers, 3, random_state=5))
        assert one.tobytes() != third.tobytes()
        assert third.tobytes() != np.stack(imputer.sample(numbers, 3)).tobytes()

    def test_a_random_state_object(self, fitted, numbers):
        imputer = fitted()
        one = imputer.sample(numbers, 1, random_state=np.random.RandomState(4))[0]
        assert one.tobytes() == imputer.sample(numbers, 1, random_state=4)[0].tobytes()

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
            for net in imputer.model_.p_x.nets:
                net.last.bias += 1000 * torch.arange(3.0)[:, None, None]
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
            for net in imputer.model_.p_x.nets:
                net.last.bias[1] += 1000.0
        moved = imputer.transform(numbers)[holes] - before
        assert (moved > 100).all()


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("mask", MASKS)
def test_what_the_answers_look_like(fitted, numbers, mask, n_members):
    imputer = fitted(mask, n_members=n_members)
    answers = results(imputer, numbers)
    n = len(numbers)
    proba = answers["predict_set_proba"]
    assert proba.shape == (n, 2)
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(1), 1.0, rtol=0, atol=1e-12)
    assert (answers["predict_set"] == proba.argmax(1)).all()
    assert answers["predict_set"].dtype.kind == "i"
    assert answers["score_samples"].shape == (n,)
    assert imputer.score(numbers) == pytest.approx(answers["score_samples"].mean())
    size = answers["effective_sample_size"]
    assert size.shape == (n,)
    assert ((size > 1 - 1e-5) & (size < imputer.n_draws + 1e-4)).all()
    assert imputer.set_sizes_.shape == (2,)
    assert (np.diff(imputer.set_sizes_) <= 0).all()
    np.testing.assert_allclose(imputer.set_sizes_, proba.mean(0), atol=1e-6)
    assert all(np.isfinite(value).all() for value in answers.values())
