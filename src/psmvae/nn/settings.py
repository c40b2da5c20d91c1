"""Settings of the networks and of the mask models, read without PyTorch.

A mask model is a settings object with one method, `MaskModel.build`, which makes the module that is
trained. PyTorch is imported when a module is built, so an imputer can be made without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from psmvae.nn.architecture import Network

if TYPE_CHECKING:
    from psmvae.nn.mask import MaskModule, MaskShape
    from psmvae.nn.noise import Noise

__all__ = [
    "MASK_MODELS",
    "JointMask",
    "LatentMask",
    "MaskModel",
    "Network",
    "NoMask",
    "SelfMask",
    "mask_model",
]

Integrate = Literal["quadrature", "draw"]


@runtime_checkable
class MaskModel(Protocol):
    """Settings of a mask model p(m | x, z, r): any object with this ``build`` method.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from torch.nn.functional import logsigmoid
    >>> from psmvae.nn.mask import MaskModule
    >>> from psmvae.nn.settings import MaskModel
    >>> class ConstantRate(MaskModule):
    ...     # each column is missing at a rate of its own, whatever z and r are
    ...     def __init__(self, shape):
    ...         super().__init__()
    ...         size = (shape.n_members, 1, 1, 1, len(shape.names))
    ...         self.logits = nn.Parameter(torch.zeros(size))
    ...
    ...     def forward(self, x, z, at):
    ...         logits = self.logits[..., at].expand(*z.shape[:-1], -1)
    ...         return logsigmoid(logits), logsigmoid(-logits)
    >>> class ConstantRateMask:
    ...     def build(self, shape, noise):
    ...         return ConstantRate(shape)
    >>> isinstance(ConstantRateMask(), MaskModel)
    True
    """

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """Make the module that is trained.

        Parameters
        ----------
        shape : psmvae.nn.mask.MaskShape
            Sizes of the model and names of the columns.
        noise : psmvae.nn.noise.Noise
            Random numbers for initial weights.

        Returns
        -------
        psmvae.nn.mask.MaskModule
            A module. The first axis of each of its parameters is the member.
        """
        ...


@dataclass(frozen=True)
class NoMask:
    """No mask model, and no mask as encoder input: the paper's "w/o M".

    This assumes that the missingness is ignorable.

    Examples
    --------
    >>> from psmvae import NoMask, PSMVAEImputer
    >>> PSMVAEImputer(NoMask()).mask_model
    NoMask()
    """

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """Make a module with log p(m) = 0.

        Parameters
        ----------
        shape : psmvae.nn.mask.MaskShape
            Not used.
        noise : psmvae.nn.noise.Noise
            Not used.

        Returns
        -------
        psmvae.nn.mask.MaskModule
            A module without parameters.
        """
        from psmvae.nn.no_mask import NoMaskModule

        del shape, noise
        return NoMaskModule()


@dataclass(frozen=True)
class LatentMask:
    """p(m_j | z, r), the paper's model (b): a shared-parameter model.

    Examples
    --------
    >>> from psmvae import LatentMask, PSMVAEImputer
    >>> PSMVAEImputer(LatentMask()).mask_model
    LatentMask()
    """

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """Make a network from z and r to the logits of the mask.

        Parameters
        ----------
        shape : psmvae.nn.mask.MaskShape
            Sizes of the model.
        noise : psmvae.nn.noise.Noise
            Random numbers for initial weights.

        Returns
        -------
        psmvae.nn.mask.MaskModule
            The network.
        """
        from psmvae.nn.latent_mask import LatentMaskModule

        return LatentMaskModule(shape, noise)


@dataclass(frozen=True)
class SelfMask:
    """p(m_j missing | x_j, r) = c_rj · sigmoid(w_rj · x_j + b_rj), the paper's model (a).

    Parameters
    ----------
    columns : sequence of str, optional
        Columns whose missingness depends on their own value. The other columns have a constant
        missing rate in each set. Default: all columns.
    ceiling : bool, default=True
        Learn c, the largest probability of being missing. Otherwise c = 1, the plain logistic model
        of the paper.
    integrate : {"quadrature", "draw"}, default="quadrature"
        How a missing x_j is integrated out of the training objective: by quadrature, or by one draw
        from q(x_mis | ·) as in the paper (from p(x | z, r) in models without q(x_mis | ·)).
        Imputation always uses quadrature.
    train_jointly : bool, optional
        Train p(x | z, r) and the mask model together from the start, as in a selection model. This
        also corrects the relations between columns for the selection, but skewed residuals are
        mistaken for selection, so it relies on normal residuals. Otherwise the mask model is first
        fitted with p(x | z, r) fixed at its fit to the observed cells, which corrects less and is
        more robust. Default: True if ``columns`` is given, otherwise False.
    sign : {"high", "low"}, optional
        Sign of w, if it is known: "high" if large values are missing more often, "low" if small
        ones are. Applies to numeric columns only. Default: unknown.
    tilt : bool, default=True
        Impute from p(x_mis | z, r) · p(m_j missing | x_j, r), as Bayes' rule gives. Otherwise
        impute from p(x_mis | z, r), the paper's rule.

    Examples
    --------
    >>> from psmvae import SelfMask
    >>> SelfMask(columns=["income"], sign="high").columns
    ('income',)
    """

    columns: Sequence[str] | None = None
    ceiling: bool = True
    integrate: Integrate = "quadrature"
    train_jointly: bool | None = None
    sign: Literal["high", "low"] | None = None
    tilt: bool = True

    def __post_init__(self) -> None:
        """Check the settings."""
        if isinstance(self.columns, str):
            raise TypeError(
                f"SelfMask needs a list of column names, got the string {self.columns!r}; "
                f"did you mean [{self.columns!r}]?"
            )
        if self.columns is not None and not isinstance(self.columns, Iterable):
            raise TypeError(f"SelfMask needs a list of column names, got {self.columns!r}.")
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))
        if self.integrate not in ("quadrature", "draw"):
            raise ValueError(
                f"SelfMask needs integrate to be 'quadrature' or 'draw', got {self.integrate!r}."
            )
        if not isinstance(self.tilt, bool):
            raise TypeError(f"SelfMask needs tilt to be True or False, got {self.tilt!r}.")
        if self.sign not in (None, "high", "low"):
            raise ValueError(f"SelfMask needs sign to be 'high' or 'low', got {self.sign!r}.")

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """Make a logistic regression of m_j on x_j for each set and column.

        Parameters
        ----------
        shape : psmvae.nn.mask.MaskShape
            Sizes of the model and names of the columns.
        noise : psmvae.nn.noise.Noise
            Random numbers for initial weights.

        Returns
        -------
        psmvae.nn.mask.MaskModule
            The logistic regressions.
        """
        from psmvae.nn.self_mask import SelfMaskModule

        unknown = set(self.columns or ()) - set(shape.names)
        if unknown:
            raise ValueError(
                f"SelfMask names columns that are not modelled: {sorted(unknown)}; "
                f"the table has {list(shape.names)}."
            )
        named = self.columns is not None
        return SelfMaskModule(
            shape,
            noise,
            columns=self.columns,
            ceiling=self.ceiling,
            draws_x=self.integrate == "draw",
            train_jointly=named if self.train_jointly is None else self.train_jointly,
            sign=self.sign,
            tilts=self.tilt,
        )


@dataclass(frozen=True)
class JointMask:
    """p(m_j missing | x) = sigmoid(f_j(x)) with f of all columns: the general case of not-MIWAE.

    Missing values are drawn in training and at imputation, because the integral over x_mis does not
    factorise over the columns.

    Parameters
    ----------
    hidden : int, default=0
        Units of the hidden layer of f. 0 makes f linear.

    Examples
    --------
    >>> from psmvae import JointMask
    >>> JointMask(hidden=32)
    JointMask(hidden=32)
    """

    hidden: int = 0

    def __post_init__(self) -> None:
        """Check the setting."""
        # a bool is an int, but not a number of units
        if type(self.hidden) is not int or self.hidden < 0:
            raise ValueError(f"JointMask needs a whole number hidden >= 0, got {self.hidden!r}.")

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """Make a linear layer or a small network from the features of x to the logits.

        Parameters
        ----------
        shape : psmvae.nn.mask.MaskShape
            Sizes of the model.
        noise : psmvae.nn.noise.Noise
            Random numbers for initial weights.

        Returns
        -------
        psmvae.nn.mask.MaskModule
            The network.
        """
        from psmvae.nn.joint_mask import JointMaskModule

        return JointMaskModule(shape, noise, hidden=self.hidden)


MASK_MODELS: dict[str, MaskModel] = {
    "none": NoMask(),
    "latent": LatentMask(),
    "self": SelfMask(),
    "logistic": SelfMask(ceiling=False, integrate="draw", train_jointly=True),
    "linear": JointMask(),
    "network": JointMask(hidden=32),
}
"""Mask models by name. The names are the same for every imputer."""


def mask_model(setting: object) -> MaskModel:
    """Return the mask model that a parameter stands for.

    Parameters
    ----------
    setting : str or MaskModel
        A name in `MASK_MODELS`, or a mask model.

    Returns
    -------
    MaskModel
        The mask model.

    Examples
    --------
    >>> from psmvae.nn.settings import mask_model
    >>> mask_model("network")
    JointMask(hidden=32)
    """
    if isinstance(setting, str) and setting in MASK_MODELS:
        return MASK_MODELS[setting]
    if not isinstance(setting, str) and isinstance(setting, MaskModel):
        return setting
    raise ValueError(
        f"mask_model must be one of {sorted(MASK_MODELS)} or an object with a "
        f"build(shape, noise) method, got {setting!r}."
    )
