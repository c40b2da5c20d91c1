"""The kinds of columns: each owns its encoding, its likelihood, its point estimate, its draw.

To add a kind, write one file with a class that fulfils :class:`psmvae.kinds.base.Kind` and list an
instance here.
"""

from psmvae.kinds.base import Block, Column, Distribution, Kind, Level, Nodes, Scale
from psmvae.kinds.levels import Binary, Levels
from psmvae.kinds.numeric import Integer, Real

KINDS: dict[str, Kind] = {kind.name: kind for kind in (Real(), Integer(), Binary(), Levels())}

__all__ = ["KINDS", "Block", "Column", "Distribution", "Kind", "Level", "Nodes", "Scale"]
