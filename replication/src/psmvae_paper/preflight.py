"""What is refused before a run begins, rather than after every cell has failed of it."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING

from psmvae_paper.methods import Maker, find_method

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psmvae_paper.cell import Cell

__all__ = ["check_cells"]


def check_cells(cells: Sequence[Cell], data_home: str | None = None) -> None:
    """Raise for what could only fail: mechanisms, methods, data sets and what is asked of them.

    Parameters
    ----------
    cells : sequence of Cell
        What is to be run.
    data_home : path, optional
        The folder with the data, as for `psmvae_paper.datasets.load`.

    Raises
    ------
    ValueError
        If there is any; the message says what.
    FileNotFoundError
        If data are not there.

    Examples
    --------
    >>> from psmvae_paper import Cell
    >>> check_cells([Cell("breast", "mcar", 0.2, 0, "mean", n_columns=31)])
    Traceback (most recent call last):
        ...
    ValueError: breast: n_columns must be at most 30, which the data set has, got 31
    """
    for mechanism in dict.fromkeys(cell.mechanism for cell in cells):
        _check_mechanism(mechanism)
    for cell in {(cell.method, cell.settings, cell.measure): cell for cell in cells}.values():
        _check_method(cell)
    from psmvae_paper.protocol import check_data

    check_data(dict.fromkeys(cell.dataset for cell in cells), data_home)
    asked = {(cell.dataset, cell.n_rows, cell.n_columns, cell.measure): cell for cell in cells}
    for cell in asked.values():
        _check_shape(cell, data_home)


def _check_mechanism(name: str) -> None:
    from psmvae.simulate import MECHANISMS

    if name not in MECHANISMS:
        raise ValueError(f"unknown mechanism {name!r}; known are {', '.join(MECHANISMS)}")
    _, _, _, *more = inspect.signature(MECHANISMS[name]).parameters.values()
    needed = [one.name for one in more if one.default is inspect.Parameter.empty]
    if needed:
        message = f"mechanism {name!r} needs {', '.join(needed)}, which an experiment cannot give"
        raise ValueError(message)


def _check_method(cell: Cell) -> None:
    method = find_method(cell.method)
    if cell.measure == "curve" and not method.deep:
        raise ValueError(f'measure "curve" needs a method with epochs, and {method.name} has none')
    if not isinstance(method.make, Maker):
        return
    # K is told to the fitted imputer
    told = [name for name, _ in cell.settings if name != "n_draws"]
    unknown = [name for name in told if not method.make.knows(name)]
    if unknown:
        message = f"method {method.name} has no {', '.join(unknown)}, which the experiment sets"
        raise ValueError(message)


def _check_shape(cell: Cell, data_home: str | None) -> None:
    from psmvae_paper.protocol import numbers_of, part

    numbers, target = numbers_of(cell.dataset, data_home)
    try:
        part(numbers.x, cell.seed, cell.n_rows, cell.n_columns)
    except ValueError as error:
        raise ValueError(f"{cell.dataset}: {error}") from error
    if cell.measure == "multiple" and target is None:
        raise ValueError(f'{cell.dataset}: measure "multiple" needs a data set with a target')
    n_columns = numbers.x.shape[1]
    if cell.measure == "inpaint" and math.isqrt(n_columns) ** 2 != n_columns:
        message = f'{cell.dataset}: measure "inpaint" needs square images, and there are '
        raise ValueError(f"{message}{n_columns} columns")
