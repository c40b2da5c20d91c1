"""Section 6: pooled estimates beside complete cases, and sensitivity analyses."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae._quiet import quiet_warnings
from psmvae.multiple import Analyses, MissingInformationWarning, PooledResults, how_many, rubin
from psmvae.reporting.data.columns import number
from psmvae.reporting.schema import AssumptionRow, EstimateRow, ResultsData, TippingData
from psmvae.sensitivity.compare import AssumptionComparison
from psmvae.sensitivity.inference import INTERCEPTS, Inference, single_inference
from psmvae.sensitivity.tipping import TippingPoint

Floats = NDArray[np.float64]
Sensitivity = TippingPoint | AssumptionComparison
# Groups of a tipping point analysis that are shown.
N_AXES = 2
ALPHA = 0.05


def results_data(
    analyses: Analyses | PooledResults | None = None,
    sensitivity: Sensitivity | Sequence[Sensitivity] | None = None,
) -> ResultsData:
    """Return pooled estimates beside those of complete cases, and sensitivity analyses.

    Parameters
    ----------
    analyses : Analyses or PooledResults, optional
        Of `MultipleImputation.analyse`; pooled results have no complete cases beside them.
    sensitivity : TippingPoint, AssumptionComparison or sequence of both, optional
        At most one of each.

    Returns
    -------
    ResultsData
        As the schema of the report describes it.
    """
    tipping, comparison = read_sensitivity(sensitivity)
    pooled = _pooled(analyses)
    return {
        "m": None if pooled is None else pooled.m,
        "dfcom": None if pooled is None else number(pooled.dfcom),
        "df_rule": None if pooled is None else _df_rule(pooled),
        "estimates": [] if pooled is None else _estimates(pooled, _complete_cases(analyses)),
        "assumptions": [] if comparison is None else _assumptions(comparison),
        "assumptions_sentence": None if comparison is None else _sentence(comparison),
        "tipping": None if tipping is None else tipping_data(tipping),
    }


def imputations_needed(found: ResultsData) -> tuple[int, float] | None:
    """Return the number of imputations that `how_many` gives, and the largest fmi; None if unknown.

    The number is for standard errors with a coefficient of variation of 0.05.
    """
    fmi = np.array([one["fmi"] for one in found["estimates"] if one["fmi"] is not None])
    if not fmi.size or found["m"] is None:
        return None
    high = how_many.fmi_upper_limit(fmi, found["m"], how_many.CONF_LEVEL)
    return int(how_many.imputations_needed(high, how_many.CV).max()), float(fmi.max())


def read_sensitivity(given: Any) -> tuple[TippingPoint | None, AssumptionComparison | None]:
    """Return the tipping point and the comparison of assumptions among what was given."""
    each = list(given) if isinstance(given, list | tuple) else [given]
    each = [one for one in each if one is not None]
    if wrong := [one for one in each if not isinstance(one, Sensitivity)]:
        raise TypeError(
            "sensitivity must be what psmvae.tipping_point or psmvae.compare_assumptions returns, "
            f"or a list of both, got {type(wrong[0]).__name__}."
        )
    tipping = [one for one in each if isinstance(one, TippingPoint)]
    comparison = [one for one in each if isinstance(one, AssumptionComparison)]
    if len(tipping) > 1 or len(comparison) > 1:
        raise ValueError(
            "sensitivity takes one tipping point and one comparison of assumptions at most, got "
            f"{len(tipping)} and {len(comparison)}."
        )
    return next(iter(tipping), None), next(iter(comparison), None)


def _pooled(analyses: Any) -> PooledResults | None:
    if analyses is None or isinstance(analyses, PooledResults):
        return analyses
    if not isinstance(analyses, Analyses):
        raise TypeError(
            "analyses must be what MultipleImputation.analyse returns, or its pooled results, got "
            f"{type(analyses).__name__}."
        )
    with quiet_warnings():
        # the summary of the report has it
        warnings.simplefilter("ignore", MissingInformationWarning)
        return analyses.pool()


def _df_rule(pooled: PooledResults) -> Literal["barnard-rubin", "rubin"]:
    """Return the rule of the degrees of freedom, which pooled results do not keep."""
    p = pooled.pooled
    expected = rubin.degrees_of_freedom(pooled.m, p.lambda_, pooled.dfcom)
    is_adjusted = np.isfinite(pooled.dfcom) and np.allclose(p.df, expected, equal_nan=True)
    return "barnard-rubin" if is_adjusted else "rubin"


def _complete_cases(analyses: Any) -> dict[str, Inference]:
    """Return the inference of complete cases by term; empty where it cannot be made."""
    if not isinstance(analyses, Analyses) or analyses.source is None:
        return {}
    try:
        with quiet_warnings():
            warnings.simplefilter("ignore")
            found = analyses.complete_cases()
    except Exception:  # noqa: BLE001 (an analysis of few rows may raise anything)
        return {}
    return single_inference(found, alpha=ALPHA, null=0.0, dfcom=None)


def _estimates(pooled: PooledResults, complete: dict[str, Inference]) -> list[EstimateRow]:
    columns = nw.from_native(pooled.summary(), eager_only=True).to_dict(as_series=False)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [
        {
            "term": row["term"],
            "estimate": row["estimate"],
            "std_error": number(row["std_error"]),
            "df": number(row["df"]),
            "p_value": number(row["p_value"]),
            "conf_low": number(row["conf_low"]),
            "conf_high": number(row["conf_high"]),
            "fmi": number(row["fmi"]),
            "complete_cases": _limits(complete.get(row["term"])),
        }
        for row in rows
    ]


def _limits(one: Inference | None) -> list[float] | None:
    if one is None:
        return None
    found = [one.estimate, one.conf_low, one.conf_high]
    return found if all(map(math.isfinite, found)) else None


def _assumptions(comparison: AssumptionComparison) -> list[AssumptionRow]:
    pairs = zip(comparison.assumptions, comparison.results, strict=True)
    return [
        {
            "assumption": assumption,
            "term": term,
            "estimate": result[term].estimate,
            "conf_low": result[term].conf_low,
            "conf_high": result[term].conf_high,
            "p_value": number(result[term].p_value),
            "null": float(comparison.null),
            "alpha": float(comparison.alpha),
        }
        for assumption, result in pairs
        for term in comparison.terms
    ]


def _sentence(comparison: AssumptionComparison) -> str:
    """Return the sentence of the first term that is not an intercept."""
    slopes = [term for term in comparison.terms if term not in INTERCEPTS]
    return comparison.sentence((slopes or list(comparison.terms))[0])


def tipping_data(found: TippingPoint) -> TippingData:
    """Return a tipping point analysis; of more than two groups, the others are not shifted."""
    neutral = [int(np.abs(axis - found.neutral).argmin()) for axis in found.axes[N_AXES:]]
    at: Any = (..., *neutral)

    def grid(values: NDArray[Any]) -> NDArray[Any]:
        kept = np.asarray(values[at])
        return kept[:, None] if kept.ndim == 1 else kept

    results = {name: grid(values) for name, values in found.results.items()}
    return {
        "column": found.column,
        "term": found.term,
        "operation": found.operation,
        "null": float(found.null),
        "alpha": float(found.alpha),
        "neutral": found.neutral,
        "axes": [axis.tolist() for axis in found.axes[:N_AXES]],
        "groups": [str(group) for group in found.groups[:N_AXES]],
        "estimate": results["estimate"].tolist(),
        "conf_low": results["conf_low"].tolist(),
        "conf_high": results["conf_high"].tolist(),
        "p_value": [[number(value) for value in row] for row in results["p_value"]],
        "margin": grid(found.margin).tolist(),
        "holds": grid(found.holds).tolist(),
        "points": list(found.turns),
        "sentence": found.sentence(),
    }
