"""Classes of masks, against data made from known classes."""

import numpy as np
import torch
from scipy.special import logsumexp

from psmvae.nn.latent_classes import LatentClasses, fit_latent_classes, log_joint
from psmvae.nn.noise import Noise


def test_the_classes_behind_the_masks_are_found():
    rng = np.random.default_rng(0)
    rate = np.array([[0.1, 0.1, 0.8, 0.7], [0.7, 0.9, 0.05, 0.1]])
    share = np.array([0.7, 0.3])
    r = rng.choice(2, 3000, p=share)
    m = torch.tensor(rng.random((3000, 4)) >= rate[r], dtype=torch.float64)
    found = fit_latent_classes(m, 2, Noise(0))
    order = torch.argsort(-found.share)
    np.testing.assert_allclose(found.share[order].numpy(), share, atol=0.03)
    np.testing.assert_allclose(found.rate[order].numpy(), rate, atol=0.05)


def test_log_joint_is_bernoulli():
    rng = np.random.default_rng(0)
    share, rate = np.array([0.4, 0.6]), rng.uniform(0.1, 0.9, (2, 3))
    m = rng.random((5, 3)) < 0.5
    classes = LatentClasses(torch.tensor(share)[None], torch.tensor(rate)[None])
    found = log_joint(classes, torch.tensor(m, dtype=torch.float64)[None])[0]
    for i in range(5):
        for r in range(2):
            chance = np.prod(np.where(m[i], 1 - rate[r], rate[r])) * share[r]
            assert np.isclose(float(found[i, r]), np.log(chance))
    # over all masks and classes the joint sums to one
    every = torch.tensor([[(k >> j) & 1 for j in range(3)] for k in range(8)]).double()
    assert np.isclose(logsumexp(log_joint(classes, every[None]).numpy()), 0.0)


def test_masks_without_holes_or_without_patterns_do_no_harm():
    for m in (torch.ones(20, 3), torch.zeros(20, 3), torch.ones(1, 1)):
        found = fit_latent_classes(m.double(), 4, Noise(0))
        assert bool(found.rate.isfinite().all())
        assert bool((found.share > 0).all())
