"""Training: the loop, its settings and what it reports."""

from psmvae.training.loop import Progress, Training, TrainingResult, train

__all__ = ["Progress", "Training", "TrainingResult", "train"]
