"""Training: the loop, its settings and what it reports."""

from psmvae.training.latent import LatentRecipe
from psmvae.training.loop import Progress, TrainingResult, train
from psmvae.training.settings import Training

__all__ = ["LatentRecipe", "Progress", "Training", "TrainingResult", "train"]
