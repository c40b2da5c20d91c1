"""Settings of the mask models, without PyTorch.

A mask model is a settings object with one method, `MaskModel.build`, which makes the module that is
trained. PyTorch is imported when a module is built, so an imputer can be made without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from psmvae.nn.mask import MaskModule, MaskShape
    from psmvae.nn.noise import Noise


@runtime_checkable
class MaskModel(Protocol):
    """Settings of a mask model p(m | x, z, r): any object with this ``build`` method."""

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """Make the module that is trained; the first axis of its parameters is the member."""
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
        from psmvae.nn.mask_modules import NoMaskModule

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
        from psmvae.nn.mask_modules import LatentMaskModule

        return LatentMaskModule(shape, noise)


@dataclass(frozen=True)
class LogisticMask:
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
    >>> from psmvae import LogisticMask
    >>> LogisticMask(columns=["income"], sign="high").columns
    ('income',)
    """

    columns: Sequence[str] | None = None
    ceiling: bool = True
    integrate: Literal["quadrature", "draw"] = "quadrature"
    train_jointly: bool | None = None
    sign: Literal["high", "low"] | None = None
    tilt: bool = True

    def __post_init__(self) -> None:
        """Check the settings."""
        if isinstance(self.columns, str):
            raise TypeError(
                f"LogisticMask needs a list of column names, got the string {self.columns!r}; "
                f"did you mean [{self.columns!r}]?"
            )
        if self.columns is not None:
            if not isinstance(self.columns, Iterable):
                raise TypeError(f"LogisticMask needs a list of column names, got {self.columns!r}.")
            object.__setattr__(self, "columns", tuple(self.columns))
        if self.integrate not in ("quadrature", "draw"):
            raise ValueError(
                "LogisticMask needs integrate to be 'quadrature' or 'draw', "
                f"got {self.integrate!r}."
            )
        if not isinstance(self.tilt, bool):
            raise TypeError(f"LogisticMask needs tilt to be True or False, got {self.tilt!r}.")
        if self.sign not in (None, "high", "low"):
            raise ValueError(f"LogisticMask needs sign to be 'high' or 'low', got {self.sign!r}.")

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
        from psmvae.nn.mask_modules import LogisticMaskModule

        unknown = set(self.columns or ()) - set(shape.names)
        if unknown:
            raise ValueError(
                f"LogisticMask names columns that are not modelled: {sorted(unknown)}; "
                f"the table has {list(shape.names)}."
            )
        return LogisticMaskModule(shape, noise, self)


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
        from psmvae.nn.mask_modules import JointMaskModule

        return JointMaskModule(shape, noise, hidden=self.hidden)


MASK_MODELS: dict[str, MaskModel] = {
    "none": NoMask(),
    "latent": LatentMask(),
    "logistic-ceiling": LogisticMask(),
    "logistic": LogisticMask(ceiling=False, integrate="draw", train_jointly=True),
    "linear": JointMask(),
    "network": JointMask(hidden=32),
}
"""Mask models by name. The names are the same for every imputer."""


def mask_model(setting: object, also: Sequence[str] = ()) -> MaskModel:
    """Return the mask model given by a parameter: a name in `MASK_MODELS` or a mask model.

    ``also`` are other names that the parameter takes, for the error message.
    """
    found = MASK_MODELS.get(setting) if isinstance(setting, str) else setting
    if isinstance(found, MaskModel):
        return found
    raise ValueError(
        f"mask_model must be one of {sorted([*MASK_MODELS, *also])} or an object with a "
        f"build(shape, noise) method, got {setting!r}."
    )
