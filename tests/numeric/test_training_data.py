"""Validation cells, masked cells and bootstrap rows of the training table."""

import pytest
import torch

from numeric.small_psmvae import make_table
from psmvae.nn.noise import Noise
from psmvae.training.data import TrainingData


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
