"""Small models with known parameters, in float64."""

from __future__ import annotations

import numpy as np
import torch

from psmvae.kinds import Column
from psmvae.models.dlgm import DLGM
from psmvae.models.gmvae import GMVAE, Settings
from psmvae.models.psmvae import PSMVAE, PSMVAESettings
from psmvae.nn.columns import Layout
from psmvae.nn.mask import mask_model
from psmvae.nn.network import Network
from psmvae.nn.noise import Noise
from psmvae.training import Training

PLAIN = Network(width=8, depth=1, residual=False, linear=False)
RESIDUAL = Network(width=8, depth=2, residual=True, linear=True)
TRAINING = Training(
    max_epochs=4,
    batch_size=20,
    learning_rate=1e-2,
    validation_fraction=0.2,
    patience=10,
    input_mask_rate=0.5,
    beta=1.0,
    average=0.9,
    weight_observed=False,
)


def real_columns(n):
    return [Column(f"x{j}", "real", "Float64", 10) for j in range(n)]


def mixed_columns():
    """Three kinds, not in the model's order."""
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
):
    layout = Layout.of(columns)
    settings = [n_members, n_sets, n_latent, network, mask_model(mask), scale]
    rate = torch.full((len(columns),), missing_rate)
    if model == "psmvae":
        built = PSMVAE(
            layout, PSMVAESettings(*settings, pi=pi, regression=regression), rate, Noise(seed)
        )
    else:
        built = {"gmvae": GMVAE, "dlgm": DLGM}[model](
            layout, Settings(*settings, regression=regression), rate, Noise(seed)
        )
    return built.double()


def linear_gaussian(loading, mean, psi, *, mask="none", n_sets=1, model="psmvae"):
    """A model that is exactly x = mean + loading z + noise, with the exact q(z | x_obs).

    ``loading`` is ``(column, latent)``; no psi may be at the floor of the scale.
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
    """Equal to a peer's or a closed form but for rounding."""
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
