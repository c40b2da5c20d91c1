"""Validation cells, masked cells and bootstrap rows of the training table."""

import pytest
import torch

from numeric.small_psmvae import make_model, make_table, train_model
from psmvae.models.batch import Batch
from psmvae.nn.noise import Noise
from psmvae.training.data import TrainingData
from psmvae.training.latent_recipe import LatentRecipe


def test_validation_cells_are_observed_and_hidden_from_training():
    x, m = make_table()
    data = TrainingData(x, m, 3, 0.2, Noise(0))
    cells = data.validation_mask
    assert bool((m.expand(3, -1, -1)[cells] == 1).all())
    assert float(data.m[cells].max()) == 0.0
    assert float(data.known[cells].max()) == 0.0
    batch = data.batch(torch.arange(10).expand(3, -1), 0.5, Noise(1))
    assert bool((batch.visible <= batch.m).all())


def test_members_have_different_validation_cells():
    x, m = make_table()
    cells = TrainingData(x, m, 2, 0.2, Noise(0)).validation_mask
    assert not bool((cells[0] == cells[1]).all())


def test_validation_cells_can_be_limited_to_the_first_rows():
    x, m = make_table()
    data = TrainingData(x, m, 2, 0.2, Noise(0), validation_rows=20)
    assert bool(data.validation_mask[:, :20].any())
    assert not bool(data.validation_mask[:, 20:].any())
    assert sum(batch.x.shape[1] for batch, _ in data.validation_batches()) == 20


def test_masking_rates_follow_the_missing_rates_of_columns():
    noise = Noise(0)
    x = torch.zeros(2000, 4)
    evenly_missing = (noise.uniform(2000, 4) < 0.8).float()
    one_column_missing = torch.ones(2000, 4)
    one_column_missing[:300, 2] = 0.0
    complete = torch.ones(2000, 4)
    rows = torch.arange(2000).expand(1, -1)
    for m, rates in (
        (evenly_missing, [0.25] * 4),
        (one_column_missing, [0.0, 0.0, 0.5, 0.0]),
        (complete, [0.25] * 4),
    ):
        data = TrainingData(x, m, 1, 0.1, noise)
        column_rates = data.column_mask_rates(0.25)
        assert column_rates.flatten().tolist() == pytest.approx(rates, abs=0.03)
        batch = data.batch(rows, 0.25, noise, column_rates=column_rates)
        masked = 1 - batch.visible.sum((0, 1)) / batch.m.sum((0, 1))
        # half of the rows are masked at the same rate in all columns
        expected = [(rate + 0.25) / 2 for rate in rates]
        assert masked.tolist() == pytest.approx(expected, abs=0.05)


def test_every_column_keeps_a_training_cell():
    m = torch.zeros(50, 1)
    m[7] = 1.0
    for seed in range(20):
        assert float(TrainingData(torch.zeros(50, 1), m, 1, 0.5, Noise(seed)).m.sum()) == 1.0


class TestBootstrap:
    def test_copies_of_a_row_have_the_same_validation_cells(self):
        x, m = make_table()
        plain = TrainingData(x, m, 3, 0.2, Noise(0))
        data = TrainingData(x, m, 3, 0.2, Noise(0), bootstrap=True)
        assert data.bootstrap_rows.shape == (3, len(x))
        assert not bool((data.bootstrap_rows[0] == data.bootstrap_rows[1]).all())
        for e, rows in enumerate(data.bootstrap_rows):
            # a bootstrap sample contains a fraction 1 − 1/e of the rows
            assert len(rows.unique()) / len(x) == pytest.approx(0.632, abs=0.08)
            torch.testing.assert_close(data.x[e], plain.x[0][rows])
            for name in ("m", "known", "validation_mask"):
                assert bool((getattr(data, name)[e] == getattr(plain, name)[e][rows]).all())

    def test_members_with_their_own_tables_draw_rows_of_their_own(self):
        x, m = (torch.stack([each, each.flip(0)]) for each in make_table())
        data = TrainingData(x, m, 2, 0.2, Noise(0), bootstrap=True)
        for e, rows in enumerate(data.bootstrap_rows):
            torch.testing.assert_close(data.x[e], x[e][rows])

    def test_every_column_keeps_a_training_cell(self):
        m = torch.ones(50, 2)
        m[:, 0] = 0.0
        m[7, 0] = 1.0
        data = TrainingData(torch.zeros(50, 2), m, 40, 0.5, Noise(0), bootstrap=True)
        assert bool((data.m.sum(1) > 0).all())
        not_resampled = (data.bootstrap_rows == torch.arange(50)).all(1)
        assert 0.1 < float(not_resampled.float().mean()) < 0.7

    def test_initial_means_vary_over_members_as_sample_means_do(self):
        """The prediction of a row without observed cells is the mean, of variance σ² / n."""
        x, _ = make_table(100)
        m, n_members = torch.ones_like(x), 300
        variances = {}
        for bootstrap in (True, False):
            model = make_model(n_members)
            data = TrainingData(x, m, n_members, 0.0, Noise(1), bootstrap=bootstrap)
            LatentRecipe(model).initialise(data, Noise(0))
            nothing = torch.zeros(n_members, 1, x.shape[1])
            variances[bootstrap] = model.predict(Batch.of(nothing, nothing))[:, 0].detach().var(0)
        expected = x.var(0, correction=0) / 100
        torch.testing.assert_close(variances[True], expected, rtol=0.3, atol=0.0)
        assert float((variances[False] / expected).max()) < 0.05

    def test_latent_classes_are_fitted_to_the_rows_of_each_member(self):
        """The proportions of two mask patterns vary over members as sample proportions do."""
        x, _ = make_table(200)
        m = torch.ones_like(x)
        m[:60, 2:] = 0.0
        model = make_model(100, bootstrap=True, max_epochs=1, learning_rate=1e-12)
        train_model(model, x * m, m, Noise(0))
        proportion = model.p_r().detach().flatten(1).exp().min(1).values
        assert float(proportion.mean()) == pytest.approx(0.3, abs=0.02)
        assert float(proportion.std()) == pytest.approx((0.3 * 0.7 / 200) ** 0.5, rel=0.3)
