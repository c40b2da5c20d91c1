"""The interface of mask models p(m | x, z, r): m_j = 1 if cell j is observed, 0 if missing.

Any object with a method ``build(shape, noise)`` that returns a `MaskModule` is a mask model; see
`psmvae.nn.settings.MaskModel`. The built-in modules are in `psmvae.nn.mask_modules`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from psmvae.nn.architecture import Network
from psmvae.nn.columns import Columns, Logistic

__all__ = ["MaskModule", "MaskShape"]


@dataclass(frozen=True)
class MaskShape:
    """Properties of the table and of the full model from which a mask model is built.

    Parameters
    ----------
    n_members : int
        Number of members of the ensemble.
    n_sets : int
        Number of pattern sets, the values of r.
    n_latent : int
        Dimension of z.
    columns : psmvae.nn.columns.Columns
        The columns in the model's order, with their features.
    names : tuple of str
        Names of the columns in the model's order.
    missing_rate : Tensor of shape (column,)
        Fraction of missing cells of each column.
    network : Network
        Architecture for a network of the mask model.

    Examples
    --------
    >>> import torch
    >>> from psmvae import LatentMask, Network
    >>> from psmvae.kinds import Column
    >>> from psmvae.nn.columns import Columns, Layout
    >>> from psmvae.nn.mask import MaskShape
    >>> from psmvae.nn.noise import Noise
    >>> layout = Layout.of([Column("age", "real", "Float64", 10)])
    >>> shape = MaskShape(
    ...     n_members=1,
    ...     n_sets=2,
    ...     n_latent=3,
    ...     columns=Columns(layout, n_members=1, scale="learned"),
    ...     names=("age",),
    ...     missing_rate=torch.tensor([0.2]),
    ...     network=Network(width=8),
    ... )
    >>> module = LatentMask().build(shape, Noise(0))
    >>> log_missing, log_observed = module(None, torch.zeros(1, 4, 1, 2, 3), slice(0, 1))
    >>> log_missing.shape
    torch.Size([1, 4, 1, 2, 1])
    """

    n_members: int
    n_sets: int
    n_latent: int
    columns: Columns
    names: tuple[str, ...]
    missing_rate: Tensor
    network: Network


class MaskModule(nn.Module):
    """Base class of the module that a mask model trains.

    A subclass must define `forward`. The first axis of each of its parameters must be the member.
    All other attributes and methods have defaults, which are those of a mask that depends on (z, r)
    only.

    Attributes
    ----------
    depends_on_x : bool, default=False
        Whether m_j depends on x_j. Missing x_j are then integrated out by quadrature, unless
        ``draws_x`` or ``joint`` is True.
    joint : bool, default=False
        Whether m_j depends on the values of other columns too. Missing values are then drawn, and
        ``x`` in `forward` has one value for each cell.
    draws_x : bool, default=False
        Whether training uses a draw of each missing x_j instead of quadrature.
    tilts : bool, default=True
        Whether imputations are drawn from p(x_j | z, r) · p(m_j missing | x_j, ·). Without effect
        if ``depends_on_x`` is False.
    as_input : bool, default=True
        Whether the encoders also have the mask as input.
    train_jointly : bool, default=False
        Whether p(x | z, r) is trained together with the mask model from the start. Without effect
        if ``depends_on_x`` is False.
    takes_sets : bool, default=False
        Whether `log_prob` accepts ``sets``. Imputation then omits sets with a negligible posterior
        probability. Without effect if ``depends_on_x`` is True.

    Examples
    --------
    A mask that depends on z and is the same in all sets:

    >>> import torch
    >>> from torch import nn
    >>> from torch.nn.functional import logsigmoid
    >>> from psmvae import PSMVAEImputer
    >>> from psmvae.nn.mask import MaskModule
    >>> class LogisticInZ(MaskModule):
    ...     def __init__(self, shape, noise):
    ...         super().__init__()
    ...         size = (shape.n_members, shape.n_latent, len(shape.names))
    ...         self.weight = nn.Parameter(0.1 * noise.normal(*size))
    ...
    ...     def forward(self, x, z, at):
    ...         logits = (z @ self.weight[:, None, None])[..., at]
    ...         return logsigmoid(logits), logsigmoid(-logits)
    >>> class LogisticMask:
    ...     def build(self, shape, noise):
    ...         return LogisticInZ(shape, noise)
    >>> imputer = PSMVAEImputer(LogisticMask(), max_epochs=1)
    >>> filled = imputer.fit_transform([[1.0, 2.0], [3.0, None], [None, 1.0], [4.0, 2.0]])
    """

    depends_on_x: bool = False
    joint: bool = False
    draws_x: bool = False
    tilts: bool = True
    as_input: bool = True
    train_jointly: bool = False
    takes_sets: bool = False

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Compute log p(m_j missing | ·) and log p(m_j observed | ·) of the columns ``at``.

        Parameters
        ----------
        x : Tensor or None
            None if ``depends_on_x`` is False. Otherwise ``(member, row, draw, set, column, node)``,
            values of x_j, or ``(member, row, draw, set, column)`` for all columns if ``joint`` is
            True. Axes may have size one.
        z : Tensor of shape (member, row, draw, set, latent)
            Latent variables.
        at : slice
            The columns. They are of one kind, unless ``depends_on_x`` is False or ``joint`` is
            True, where these are all columns.

        Returns
        -------
        log_missing, log_observed : Tensor
            ``(member, row, draw, set, column)``, with a last axis ``node`` if ``x`` has it.
        """
        raise NotImplementedError

    def log_prob(self, m: Tensor, z: Tensor, sets: Tensor | None = None) -> Tensor:
        """Compute log p(m_j | z, r) of all columns, for a mask that does not depend on x.

        Override it where this is cheaper than both outputs of `forward`, or to support ``sets``.

        Parameters
        ----------
        m : Tensor of shape (member, row, 1, 1, column)
            The mask.
        z : Tensor of shape (member, row, draw, set, latent)
            Latent variables.
        sets : Tensor of shape (row,), optional
            One set for each row; the set axis of ``z`` then has size one. Passed only if
            ``takes_sets`` is True.

        Returns
        -------
        Tensor of shape (member, row, draw, set, column)
            Log probabilities.
        """
        if sets is not None:
            raise NotImplementedError("A mask module with takes_sets=True must define log_prob.")
        log_missing, log_observed = self(None, z, slice(0, m.shape[-1]))
        return torch.where(m > 0, log_observed, log_missing)

    def logistics(self, at: slice) -> Logistic | None:
        """Return p(m_j missing | x_j, r) as a logistic function of x_j.

        Override it where it applies: a normal x_j is then integrated out faster.

        Parameters
        ----------
        at : slice
            Columns of one kind.

        Returns
        -------
        psmvae.nn.columns.Logistic or None
            The logistic function, or None if there is none.
        """
        del at
        return None

    def start(self, rate: Tensor) -> None:
        """Set initial parameters before training. The default leaves them unchanged.

        Parameters
        ----------
        rate : Tensor of shape (member, set, column)
            Missing rate of each column in each set, from a latent class analysis of the masks.
        """


def check_mask_module(module: object, n_members: int) -> None:
    """Raise an error if a user's mask model built something that cannot be trained."""
    if not isinstance(module, MaskModule):
        raise TypeError(
            f"mask_model must build a psmvae.nn.mask.MaskModule, got {type(module).__name__}."
        )
    for name, parameter in module.named_parameters():
        if parameter.requires_grad and parameter.shape[:1] != (n_members,):
            raise ValueError(
                f"mask_model has a parameter {name} of shape {tuple(parameter.shape)}; the first "
                f"axis of each must be the members, here {n_members}."
            )
