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


def test_tables_of_few_columns_are_not_checked(numbers, monkeypatch):
    monkeypatch.setattr("psmvae.imputers.deep.check_memory", None)
    IMPUTERS["GAIN"](device="cpu").fit(numbers)


def test_memory_that_pytorch_keeps_is_available(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 9000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 700)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 200)
    assert memory.available_memory(torch.device("cuda")) == 1500


def test_the_count_is_that_of_the_model(numbers):
    imputer = IMPUTERS["PSMVAE"](device="cpu").fit(numbers)
    assert imputer._n_parameters() == sum(t.numel() for t in imputer.model_.state_dict().values())


def test_available_memory():
    found = memory.available_memory(torch.device("cpu"))
    assert found is None or found > 2**20
    memory.check_memory(0, 3, torch.device("cpu"))
    with pytest.raises(ValueError, match="MeanImputer"):
        memory.check_memory(np.iinfo(np.int64).max, 3, torch.device("cpu"))
