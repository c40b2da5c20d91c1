"""A small PSMVAE and a small table, for the tests of training."""

import torch

from psmvae.kinds import Column
from psmvae.models.config import LatentConfig
from psmvae.models.psmvae import PSMVAE
from psmvae.nn.architecture import Network
from psmvae.nn.columns import Layout
from psmvae.nn.noise import Noise
from psmvae.nn.settings import mask_model
from psmvae.training.data import TrainingData
from psmvae.training.latent_recipe import LatentRecipe
from psmvae.training.loop import train

N_COLUMNS = 4


def make_table(n_rows=60, seed=0):
    """Correlated standard columns and a mask with 20 % missing."""
    generator = torch.Generator().manual_seed(seed)
    common = torch.randn(n_rows, 1, generator=generator)
    x = common + 0.3 * torch.randn(n_rows, N_COLUMNS, generator=generator)
    m = (torch.rand(n_rows, N_COLUMNS, generator=generator) < 0.8).float()
    return x * m, m


def make_model(n_members=2, mask="latent", **config):
    """An untrained model with a linear start."""
    fields = {
        "network": Network(width=8, depth=2, residual=True, linear=True),
        "n_sets": 2,
        "n_latent": 2,
        "mask_model": mask_model(mask),
        "max_epochs": 4,
        "batch_size": 20,
        "learning_rate": 1e-2,
        "validation_fraction": 0.2,
        "patience": 10,
        "input_mask_rate": 0.5,
        "weight_average": 0.9,
    }
    settings = LatentConfig(n_members=n_members, **(fields | config))
    columns = [Column(f"x{j}", "real", "Float64", 10) for j in range(N_COLUMNS)]
    return PSMVAE(Layout.of(columns), settings, torch.full((N_COLUMNS,), 0.2), Noise(0))


def train_model(model, x, m, noise, callback=None):
    """Train a model by its own configuration."""
    return train(LatentRecipe(model), x, m, model.config, noise, callback)


def initialised(n_members):
    """A model with initial weights from factor analysis, and the data they were fitted to."""
    model = make_model(n_members)
    data = TrainingData(*make_table(400), n_members, 0.2, Noise(0))
    LatentRecipe(model).initialise(data, Noise(0))
    return model, data
