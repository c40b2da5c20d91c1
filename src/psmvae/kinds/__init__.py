"""The kinds of columns: each has its own encoding, likelihood, point estimate and draws.

To add a kind, write one file with a class that implements the protocol
:class:`psmvae.kinds.base.Kind` and add an instance to `KINDS`.
"""

from psmvae.kinds.base import Column, Kind
from psmvae.kinds.count import Count
from psmvae.kinds.levels import Binary, Levels
from psmvae.kinds.numeric import Integer, Real
from psmvae.kinds.ordinal import Ordinal
from psmvae.kinds.positive import Positive

__all__ = ["Column"]

_ALL = (Real(), Integer(), Binary(), Levels(), Positive(), Count(), Ordinal())
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
