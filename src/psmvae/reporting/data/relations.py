"""How masks relate to the other columns: Little's test, and which columns predict missing cells.

`psmvae.missingness` uses all columns, whose Little's test takes minutes for 60 of them. A report
uses the shown columns, and fewer rows the more columns there are.

Signatures
----------
``mask_relations(X, *, report=None, shown=None, max_rows=10_000, random_state=0)
-> MaskRelations``; ``report`` is a `MissingnessReport` (or `MaskRelations`) computed before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psmvae._blas import one_blas_thread
from psmvae.describe.joint import joint
from psmvae.describe.little import LittleTest, little_test
from psmvae.describe.masks import Columns as Lists
from psmvae.describe.predictors import predictors
from psmvae.describe.result import MissingnessReport
from psmvae.reporting.data.columns import Columns, read_columns
from psmvae.reporting.data.table import MAX_ROWS, sampled_rows, shown_columns

MAX_TESTED = 20
"""Columns in Little's test, and columns with joint models of their masks: the worst of those shown.

The time of the test grows with the cube of this number.
"""
# Rows times the cube of the number of columns, and rows times columns squared times joint models.
LITTLE_WORK, JOINT_WORK = 1e7, 4e7
# Rows times columns of single predictors.
PREDICTOR_WORK = 1e6
MIN_ROWS = 1_000
# Iterations of EM for Little's test at most, and the change at which it stops. On breast the
# p-value is 7.4e-5, and 7.3e-5 with the tolerance of `psmvae.missingness`.
LITTLE_ITER, LITTLE_TOLERANCE = 300, 1e-4


@dataclass(frozen=True, eq=False)
class MaskRelations:
    """Relations of the masks of the shown columns to the others.

    Parameters
    ----------
    little : LittleTest
        Little's test.
    n_tested : int
        Number of columns that were given to the test.
    n_columns : int
        Number of columns of the table that could be tested.
    predictors, joint : dict of lists
        As in `psmvae.MissingnessReport`.
    """

    little: LittleTest
    n_tested: int
    n_columns: int
    predictors: Lists
    joint: Lists


def mask_relations(
    X: Any,
    *,
    report: MissingnessReport | MaskRelations | None = None,
    shown: list[str] | None = None,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
) -> MaskRelations:
    """Test the masks of a table, and compute which columns predict missing cells.

    Parameters
    ----------
    X : table or Columns
        The incomplete table.
    report : MissingnessReport or MaskRelations, optional
        What was computed before; nothing is computed again then.
    shown : list of str, optional
        Columns whose missing cells are predicted; by default those of `shown_columns`.
    max_rows : int, default=10_000
        Largest number of rows, drawn at random.
    random_state : int, default=0
        Seed of the rows and folds.

    Returns
    -------
    MaskRelations
        Little's test and the joint models of masks are those of at most 20 shown columns. All
        columns are used as predictors.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> x[x[:, 0] > 1, 1] = np.nan
    >>> mask_relations(x).predictors["predictor"]
    ['x0']
    """
    if isinstance(report, MaskRelations):
        return report
    if isinstance(report, MissingnessReport):
        made = report.to_dict()
        tested = (report.n_columns, report.n_columns)
        return MaskRelations(report.little, *tested, made["predictors"], made["joint"])
    columns = read_columns(X)
    names = shown_columns(columns) if shown is None else shown
    positions = [columns.position(name) for name in names]
    return _computed(columns, positions, max_rows, random_state)


def no_relations() -> MaskRelations:
    """Return relations of no columns, for pictures that do not show them.

    Returns
    -------
    MaskRelations
        Little's test was not made, and there are no predictors.
    """
    nothing = little_test([], 0, np.random.default_rng(0))
    return MaskRelations(nothing, 0, 0, {}, {})


def _computed(
    columns: Columns, shown: list[int], max_rows: int, random_state: int
) -> MaskRelations:
    rng = np.random.default_rng(random_state)
    modelled = columns.modelled
    most = _limit(PREDICTOR_WORK / max(len(modelled), 1), max_rows)
    rows = sampled_rows(columns.n_rows, most, random_state)
    variables = [columns.variable(j, rows) for j in modelled]
    missing = columns.missing[rows][:, modelled]
    # positions among the modelled columns, those with the most missing cells first
    targets = [modelled.index(j) for j in shown if j in set(modelled)]
    worst = sorted(targets[:MAX_TESTED])
    n_worst = max(len(worst), 1)
    most = _limit(LITTLE_WORK / n_worst**3, max_rows)
    # matrices are too small for several threads
    with one_blas_thread():
        little = little_test(
            [variables[k] for k in worst], most, rng, LITTLE_ITER, LITTLE_TOLERANCE
        )
        single = predictors(variables, missing, rng, targets)
    most = _limit(JOINT_WORK / (n_worst * max(len(variables), 1) ** 2), max_rows)
    together = joint(variables, missing, most, rng, worst)
    return MaskRelations(little, len(worst), len(modelled), single, together)


def _limit(n_rows: float, max_rows: int) -> int:
    return int(min(max(n_rows, MIN_ROWS), max_rows))
