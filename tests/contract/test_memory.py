"""Tables whose model would not fit into memory are refused before training."""

import numpy as np
import pytest
import torch

from contract.registry import IMPUTERS
from psmvae.imputers import memory


@pytest.mark.parametrize("name", ["PSMVAE", "GAIN"])
def test_refused_before_training(numbers, monkeypatch, name):
    monkeypatch.setattr("psmvae.imputers.deep.MANY_COLUMNS", 1)
    monkeypatch.setattr(memory, "available_memory", lambda device: 1000)
    imputer = IMPUTERS[name](device="cpu")
    monkeypatch.setattr(type(imputer), "_build", None)
    with pytest.raises(ValueError, match=r"training with 4 columns needs .* GiB .* select columns"):
        imputer.fit(numbers)


def test_the_count_is_that_of_the_model(numbers, monkeypatch):
    monkeypatch.setattr("psmvae.imputers.deep.MANY_COLUMNS", 1)
    imputer = IMPUTERS["PSMVAE"](device="cpu").fit(numbers)
    assert imputer._n_parameters() == sum(t.numel() for t in imputer.model_.state_dict().values())


def test_available_memory():
    found = memory.available_memory(torch.device("cpu"))
    assert found is None or found > 2**20
    memory.check_memory(0, 3, torch.device("cpu"))
    with pytest.raises(ValueError, match="MeanImputer"):
        memory.check_memory(np.iinfo(np.int64).max, 3, torch.device("cpu"))
