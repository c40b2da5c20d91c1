"""Mask models p(m | x, z, r): why a cell is observed (m = 1) or missing (m = 0).

A mask model is a small settings object with one method, ``build``, that makes the module to train.
Your own needs just that::

    class MyMask:
        def build(self, shape, noise):
            return MyModule(shape, noise)

where the module (an ``nn.Module``) has

- ``depends_on_x``: whether m_j depends on x_j itself (its missing values are then integrated out);
- optionally ``joint = True``: m_j depends on other columns too. Missing values are then drawn, and
  ``x`` is ``(member, row, draw, set, column)``, one value a cell, for all columns at once;
- ``as_input``: whether the encoders also see the mask;
- ``forward(x, z, at)``, which gives log p(m_j missing | ·) and log p(m_j observed | ·) of the
  columns ``at``. ``z`` is ``(member, row, draw, set, latent)``; ``x`` is ``(member, row, draw, set,
  column, node)``, values to try (axes may have size 1), or None where ``depends_on_x`` is False.
  Both answers are ``(member, row, draw, set, column[, node])``;
- optionally, where it depends on x, ``logistics(at)``: a `psmvae.nn.columns.Logistic` that says the
  same of p(m_j missing | ·) for a block of columns of numbers, or None for one where it cannot;
- parameters whose first axis is the members;
- optionally, where it does not depend on x, ``log_prob(m, z)``: log p(m_j | ·) of a mask ``(member,
  row, 1, 1, column)``, for all columns at once, where that is cheaper than both answers. With
  ``takes_sets = True`` it has a third argument ``sets``: None, or ``(row,)``, a set for each row,
  with a set axis of size one; imputation then leaves out sets that a row is surely not in;
- optionally ``start(rate)``, called before training with the missing rate of each column in each
  set that the masks suggest, ``(member, set, column)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from psmvae.kinds import Block
from psmvae.nn.columns import Columns, Logistic
from psmvae.nn.network import MLP, Network, each_its_set
from psmvae.nn.noise import Noise

MIN_RATE = 1e-3

Integrate = Literal["quadrature", "draw"]


@dataclass(frozen=True)
class MaskShape:
    """What a mask model is told about the table and the model around it.

    Columns are in the model's order: ``names`` and ``missing_rate`` (a number a column) say which
    is which.
    """

    n_members: int
    n_sets: int
    n_latent: int
    columns: Columns
    names: tuple[str, ...]
    missing_rate: Tensor
    network: Network


class MaskModule(Protocol):
    """The trained part of a mask model, an ``nn.Module``."""

    depends_on_x: bool
    as_input: bool

    def __call__(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log p(missing) and log p(observed) of the columns ``at``."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """What is trained."""
        ...


@runtime_checkable
class MaskModel(Protocol):
    """Settings of a mask model."""

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """The module to train."""
        ...


def log_odds(rate: Tensor) -> Tensor:
    """Log odds of a rate, held off 0 and 1."""
    return torch.logit(rate.clamp(MIN_RATE, 1 - MIN_RATE))


@dataclass(frozen=True)
class NoMask:
    """No model of the mask, and no mask as input: the paper's "w/o M" (assumes ignorability)."""

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """A module that says nothing."""
        del shape, noise
        return _NoMask()


class _NoMask(nn.Module):
    depends_on_x = False
    as_input = False
    takes_sets = True

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log 1."""
        del x, at
        nothing = torch.zeros_like(z[..., :1])
        return nothing, nothing

    def log_prob(self, m: Tensor, z: Tensor, sets: Tensor | None = None) -> Tensor:
        """Log 1."""
        del m, sets
        return torch.zeros_like(z[..., :1])


@dataclass(frozen=True)
class LatentMask:
    """p(m_j | z, r): the mask from the latents, the paper's model (b), a shared-parameter model."""

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """A network from z and r to log odds."""
        return _LatentMask(shape, noise)


class _LatentMask(nn.Module):
    depends_on_x = False
    as_input = True
    takes_sets = True

    def __init__(self, shape: MaskShape, noise: Noise) -> None:
        super().__init__()
        n_columns = shape.columns.n_columns
        self.net = MLP(
            shape.n_members,
            shape.n_latent,
            n_columns,
            network=shape.network,
            noise=noise,
            n_sets=shape.n_sets,
            set_at="first",
        )
        sets = (shape.n_members, 1, 1, shape.n_sets)
        self.odds = nn.Parameter(log_odds(shape.missing_rate).expand(*sets, -1).clone())

    @torch.no_grad()
    def start(self, rate: Tensor) -> None:
        """Each set at its own rates."""
        self.odds.copy_(log_odds(rate)[:, None, None])

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log sigmoid of the network's log odds."""
        del x
        score = (self.net(z) + self.odds)[..., at]
        return logsigmoid(score), logsigmoid(-score)

    def log_prob(self, m: Tensor, z: Tensor, sets: Tensor | None = None) -> Tensor:
        """Log p(m_j | z, r) of a mask, ``(member, row, draw, set, column)``."""
        odds = self.odds if sets is None else each_its_set(self.odds, sets)
        return logsigmoid((self.net(z, sets=sets) + odds) * (1 - 2 * m))


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
    trust_normal : bool, optional
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
    trust_normal: bool | None = None
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
        unknown = set(self.columns or ()) - set(shape.names)
        if unknown:
            raise ValueError(
                f"SelfMask names columns that are not modelled: {sorted(unknown)}; "
                f"the table has {list(shape.names)}."
            )
        return _SelfMask(self, shape, noise)


