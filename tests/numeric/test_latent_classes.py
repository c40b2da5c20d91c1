"""Latent classes of masks, on data simulated from known classes."""

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

from psmvae.nn.latent_classes import (
    LatentClasses,
    count_classes,
    fit_latent_classes,
    log_joint,
)
from psmvae.nn.noise import Noise


def test_em_recovers_the_simulated_classes():
    rng = np.random.default_rng(0)
    rate = np.array([[0.1, 0.1, 0.8, 0.7], [0.7, 0.9, 0.05, 0.1]])
    share = np.array([0.7, 0.3])
    r = rng.choice(2, 3000, p=share)
    m = torch.tensor(rng.random((3000, 4)) >= rate[r], dtype=torch.float64)
    found = fit_latent_classes(m, 2, Noise(0))
    order = torch.argsort(-found.share)
    np.testing.assert_allclose(found.share[order].numpy(), share, atol=0.03)
    np.testing.assert_allclose(found.rate[order].numpy(), rate, atol=0.05)


def test_log_joint_is_a_product_of_bernoulli_probabilities():
    rng = np.random.default_rng(0)
    share, rate = np.array([0.4, 0.6]), rng.uniform(0.1, 0.9, (2, 3))
    m = rng.random((5, 3)) < 0.5
    classes = LatentClasses(torch.tensor(share)[None], torch.tensor(rate)[None])
    found = log_joint(classes, torch.tensor(m, dtype=torch.float64)[None])[0]
    for i in range(5):
        for r in range(2):
            probability = np.prod(np.where(m[i], 1 - rate[r], rate[r])) * share[r]
            assert np.isclose(float(found[i, r]), np.log(probability))
    # over all masks and classes the joint sums to one
    every = torch.tensor([[(k >> j) & 1 for j in range(3)] for k in range(8)]).double()
    assert np.isclose(logsumexp(log_joint(classes, every[None]).numpy()), 0.0)


def test_constant_masks_give_finite_classes():
    for m in (torch.ones(20, 3), torch.zeros(20, 3), torch.ones(1, 1)):
        found = fit_latent_classes(m.double(), 4, Noise(0))
        assert bool(found.rate.isfinite().all())
        assert bool((found.share > 0).all())


def masks(kind: str, n: int, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    independent = rng.random((n, 6)) >= np.linspace(0.05, 0.7, 6)
    r = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    m = {
        "independent": independent,
        "one column": np.column_stack([independent[:, 5], np.ones((n, 5), bool)]),
        "never": np.ones((n, 6), bool),
        # two columns that are missing together in one row of twenty
        "rare": np.repeat(rng.random((n, 3)) >= [0.05, 0.0, 0.0], 2, axis=1),
        "three": rng.random((n, 6))
        >= np.array([[0.05] * 6, [0.9] * 3 + [0.1] * 3, [0.1] * 3 + [0.9] * 3])[r],
        "sorted": np.sort(rng.random(n))[:, None] >= np.full(6, 0.3),
    }[kind]
    return torch.tensor(m, dtype=torch.float64)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("kind", "n", "expected"),
    [
        ("independent", 300, 1),
        ("independent", 8000, 1),
        ("one column", 500, 1),
        ("never", 50, 1),
        ("rare", 2000, 2),
        ("three", 2000, 3),
        ("sorted", 8000, 2),
    ],
)
def test_count_classes_finds_the_simulated_number(kind, n, expected, seed):
    assert count_classes(masks(kind, n, seed), 4, Noise(seed)) == expected


def test_count_classes_has_an_upper_limit():
    assert count_classes(masks("three", 2000, 0), 2, Noise(0)) == 2
    assert count_classes(torch.ones(1, 1), 4, Noise(0)) == 1
