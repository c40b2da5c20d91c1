"""MICE with draws instead of conditional means: a row of the paper's tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psmvae import MICEImputer
from psmvae.imputers.blocks import BlockSeed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(kw_only=True, repr=False, eq=False)
class MICESampleImputer(MICEImputer):
    """`MICEImputer` whose `transform` imputes one draw, as the paper's "MICE sample" does.

    The records of this row were measured with scikit-learn's ``sample_posterior=True``, which draws
    every cell independently.
    """

    def _points(self, x: NDArray[np.float64], m: NDArray[np.bool_]) -> NDArray[Any]:
        drawn: NDArray[Any] = self._draws(x, m, 1, BlockSeed(self._seed(1)))[:, 0]
        return drawn