class _SelfMask(nn.Module):
    depends_on_x = True
    as_input = True
    active: Tensor

    def __init__(self, settings: SelfMask, shape: MaskShape, noise: Noise) -> None:
        super().__init__()
        self.columns = shape.columns
        self.ceiling = settings.ceiling
        self.trust_normal = (
            settings.columns is not None if settings.trust_normal is None else settings.trust_normal
        )
        rate = shape.missing_rate.clamp(MIN_RATE, 1 - MIN_RATE)
        sets = (shape.n_members, 1, 1, shape.n_sets)
        ceiling = (1 + rate) / 2 if settings.ceiling else torch.ones_like(rate)
        self.bias = nn.Parameter(torch.logit(rate / ceiling) + 0.1 * noise.normal(*sets, len(rate)))
        if settings.ceiling:
            self.ceiling_odds = nn.Parameter(torch.logit(ceiling).expand(*sets, -1).clone())
        self.weight = nn.Parameter(0.1 * noise.normal(*sets, shape.columns.n_features))
        self.sign = {None: 0.0, "high": 1.0, "low": -1.0}[settings.sign]
        chosen = [settings.columns is None or name in settings.columns for name in shape.names]
        self.register_buffer("active", torch.tensor(chosen, device=rate.device), persistent=False)

    @torch.no_grad()
    def start(self, rate: Tensor) -> None:
        """Each set at its own rates, half way to the ceiling."""
        rate = rate.clamp(MIN_RATE, 1 - MIN_RATE)[:, None, None]
        ceiling = (1 + rate) / 2 if self.ceiling else torch.ones_like(rate)
        self.bias.copy_(torch.logit(rate / ceiling))
        if self.ceiling:
            self.ceiling_odds.copy_(torch.logit(ceiling))

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log c + log sigmoid(s), and log(1 − c sigmoid(s)), both without cancellation."""
        del z
        if x is None:
            raise ValueError("a self-masking model needs x")
        block, weight = self._of(at)
        # (..., node, column, feature): a block's features need the column axis last
        features = block.features(x.transpose(-1, -2))
        pull = (features * weight.unsqueeze(-3)).sum(-1).transpose(-1, -2)
        score = pull * self.active[at].unsqueeze(-1) + self.bias[..., at].unsqueeze(-1)
        log_missing, log_observed = logsigmoid(score), logsigmoid(-score)
        if self.ceiling:
            odds = self.ceiling_odds[..., at].unsqueeze(-1)
            log_observed = torch.logaddexp(logsigmoid(-odds) + log_missing, log_observed)
            log_missing = logsigmoid(odds) + log_missing
        return log_missing, log_observed

    def logistics(self, at: slice) -> Logistic | None:
        """What `forward` says of p(missing), for columns of numbers."""
        block, weight = self._of(at)
        if block.n_features > 1:
            return None
        ceiling = logsigmoid(self.ceiling_odds[..., at]) if self.ceiling else 0.0
        return Logistic(weight.squeeze(-1) * self.active[at], self.bias[..., at], ceiling)

    def _of(self, at: slice) -> tuple[Block, Tensor]:
        """A block of columns and its weights, ``(member, 1, 1, set, column, feature)``."""
        number = self.columns.slices().index(at)
        block = self.columns.blocks[number]
        weight = self.columns.split(self.weight, "features")[number]
        if self.sign and block.n_features == 1:
            weight = self.sign * softplus(weight)
        return block, weight


MASK_MODELS: dict[str, MaskModel] = {
    "latent": LatentMask(),
    "self": SelfMask(),
    "none": NoMask(),
}


def mask_model(setting: object) -> MaskModel:
    """The mask model a user's setting stands for."""
    if isinstance(setting, str) and setting in MASK_MODELS:
        return MASK_MODELS[setting]
    if not isinstance(setting, str) and isinstance(setting, MaskModel):
        return setting
    raise ValueError(
        f"mask_model must be one of {sorted(MASK_MODELS)} or an object with a "
        f"build(shape, noise) method, got {setting!r}."
    )
