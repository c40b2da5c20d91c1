"""On a GPU: whole numbers wrap around as they do on a CPU."""

import pytest
import torch

from psmvae.nn.noise import Noise, told_by_row

pytestmark = pytest.mark.gpu


def test_noise_told_by_rows_has_the_same_bits_on_both_devices(monkeypatch):
    noise = Noise(0)
    cells = noise.normal(2, 300, 5)
    weights, keys = noise.keys(5), noise.keys(2, 1, 1, 3, 4)
    # the streams of both devices differ
    monkeypatch.setattr(Noise, "keys", lambda self, *_: weights.to(self.device))
    here, there = (
        told_by_row(cells.to(device), keys.to(device), Noise(0, device)).cpu()
        for device in ("cpu", "cuda")
    )
    assert torch.equal(here, there)
    assert len(here.unique()) == here.numel()
