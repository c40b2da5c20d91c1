"""Early stopping by the validation error of each member."""

from __future__ import annotations

import torch
from torch import Tensor

# Relative reduction of the validation error that counts as an improvement.
MIN_RELATIVE_GAIN = 1e-4


class EarlyStopping:
    """The lowest validation error of each member, and the epochs since it improved.

    Parameters
    ----------
    n_members : int
        Members of the model.
    patience : int
        Epochs without an improvement before a member stops.
    device : torch.device
        Where errors are measured.
    separate : bool
        Whether each member has a table of its own. A member that has stopped then keeps its
        weights, as if it were trained alone. Members of one table stop together.

    Attributes
    ----------
    best_error : Tensor
        Lowest validation error of each member, ``(member,)``.
    pretrained : Tensor
        Members whose validation error is determined by pre-training, ``(member,)``.
    """

    def __init__(
        self, n_members: int, patience: int, device: torch.device, *, separate: bool
    ) -> None:
        self.patience, self.separate = patience, separate
        self.best_error = torch.full((n_members,), torch.inf, device=device)
        self.pretrained = torch.zeros_like(self.best_error, dtype=torch.bool)
        self.epochs_since_best = torch.zeros_like(self.best_error)

    def update(self, error: Tensor, *, keep_pretrained: bool) -> Tensor:
        """Compare the error after an epoch with the lowest one."""
        lower = error < self.best_error * (1 - MIN_RELATIVE_GAIN)
        improved = torch.where(self.pretrained, keep_pretrained, lower)
        if self.separate:
            improved = improved & (self.epochs_since_best < self.patience)
        self.best_error = torch.where(improved, error, self.best_error)
        self.epochs_since_best = torch.where(improved, 0.0, self.epochs_since_best + 1)
        return improved

    @property
    def stopped(self) -> bool:
        """Whether no member has improved for ``patience`` epochs."""
        return bool((self.epochs_since_best >= self.patience).all())
