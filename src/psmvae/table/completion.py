"""Complete a table: fill its missing cells, then compute its derived columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmvae.table.codec import Codec, RangeCheck
from psmvae.table.derived import Derivation, check_derived
from psmvae.table.frames import Frame
from psmvae.table.where import read_where

Bools = NDArray[np.bool_]


class Completion:
    """Completes one table by model values, once or many times.

    Parameters
    ----------
    frame : Frame
        The incomplete table.
    codec : Codec
        The codec of its columns.
    names : sequence of str
        The names of the columns in `fit`, which the formulas use, in the order of the schema.
    rows : ndarray of bool (row,)
        The rows that model values are given for.
    where : table, optional
        Which missing cells to fill; see `read_where`.
    donors : mapping of int to ndarray, optional
        Values of modelled columns that are filled in without rounding errors.
    check : RangeCheck, optional
        Counts filled values outside the observed range, of several tables together.
    """

    def __init__(
        self,
        frame: Frame,
        codec: Codec,
        names: Sequence[str],
        rows: Bools,
        where: Any = None,
        *,
        donors: Mapping[int, NDArray[np.float64]] | None = None,
        check: RangeCheck | None = None,
    ) -> None:
        wanted = read_where(where, frame)
        self._filler = codec.filler(frame, rows=rows, wanted=wanted, donors=donors, check=check)
        self._derivation = None
        if codec.schema.formulas:
            # an array may have been fitted under other names
            pairs = list(zip(names, codec.schema.columns, strict=True))
            position = codec.positions(frame)
            formulas = {name: column.formula for name, column in pairs if column.formula}
            at = {name: position[column.name] for name, column in pairs}
            self._derivation = Derivation(frame, check_derived(formulas, names), at, wanted)

    def __call__(self, x: NDArray[Any]) -> Any:
        """Return the table with the values x ``(row, column)``; see `Codec.filler`."""
        table = self._filler(x)
        return table if self._derivation is None else self._derivation(table)

    @property
    def mask(self) -> Bools:
        """Which cells were filled or computed, ``(row, column)`` in the order of the table."""
        mask = self._filler.filled()
        if self._derivation is not None:
            for position, changed in self._derivation.changed.items():
                mask[:, position] |= changed
        return mask

    @property
    def undefined(self) -> dict[str, int]:
        """Numbers of rows with a formula that is not finite, by derived column."""
        return {} if self._derivation is None else self._derivation.undefined

    def warn(self) -> None:
        """Warn of implausible values, once for all completed tables."""
        self._filler.warn()
        if self._derivation is not None:
            self._derivation.warn()
