"""Blocks of rows that are imputed together, and the seeds of their random numbers.

Block b has the rows b · size to (b + 1) · size − 1 of the whole table. It is imputed by itself and
has random numbers of its own, whatever part of the table is in memory. So a row depends on its
position and its block, and not on batches, files or processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

# Rows of a block, by type of device. Smaller blocks fit better into the caches of a processor, and
# larger ones keep a GPU busy. Results depend on these numbers.
BLOCK_ROWS = {"cpu": 4096, "cuda": 65_536}
# Distance of the seeds of the attempts; a prime unlike that of `Imputer._seed`.
SEED_STEP = 104_729


@dataclass(frozen=True)
class BlockSeed:
    """Seeds of the draws of one block of rows.

    ``table`` is the same for all blocks: parameters that are drawn once for each completed table
    have this seed. Cells have the seed ``cells``. ``attempt`` counts draws that replace values out
    of bounds.
    """

    table: int
    block: int = 0
    attempt: int = 0

    @property
    def cells(self) -> int:
        """Seed of the cells; that of the table in the first block."""
        own = self.table
        if self.block:
            state = np.random.SeedSequence([self.table, self.block]).generate_state(1, np.uint64)
            # a signed integer with room for the attempts
            own = int(state[0] >> np.uint64(2))
        return own + SEED_STEP * self.attempt

    def again(self) -> Self:
        """Return the seeds of the next attempt."""
        return replace(self, attempt=self.attempt + 1)


def blocks(n_rows: int, size: int) -> Iterator[tuple[int, slice]]:
    """Return the number and the rows of each block of a table."""
    for number, start in enumerate(range(0, n_rows, size)):
        yield number, slice(start, min(start + size, n_rows))
