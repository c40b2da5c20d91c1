"""What a data set is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with what is known about it.

    Parameters
    ----------
    name : str
        Its name, or that of the file.
    X : pandas.DataFrame
        The table. Cells that are natively missing are NaN.
    y : ndarray or None
        The target that belongs to the rows, where there is one; it is no column of `X`.
    kinds : mapping of str to str
        What the columns are, for the `kinds` of an imputer; columns not in it are inferred.
    description : str
        What the rows are, and where the table comes from.

    Examples
    --------
    >>> from psmvae_paper.datasets import load
    >>> load("digits")
    Dataset(name='digits', shape=(1797, 64))
    """

    name: str
    X: pd.DataFrame
    y: NDArray[Any] | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    description: str = ""

    def __repr__(self) -> str:
        return f"Dataset(name={self.name!r}, shape={self.X.shape})"
