"""The training loop: which cells it uses, which weights it keeps, when it stops."""

import pytest
import torch

from numeric.small_psmvae import initialised, make_model, make_table, train_model
from psmvae.nn.noise import Noise
from psmvae.training.data import TrainingData
from psmvae.training.latent_recipe import LatentRecipe
from psmvae.training.loop import train
from psmvae.training.stopping import EarlyStopping, TimeBudget, validation_error


def test_values_of_validation_cells_do_not_affect_the_weights():
    x, m = make_table()
    cells = TrainingData(x, m, 1, 0.2, Noise(3)).validation_mask[0]
    changed = torch.where(cells, x + 1.0, x)
    weights = []
    for values in (x, changed):
        model = make_model(1, validation_fraction=0.2, patience=1000)
        # the weights of the last epoch: the choice of the best ones does depend on the error
        last = []
        train_model(
            model,
            values,
            m,
            Noise(3),
            lambda _, model=model, last=last: last.append(
                torch.cat([p.detach().flatten() for p in model.parameters()])
            ),
        )
        weights.append(last[-1])
    torch.testing.assert_close(weights[0], weights[1])


@pytest.mark.parametrize("mask", ["latent", "logistic-ceiling"])
def test_the_weights_with_the_lowest_validation_error_are_restored(mask):
    x, m = make_table()
    model = make_model(mask=mask)
    reported = []
    result = train_model(model, x, m, Noise(1), reported.append)
    phases = [(progress.phase, progress.epoch) for progress in reported]
    assert phases == [("training", epoch) for epoch in (1, 2, 3, 4)]
    data = TrainingData(x, m, 2, model.config.validation_fraction, Noise(1))
    error = validation_error(model, data)
    assert float(error.mean()) == pytest.approx(result.history[-1].best_validation_error, rel=1e-4)
    assert error.tolist() == pytest.approx(result.best, rel=1e-4)


def test_training_does_not_raise_the_validation_error_of_its_start():
    model, data = initialised(1)
    before = float(validation_error(model, data))
    x, m = make_table(400)
    trained = make_model(1, max_epochs=15)
    result = train_model(trained, x, m, Noise(0))
    assert result.best[0] <= before
    assert result.best[0] == min(p.best_validation_error for p in result.history)


def test_without_validation_cells_training_runs_all_epochs():
    x, m = make_table()
    result = train_model(make_model(validation_fraction=0.0), x, m, Noise(0))
    assert len(result.history) == 4
    assert result.history[-1].validation_error is None
    assert result.best == []


def test_max_time_stops_training():
    x, m = make_table()
    result = train_model(make_model(max_epochs=10**6, max_time=0.2), x, m, Noise(0))
    assert 0 < len(result.history) < 10**6
    assert not result.interrupted


def test_training_leaves_the_reserved_seconds():
    x, m = make_table()
    model = make_model(max_epochs=10**6, max_time=10**6)
    result = train(LatentRecipe(model), x, m, model.config, Noise(0), reserve=10.0**6)
    assert result.timed_out
    assert len(result.history) == 1


def test_training_leaves_the_global_random_state_of_torch_alone():
    before = torch.get_rng_state()
    x, m = make_table()
    train_model(make_model(), x, m, Noise(0))
    assert bool((torch.get_rng_state() == before).all())


class TestEarlyStopping:
    def stopping(self, *, separate, patience=2):
        stopping = EarlyStopping(2, patience, torch.device("cpu"), separate=separate)
        stopping.best_error = torch.tensor([1.0, 1.0])
        return stopping

    def update(self, stopping, *errors, keep_pretrained=True):
        return stopping.update(torch.tensor(errors), keep_pretrained=keep_pretrained).tolist()

    def test_each_member_keeps_its_lowest_error(self):
        stopping = self.stopping(separate=False)
        assert self.update(stopping, 0.5, 2.0) == [True, False]
        assert stopping.best_error.tolist() == [0.5, 1.0]

    def test_training_stops_when_no_member_has_improved_for_patience_epochs(self):
        stopping = self.stopping(separate=False)
        self.update(stopping, 0.5, 2.0)
        self.update(stopping, 0.6, 2.0)
        assert not stopping.stopped
        self.update(stopping, 0.6, 2.0)
        assert stopping.stopped

    @pytest.mark.parametrize("separate", [True, False])
    def test_a_member_with_its_own_table_does_not_improve_after_it_has_stopped(self, separate):
        stopping = self.stopping(separate=separate)
        for error in (0.9, 0.8):
            self.update(stopping, error, 2.0)
        assert self.update(stopping, 0.7, 0.5) == [True, not separate]

    def test_weights_of_pretrained_members_are_kept_whatever_their_error(self):
        stopping = self.stopping(separate=False)
        stopping.pretrained = torch.tensor([True, False])
        assert self.update(stopping, 5.0, 5.0) == [True, False]
        assert self.update(stopping, 0.1, 0.1, keep_pretrained=False) == [False, True]


class TestTimeBudget:
    def test_no_limit_is_never_exceeded(self):
        budget = TimeBudget(None, torch.device("cpu"), began=-1e9)
        assert not budget.exceeded
        assert budget.fraction_used(budget.now(), 0.5) == 0.0
        assert budget.limited(12.0) == 12.0

    def test_reserved_time_ends_the_steps_earlier(self):
        budget = TimeBudget(1000.0, torch.device("cpu"))
        assert not budget.exceeded
        budget.reserve = 1001.0
        assert budget.exceeded

    def test_a_phase_uses_its_share_of_the_time_that_is_not_reserved(self):
        budget = TimeBudget(100.0, torch.device("cpu"))
        budget.reserve = 20.0
        # 0.5 (100 − 20) s after the start of the fit
        budget.began -= 20.0
        assert budget.fraction_used(budget.began, 0.5) == pytest.approx(0.5, abs=0.01)
        assert budget.limited(None) is None
        assert budget.limited(1e6) == pytest.approx(80.0, abs=1.0)
