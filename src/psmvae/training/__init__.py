"""Training: the loop, the recipe of each family of models, and the progress it reports."""

from psmvae.training.progress import Progress

__all__ = ["Progress"]
