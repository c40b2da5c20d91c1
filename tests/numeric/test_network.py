"""Networks with inputs shared within a row, and the switch of the matrix product library."""

import platform
import threading

import pytest
import torch

from psmvae.nn.architecture import Network
from psmvae.nn.matmul_backend import use_blas
from psmvae.nn.network import MLP
from psmvae.nn.noise import Noise

NETWORKS = [Network.paper(), Network(width=16, depth=2)]


@pytest.mark.parametrize("network", NETWORKS, ids=["plain", "residual"])
@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("n_sets", [0, 4])
def test_inputs_shared_within_a_row_equal_repeated_inputs(network, n_members, n_sets):
    noise = Noise(0)
    net = MLP(
        n_members, 5 + 3, 6, network=network, noise=noise, n_sets=n_sets, set_at="first"
    ).double()
    once = noise.normal(n_members, 7, 5).double()
    z = noise.normal(n_members, 7, 2, max(n_sets, 1), 3).double().requires_grad_(True)
    repeated = torch.cat([once[:, :, None, None].expand(*z.shape[:-1], -1), z], -1)
    weight = noise.normal(*z.shape[:-1], 6).double()
    found, gradients = [], []
    for out in (net(z, once=once), net(repeated)):
        found.append(out)
        sources = [z, *net.parameters()]
        gradients.append(torch.autograd.grad((out * weight).sum(), sources, allow_unused=True))
    torch.testing.assert_close(*found)
    for one, two in zip(*gradients, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.skipif(platform.machine() != "aarch64", reason="no effect on other processors")
def test_use_blas_is_reset_by_the_last_user():
    before = torch.backends.mkldnn.enabled
    entered, leave = threading.Event(), threading.Event()

    def other():
        with use_blas():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with use_blas():
        thread.start()
        assert entered.wait(10)
        assert not torch.backends.mkldnn.enabled
    assert not torch.backends.mkldnn.enabled
    leave.set()
    thread.join()
    assert torch.backends.mkldnn.enabled == before
    with pytest.raises(KeyError), use_blas():
        raise KeyError
    assert torch.backends.mkldnn.enabled == before
