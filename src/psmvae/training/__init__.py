"""Training: the loop, its settings and what it reports.

What trains needs PyTorch, and is imported from its own modules; settings and progress need none.
"""

from psmvae.training.settings import Progress, Training

__all__ = ["Progress", "Training"]
