"""The validation error, which stops training."""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.training.data import TrainingData
from psmvae.training.recipe import Trainable


@torch.no_grad()
def validation_error(model: Trainable, data: TrainingData) -> Tensor:
    """Measure the error of the cheap prediction on the validation cells."""
    total = data.x.new_zeros(data.n_members)
    n_cells = torch.zeros_like(total)
    for batch, validation in data.validation_batches():
        total += (model.inputs.error(model.predict(batch), batch.x) * validation).sum((1, 2))
        n_cells += validation.sum((1, 2))
    return (total / n_cells).sqrt()
