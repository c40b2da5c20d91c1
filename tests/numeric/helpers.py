"""Small models with known parameters, in float64, shared by the numerical tests."""

from __future__ import annotations

import numpy as np
import torch

from psmvae.kinds import Column
from psmvae.models.config import LatentConfig
from psmvae.models.dlgm import DLGM
from psmvae.models.gmvae import GMVAE
from psmvae.models.psmvae import PSMVAE
from psmvae.nn.architecture import Network
from psmvae.nn.columns import Layout
from psmvae.nn.noise import Noise
from psmvae.nn.settings import mask_model

PLAIN = Network(width=8, depth=1, residual=False, linear=False)
RESIDUAL = Network(width=8, depth=2, residual=True, linear=True)
# Settings of a short training.
TRAINING = {
    "max_epochs": 4,
    "batch_size": 20,
    "learning_rate": 1e-2,
    "validation_fraction": 0.2,
    "patience": 10,
    "input_mask_rate": 0.5,
    "weight_average": 0.9,
}
MODELS = {"psmvae": PSMVAE, "gmvae": GMVAE, "dlgm": DLGM}


def real_columns(n):
    """Numeric columns that are standardised already."""
    return [Column(f"x{j}", "real", "Float64", 10) for j in range(n)]


def mixed_columns():
    """Numeric, binary and categorical columns, not in the model's order."""
    return [
        Column("colour", "categorical", "String", 10, levels=("a", "b", "c")),
        Column("height", "real", "Float64", 10),
        Column("smoker", "binary", "String", 10, levels=("no", "yes")),
        Column("visits", "integer", "Int64", 10, center=2.0, scale=1.5),
    ]


def make(
    columns,
    *,
    model="psmvae",
    mask="latent",
    n_sets=3,
    n_latent=2,
    network=PLAIN,
    scale="learned",
    pi=0.5,
    n_members=2,
    missing_rate=0.3,
    seed=0,
    regression=None,
    **options,
):
    """An untrained model with random weights."""
    config = LatentConfig(
        n_members=n_members,
        n_sets=n_sets,
        n_latent=n_latent,
        network=network,
        mask_model=mask_model(mask),
        scale=scale,
        pi=pi,
        regression=regression,
        **TRAINING | options,
    )
    rate = torch.full((len(columns),), missing_rate)
    return MODELS[model](Layout.of(columns), config, rate, Noise(seed)).double()


def linear_gaussian(loading, mean, psi, *, mask="none", n_sets=1, model="psmvae"):
    """A model of x = mean + loading z + noise with the exact posterior as q(z | x_obs).

    ``loading`` is ``(column, latent)``. psi must be above the smallest scale.
    """
    loading, mean, psi = (torch.as_tensor(v, dtype=torch.float64) for v in (loading, mean, psi))
    n_columns, n_latent = loading.shape
    model = make(
        real_columns(n_columns),
        model=model,
        mask=mask,
        n_sets=n_sets,
        n_latent=n_latent,
        network=RESIDUAL,
        n_members=1,
    )
    with torch.no_grad():
        model.p_z.mean.zero_()
        model.p_x.start_linear(mean[None], loading.T[None], psi.sqrt()[None])
        for name, value in (("mean", mean), ("loading", loading), ("psi", psi)):
            getattr(model.q_z.linear, name).copy_(value[None])
    return model


def same(found, expected):
    """Assert equality with a closed form up to rounding."""
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
