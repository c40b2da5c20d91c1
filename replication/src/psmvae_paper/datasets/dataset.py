"""The class of data sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with its target, kinds and description.

    Parameters
    ----------
    name : str
        The name of the data set or of the file.
    X : pandas.DataFrame
        The table. Cells that are natively missing are NaN.
    y : ndarray or None
        The target of the rows, if there is one; it is not a column of `X`.
    kinds : mapping of str to str
        The kinds of columns, for the `kinds` of an imputer; others are inferred.
    description : str
        The rows and the source of the table.

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
