"""Settings of networks and mask models; PyTorch is loaded when a module is built from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from psmvae.nn.mask import MaskModule, MaskShape
    from psmvae.nn.noise import Noise

Integrate = Literal["quadrature", "draw"]

# Steps of EM of a factor analysis at most.
MAX_ITER = 100


@dataclass(frozen=True)
class Network:
    """The architecture of every network of a model.

    Parameters
    ----------
    width : int
        Units of a hidden layer.
    depth : int
        Plain: the number of hidden layers. Residual: the number of residual blocks.
    residual : bool
        Residual blocks (LayerNorm, SiLU); otherwise plain layers, as in the paper.
    smooth : bool
        SiLU in plain layers; otherwise ReLU, as in the paper.
    dropout : float
        Share of the hidden units dropped while training.
    linear : bool
        Start from a linear-Gaussian model (factor analysis): the networks then learn what is left.

    Examples
    --------
    >>> from psmvae import Network
    >>> Network.paper()
    Network(width=128, depth=1, residual=False, dropout=0.0, linear=False, smooth=False)
    """

    width: int = 128
    depth: int = 2
    residual: bool = True
    dropout: float = 0.0
    linear: bool = True
    smooth: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("width", "depth"):
            if not isinstance(getattr(self, name), Integral):
                raise TypeError(
                    f"Network needs a whole number for {name}, got {getattr(self, name)!r}."
                )
        if self.width < 1 or self.depth < 1:
            raise ValueError(
                f"Network needs width >= 1 and depth >= 1, got width={self.width}, "
                f"depth={self.depth}."
            )
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"Network needs dropout in [0, 1), got {self.dropout}.")

    @classmethod
    def paper(cls) -> Network:
        """One hidden ReLU layer of 128, as in the paper."""
        return cls(width=128, depth=1, residual=False, dropout=0.0, linear=False)

    def light(self) -> Network:
        """A smaller network for the factors that only help training: q(x_mis) and p(m)."""
        if not self.residual:
            return self
        return replace(self, width=min(self.width, 64), depth=1)


@runtime_checkable
class MaskModel(Protocol):
    """Settings of a mask model."""

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """The module to train."""
        ...


@dataclass(frozen=True)
class NoMask:
    """No model of the mask, and no mask as input: the paper's "w/o M" (assumes ignorability)."""

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """A module that says nothing."""
        from psmvae.nn.mask import NoMaskModule

        del shape, noise
        return NoMaskModule()


@dataclass(frozen=True)
class LatentMask:
    """p(m_j | z, r): the mask from the latents, the paper's model (b), a shared-parameter model."""

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """A network from z and r to log odds."""
        from psmvae.nn.mask import LatentMaskModule

        return LatentMaskModule(shape, noise)


@dataclass(frozen=True)
class SelfMask:
    """p(m_j missing | x_j, r) = c_rj · sigmoid(w_rj · x_j + b_rj): the paper's model (a).

    Parameters
    ----------
    columns : sequence of str, optional
        The columns whose missingness depends on their own value. The others go missing with a
        constant probability in each set. All columns by default.
    ceiling : bool
        Learn c, the share that goes missing however extreme the value; otherwise c = 1, the plain
        logistic of the paper.
    integrate : {"quadrature", "draw"}
        How the missing x_j is integrated out of the training objective: exactly, or by a draw from
        q(x_mis) as in the paper (from p(x | z) in models without q(x_mis)). Imputation always
        integrates by quadrature.
    sign : {"high", "low"}, optional
        What is known of w: "high" values go missing more often, or "low" ones. Holds for columns of
        numbers; unknown by default.
    train_jointly : bool, optional
        Learn x and mask together from the start, as a selection model does. This also corrects what
        the selection did to the relations between columns, but it takes a skewed residual for a
        sign of selection, and so is only as good as the assumption that residuals are normal.
        Otherwise the mask is first fitted to x as learned from the observed cells, a smaller but
        sturdier correction. By default true where `columns` are named, false where all columns are
        only suspected.
    tilt : bool
        Let imputations use what the mask model says of a value that went missing: p(x_mis|z,r)
        times p(m_j missing|x_j,r), as Bayes' rule asks. Otherwise they come from p(x_mis|z,r) as it
        is, which is the paper's rule.

    Examples
    --------
    >>> from psmvae import SelfMask
    >>> SelfMask(columns=["income"]).columns
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
        """A logistic regression for each set and column."""
        from psmvae.nn.mask import SelfMaskModule

        unknown = set(self.columns or ()) - set(shape.names)
        if unknown:
            raise ValueError(
                f"SelfMask names columns that are not modelled: {sorted(unknown)}; "
                f"the table has {list(shape.names)}."
            )
        return SelfMaskModule(self, shape, noise)


@dataclass(frozen=True)
class JointMask:
    """p(m_j missing | x) = sigmoid(f_j(x)), where f sees all columns: not-MIWAE's general case.

    Missing values are drawn, in training and at imputation: with f of all columns there is no
    integral over one cell at a time.

    Parameters
    ----------
    hidden : int
        Units of a hidden layer; 0 makes f linear.

    Examples
    --------
    >>> from psmvae import JointMask
    >>> JointMask(hidden=32)
    JointMask(hidden=32)
    """

    hidden: int = 0

    def __post_init__(self) -> None:
        """Check the setting."""
        # a bool or a float would pass for a width
        if type(self.hidden) is not int or self.hidden < 0:
            raise ValueError(f"JointMask needs a whole number hidden >= 0, got {self.hidden!r}.")

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """A linear layer or a small network from the features of x to log odds."""
        from psmvae.nn.joint_mask import JointMaskModule

        return JointMaskModule(self, shape, noise)


# Mask models by name, the same names for every imputer.
MASK_MODELS: dict[str, MaskModel] = {
    "none": NoMask(),
    "latent": LatentMask(),
    "self": SelfMask(),
    "logistic": SelfMask(ceiling=False, integrate="draw", train_jointly=True),
    "linear": JointMask(),
    "network": JointMask(hidden=32),
}


def mask_model(setting: object) -> MaskModel:
    """Return the mask model of a name, or the setting if it is a mask model itself."""
    if isinstance(setting, str) and setting in MASK_MODELS:
        return MASK_MODELS[setting]
    if not isinstance(setting, str) and isinstance(setting, MaskModel):
        return setting
    raise ValueError(
        f"mask_model must be one of {sorted(MASK_MODELS)} or an object with a "
        f"build(shape, noise) method, got {setting!r}."
    )
