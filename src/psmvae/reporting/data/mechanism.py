"""Why cells are missing: explanations of the masks that an imputer compared, and pattern sets.

Signatures
----------
``mechanism_data(X, imputer=None, *, report=None, shown=None, max_rows=10_000, random_state=0)
-> MechanismData``; ``report`` is a `MissingnessReport` or the result of `mask_relations`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from psmvae.describe.masks import Columns as Lists
from psmvae.describe.result import MissingnessReport
from psmvae.reporting.data.columns import Columns, level_text, number, read_columns, rounded
from psmvae.reporting.data.histogram import histogram
from psmvae.reporting.data.relations import MaskRelations, mask_relations
from psmvae.reporting.data.table import MAX_ROWS, shown_columns
from psmvae.reporting.schema import (
    MechanismColumn,
    MechanismData,
    OddsData,
    PredictorData,
    SetData,
)
from psmvae.table.libraries import is_arrow_table, is_polars_frame

if TYPE_CHECKING:
    from psmvae.mechanism.column import Finding
    from psmvae.mechanism.table import Mechanism

MAX_PREDICTORS = 5
"""Single predictors that are listed for a column."""
OWN_VALUE = "own value"
# level of the pointwise band of the odds
_LEVEL = 0.9
_UNKNOWN = (
    "so it is not known whether the value of a cell or the other columns explain which cells are "
    "missing"
)


def mechanism_data(
    X: Any,
    imputer: Any = None,
    *,
    report: MissingnessReport | MaskRelations | None = None,
    shown: list[str] | None = None,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
) -> MechanismData:
    """Return what is known about why cells are missing.

    Parameters
    ----------
    X : table or Columns
        The incomplete table.
    imputer : Imputer, optional
        A fitted imputer. Its ``mechanism_`` gives the comparison of explanations, its pattern sets
        are described if it has any.
    report : MissingnessReport or MaskRelations, optional
        Gives the predictors of missing cells; by default they are computed by `mask_relations`.
    shown : list of str, optional
        Columns that are described if they have missing cells; by default those of `shown_columns`.
    max_rows : int, default=10_000
        Largest number of rows that predictors are computed from. Histograms use all rows.
    random_state : int, default=0
        Seed of the rows and folds.

    Returns
    -------
    MechanismData
        Section 3 of a report. Without a comparison, sentences say what is not known.

    Examples
    --------
    >>> import numpy as np
    >>> made = mechanism_data(np.array([[1.0, np.nan], [2.0, 3.0], [3.0, 5.0]]))
    >>> made["compared"], [column["name"] for column in made["columns"]]
    (False, ['x1'])
    """
    columns = read_columns(X)
    names = shown_columns(columns) if shown is None else shown
    relations = mask_relations(
        columns, report=report, shown=names, max_rows=max_rows, random_state=random_state
    )
    source = _Source(columns, imputer)
    found = _by_column(relations.predictors), _by_column(relations.joint)
    incomplete = [name for name in names if columns.missing[:, columns.position(name)].any()]
    return {
        "imputer": None if imputer is None else type(imputer).__name__,
        "compared": source.mechanism is not None and len(source.mechanism) > 0,
        "columns": [source.column(name, _strongest(name, *found)) for name in incomplete],
        "own_value_found": source.by_own_value(assumed=False),
        "own_value_assumed": source.by_own_value(assumed=True),
        "sets": _sets(columns, imputer, incomplete, source.fitted_names),
    }


class _Source:
    """What a fitted imputer tells about the columns of a table."""

    def __init__(self, columns: Columns, imputer: Any) -> None:
        self.columns, self.imputer = columns, imputer
        self.mechanism: Mechanism | None = getattr(imputer, "mechanism_", None)
        schema = getattr(imputer, "schema_", None)
        fitted = columns.names if schema is None else schema.names
        same = not columns.frame.has_names and len(fitted) == len(columns.names)
        # columns of an array are matched by position
        self.fitted_names = dict(zip(columns.names, fitted if same else columns.names, strict=True))

    def by_own_value(self, *, assumed: bool) -> list[str]:
        """Return the incomplete columns whose cells are missing by their own value."""
        incomplete = np.asarray(self.columns.missing.any(0)).tolist()
        findings = [self._finding(name) for name in self.columns.names]
        return [
            name
            for name, finding, lacks in zip(self.columns.names, findings, incomplete, strict=True)
            if lacks and finding and finding.chosen == OWN_VALUE and finding.assumed == assumed
        ]

    def _finding(self, name: str) -> Finding | None:
        return None if self.mechanism is None else self.mechanism.get(self.fitted_names[name])

    def column(self, name: str, predictors: list[PredictorData]) -> MechanismColumn:
        """Return the explanations of one column."""
        position, fitted = self.columns.position(name), self.fitted_names[name]
        finding = self._finding(name)
        likelihoods = {} if finding is None else finding.likelihoods._asdict()
        tilt = None if finding is None else finding.tilt
        odds = None if tilt is None else self._odds(fitted)
        return {
            "name": name,
            "fraction": float(self.columns.missing[:, position].mean()),
            "chosen": None
            if finding is None or np.isnan(finding.likelihoods.own_value)
            else finding.chosen,
            "assumed": finding is not None and finding.assumed,
            "likelihoods": {
                explanation.replace("_", " "): number(value)
                for explanation, value in likelihoods.items()
            },
            "share_by_value": 0.0 if finding is None else finding.share_by_value,
            "at_risk": None if tilt is None else number(tilt.bins.share[tilt.at_risk()].sum()),
            "sentence": self._sentence(name),
            "odds": odds,
            "observed": histogram(
                self.columns,
                position,
                as_levels=None if odds is None else isinstance(odds["value"][0], str),
            ),
            "predictors": predictors,
        }

    def _odds(self, fitted: str) -> OddsData:
        """Return the probability of going missing; as `Mechanism.odds`, without a frame library."""
        mechanism: Any = self.mechanism
        j = [column.name for column in mechanism.columns].index(fitted)
        tilt = mechanism[fitted].tilt
        low, high = tilt.band(_LEVEL)
        values = mechanism.in_units(j, tilt.bins.value)
        if mechanism.columns[j].levels:
            shown: list[float | str] = [level_text(value) for value in values]
        else:
            shown = list(rounded(values))
        return {
            "value": shown,
            "probability": rounded(tilt.probability(), 6),
            "low": rounded(low, 6),
            "high": rounded(high, 6),
        }

    def _sentence(self, name: str) -> str:
        fitted = self.fitted_names[name]
        if bool(self.columns.missing[:, self.columns.position(name)].all()):
            return f"{name}: no value was observed, so there is nothing to compare."
        if self.mechanism is not None and fitted in self.mechanism:
            said = self.mechanism.sentence(fitted)
            return name + said[len(fitted) :] if said.startswith(fitted) else said
        if self.imputer is None:
            return f"{name}: no fitted imputer was given, {_UNKNOWN}."
        made_by = type(self.imputer).__name__
        if self.mechanism is not None:
            late = getattr(self.imputer, "max_time", None) is not None
            why = " in max_time" if late and self.imputer.mask_model == "auto" else ""
            return f"{name}: {made_by} did not compare explanations of its mask{why}, {_UNKNOWN}."
        setting = getattr(self.imputer, "mask_model", None)
        how = f" with mask_model={setting!r}" if isinstance(setting, str) else ""
        return f"{name}: {made_by}{how} compares no explanations of masks, {_UNKNOWN}."


def _by_column(lists: Lists) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a table by the name in their column "column"."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in zip(*lists.values(), strict=True):
        record = dict(zip(lists, row, strict=True))
        found.setdefault(record["column"], []).append(record)
    return found


def _strongest(
    name: str, single: dict[str, list[dict[str, Any]]], joint: dict[str, list[dict[str, Any]]]
) -> list[PredictorData]:
    """Return the strongest predictors of a mask, then that of all other columns together."""
    known = [row for row in single.get(name, []) if not np.isnan(row["auc"])]
    rows = known[:MAX_PREDICTORS]
    together = [row for row in joint.get(name, []) if not np.isnan(row["auc"])]
    every = {"predictor": "all other columns", "by": "all other columns"}
    return [
        {
            "predictor": row["predictor"],
            "by": row["by"],
            "auc": number(row["auc"]),
            "conf_low": number(row["conf_low"]),
            "conf_high": number(row["conf_high"]),
        }
        for row in [*rows, *(row | every for row in together)]
    ]


def _sets(
    columns: Columns, imputer: Any, incomplete: list[str], fitted_names: dict[str, str]
) -> list[SetData]:
    """Describe the pattern sets of an imputer that has them."""
    summary, backend = getattr(imputer, "set_summary_", None), _backend(columns.table)
    if summary is None or backend is None:
        return []
    described = nw.from_native(imputer.describe_sets(backend=backend), eager_only=True)
    modelled = [column.name for column in imputer.schema_.modelled]
    positions = {
        name: modelled.index(fitted_names[name])
        for name in incomplete
        if fitted_names[name] in modelled
    }
    return [
        {
            "number": int(row["set"]),
            "fraction": float(row["size"]),
            "mechanism": row["mechanism"],
            "missing": row["missing"],
            "differs_in": row["differs_in"],
            "mask_rates": {name: float(rate[j]) for name, j in positions.items()},
        }
        for row, rate in zip(described.rows(named=True), summary.missing_rate, strict=True)
    ]


def _backend(table: Any) -> Any:
    """Return the library of a frame; for an array one that is installed, or None."""
    if is_polars_frame(table):
        return "polars"
    if is_arrow_table(table):
        return "pyarrow"
    return next((name for name in ("pandas", "polars", "pyarrow") if find_spec(name)), None)
