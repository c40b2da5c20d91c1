"""Training: the loop, its settings and what it reports.

What trains needs PyTorch, and is loaded when it is asked for; settings and progress need none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from psmvae.training.settings import Progress, Training

if TYPE_CHECKING:
    from psmvae.training.latent import LatentRecipe
    from psmvae.training.loop import TrainingResult, train

__all__ = ["LatentRecipe", "Progress", "Training", "TrainingResult", "train"]

_HOME = {
    "LatentRecipe": "psmvae.training.latent",
    "TrainingResult": "psmvae.training.loop",
    "train": "psmvae.training.loop",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOME[name]), name)
