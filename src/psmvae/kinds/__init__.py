"""The kinds of columns: each owns its encoding, its likelihood, its point estimate, its draw.

To add a kind, write one file with a class that fulfils :class:`psmvae.kinds.base.Kind` and list an
instance here.
"""

from psmvae.kinds.base import Block, Column, Distribution, Kind, Level, Nodes, Scale
from psmvae.kinds.count import Count
from psmvae.kinds.levels import Binary, Levels
from psmvae.kinds.numeric import Integer, Real
from psmvae.kinds.ordinal import Ordinal
from psmvae.kinds.positive import Positive

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (Real(), Integer(), Binary(), Levels(), Positive(), Count(), Ordinal())
}

__all__ = ["KINDS", "Block", "Column", "Distribution", "Kind", "Level", "Nodes", "Scale"]
