"""Data-parallel training equals training in one process."""

import numpy as np
import pytest
import torch

from numeric.shard_process import fit_together, imputers, incomplete_table, weights
from psmvae.nn.noise import Noise
from psmvae.training.shard import ProcessShard, RowNoise


@pytest.fixture(scope="module")
def together(tmp_path_factory, environment):
    """The folder with what two processes found that fitted together."""
    return fit_together(tmp_path_factory.mktemp("shards"), environment, "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("name", imputers())
def test_two_processes_fit_what_one_fits(together, name):
    """Only the rounding of gradients differs."""
    table, imputer = incomplete_table(), imputers()[name]
    imputer.fit(table)
    assert (name == "pretrained") == (getattr(imputer.config_, "pretrain_steps", 0) > 0)
    found = np.load(together / f"{name}-0.npz")
    np.testing.assert_allclose(found["weights"], weights(imputer), rtol=0, atol=1e-4)
    np.testing.assert_allclose(found["imputed"], imputer.transform(table), rtol=0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*imputers(), "timed"])
def test_all_processes_have_the_same_weights(together, name):
    """Also with a time limit, which the clock of the first process decides."""
    first, second = (np.load(together / f"{name}-{rank}.npz")["weights"] for rank in range(2))
    np.testing.assert_array_equal(first, second)


def test_parts_of_the_noise_make_up_the_noise_of_the_batch():
    whole = Noise(0).normal(2, 7, 3)
    parts = [RowNoise(Noise(0), 7, rows).normal(2, rows.stop - rows.start, 3) for rows in PARTS]
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=0, atol=0)


def test_noise_without_rows_is_the_same_in_all_parts():
    first, second = (RowNoise(Noise(0), 7, rows).uniform(2, 1, 5) for rows in PARTS)
    torch.testing.assert_close(first, second, rtol=0, atol=0)


PARTS = (slice(0, 3), slice(3, 7))


def test_a_batch_with_fewer_rows_than_workers_is_refused():
    shard = object.__new__(ProcessShard)
    shard.rank, shard.size = 0, 4
    with pytest.raises(ValueError, match="4 workers cannot share batches of 3 rows"):
        shard.part(3)
