"""Checks before a run begins, for errors that would make every cell fail."""

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
    """Raise an error for cells that would fail: mechanism, method, settings, data set or size.

    Parameters
    ----------
    cells : sequence of Cell
        The cells to be run.
    data_home : path, optional
        The folder with the data, as for `psmvae_paper.datasets.load`.

    Raises
    ------
    ValueError
        If a cell would fail; the message says why.
    FileNotFoundError
        If data are missing.

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
    sizes = {(cell.dataset, cell.n_rows, cell.n_columns, cell.measure): cell for cell in cells}
    for cell in sizes.values():
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
    # n_draws is set on the fitted imputer
    names = [name for name, _ in cell.settings if name != "n_draws"]
    unknown = [name for name in names if not method.make.has_parameter(name)]
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
