"""On a GPU: integer overflow wraps around as on a CPU."""

import pytest
import torch

from psmvae.nn.noise import Noise, hash_uniform

pytestmark = pytest.mark.gpu


def test_hashed_noise_is_identical_on_both_devices(monkeypatch):
    noise = Noise(0)
    cells = noise.normal(2, 300, 5)
    multipliers, keys = noise.keys(5), noise.keys(2, 1, 1, 3, 4)
    # generators of the two devices differ, so the keys are fixed
    monkeypatch.setattr(Noise, "keys", lambda self, *_: multipliers.to(self.device))
    on_cpu, on_gpu = (
        hash_uniform(cells.to(device), keys.to(device), Noise(0, device)).cpu()
        for device in ("cpu", "cuda")
    )
    assert torch.equal(on_cpu, on_gpu)
    assert len(on_cpu.unique()) == on_cpu.numel()
