"""Fitted mechanisms as arrays and plain values, for model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmvae.chained.state import STANDARDISATION, are_positions, restore_predictors
from psmvae.chained.tilt import LogOdds
from psmvae.chained.trees import Trees
from psmvae.kinds import Column
from psmvae.mechanism.bins import Bins
from psmvae.mechanism.column import Finding, Tilt
from psmvae.mechanism.correction import Correction
from psmvae.mechanism.evidence import BayesFactors
from psmvae.mechanism.features import Features
from psmvae.mechanism.gaussian import Gaussian
from psmvae.mechanism.leaves import Leaves
from psmvae.mechanism.observed import N_RESIDUALS, Observed, Residuals
from psmvae.mechanism.rivals import Likelihoods
from psmvae.mechanism.table import Mechanism

Arrays = dict[str, NDArray[Any]]
BINS = ("edges", "value", "share", "low", "high")
TILTS = ("tilt", "alternative")
# Kinds of the parts of p_obs.
MODEL, RESIDUALS, FOREST = "model", "residuals", "forest"


def state_of(mechanism: Mechanism) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays of a mechanism, and what JSON can hold."""
    predictors = mechanism.features.predictors
    arrays: Arrays = {name: getattr(predictors, name) for name in STANDARDISATION}
    arrays["has_mask"] = mechanism.features.has_mask
    if mechanism.gaussian is not None:
        arrays["gaussian.mean"] = mechanism.gaussian.mean
        arrays["gaussian.covariance"] = mechanism.gaussian.covariance
    findings = {}
    names = [column.name for column in mechanism.columns]
    for name, finding in mechanism.findings.items():
        plain: dict[str, Any] = {
            "likelihoods": [_plain(value) for value in finding.likelihoods],
            "log_bayes_factors": [_plain(value) for value in finding.log_bayes_factors],
            "chosen": finding.chosen,
            "assumed": finding.assumed,
            "n_missing": finding.n_missing,
            "n_rows": finding.n_rows,
            "n_joint": finding.n_joint,
            "tilt": None,
            "alternative": None,
        }
        for key in TILTS:
            if (tilt := getattr(finding, key)) is not None:
                own, plain[key] = _of_tilt(tilt)
                arrays |= {f"{names.index(name)}.{each}": value for each, value in own.items()}
        findings[name] = plain
    return arrays, {
        "levels": [list(each) for each in predictors.levels],
        "findings": findings,
        "gaussian": mechanism.gaussian is not None,
    }


def restore(columns: tuple[Column, ...], arrays: Mapping[str, Any], plain: Any) -> Mechanism:
    """Return the mechanism of `state_of`.

    Raises
    ------
    ValueError
        If the arrays do not fit together.
    """
    try:
        predictors = restore_predictors(columns, plain["levels"], arrays)
        features = Features(predictors, arrays["has_mask"])
        _check(are_positions(features.has_mask, len(columns)), "has_mask")
        names = [column.name for column in columns]
        findings = {}
        for name, one in plain["findings"].items():
            j = names.index(name)
            own = _part(arrays, f"{j}.")
            n_inputs = int((features.group != j).sum()) + max(columns[j].n_levels - 1, 1)
            # a column has at most one of them, whose arrays these are
            tilt, alternative = (
                None
                if one[key] is None
                else _tilt(own, one[key], n_inputs, columns[j].n_levels, len(columns))
                for key in TILTS
            )
            likelihoods, factors = (
                [np.nan if value is None else float(value) for value in one[key]]
                for key in ("likelihoods", "log_bayes_factors")
            )
            findings[name] = Finding(
                Likelihoods(*likelihoods), one["chosen"], bool(one["assumed"]),
                int(one["n_missing"]), int(one["n_rows"]), tilt, int(one["n_joint"]),
                BayesFactors(*factors), alternative,
            )  # fmt: skip
        gaussian = None
        if plain["gaussian"]:
            gaussian = Gaussian(arrays["gaussian.mean"], arrays["gaussian.covariance"])
            n = len(predictors.group) + len(columns)
            _check(gaussian.mean.shape == (n,), "gaussian.mean")
            _check(gaussian.covariance.shape == (n, n), "gaussian.covariance")
        return Mechanism(features, findings, gaussian)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"The mechanism of the file is damaged ({error!r}).") from error


def _of_tilt(tilt: Tilt) -> tuple[Arrays, dict[str, Any]]:
    bins, observed = tilt.bins, tilt.observed
    arrays: Arrays = {
        **{name: getattr(bins, name) for name in BINS},
        "gamma": tilt.gamma,
        "weight": tilt.weight,
        "draws": tilt.draws.gamma,
        "is_straight": tilt.draws.is_straight,
        "mixture": observed.weight,
    }
    kinds = []
    for k, part in enumerate(observed.parts):
        if part is None:
            kinds.append(MODEL)
        elif isinstance(part, Residuals):
            kinds.append(RESIDUALS)
            arrays |= {
                f"part{k}.prediction": part.prediction,
                f"part{k}.residual": part.residual,
                f"part{k}.n_similar": np.array(part.n_similar),
            }
        else:
            kinds.append(FOREST)
            arrays |= {f"part{k}.{key}": v for key, v in Trees.pack([part.trees]).items()}
            arrays[f"part{k}.share"] = part.share
    plain: dict[str, Any] = {
        "family": tilt.family,
        "parts": kinds,
        "missing_with": list(tilt.draws.missing_with),
        "correction": tilt.correction is not None,
    }
    if tilt.correction is not None:
        arrays["coef"] = tilt.correction.coef
        arrays["ridge_coef"] = tilt.correction.ridge_coef
        plain["ridge_intercept"] = tilt.correction.ridge_intercept
        if tilt.correction.trees is not None:
            packed = Trees.pack([tilt.correction.trees])
            arrays |= {f"trees.{key}": value for key, value in packed.items()}
    return arrays, plain


def _tilt(
    arrays: Mapping[str, Any],
    plain: Mapping[str, Any],
    n_inputs: int,
    n_levels: int,
    n_columns: int,
) -> Tilt:
    """Return a tilt of a table with ``n_columns``, whose regressions have ``n_inputs`` inputs."""
    bins = Bins(*(arrays[name] for name in BINS))
    n_bins = len(bins)
    parts: list[Residuals | Leaves | None] = []
    for k, kind in enumerate(plain["parts"]):
        own = _part(arrays, f"part{k}.")
        if kind == MODEL:
            parts.append(None)
        elif kind == RESIDUALS:
            parts.append(_residuals(own))
        else:
            share = own.pop("share")
            trees = Trees.unpack(own, [n_inputs])[0]
            _check(share.ndim == 2 and share.shape[1] == n_bins, "share")
            _check(bool((trees.value >= 0).all() and (trees.value < len(share)).all()), "share")
            parts.append(Leaves(trees, share))
    observed = Observed(bins, tuple(parts), arrays["mixture"])
    together = tuple(int(k) for k in plain["missing_with"])
    _check(all(0 <= k < n_columns for k in together), "missing_with")
    draws = LogOdds(bins.edges, bins.value, arrays["draws"], arrays["is_straight"], together)
    correction = None
    if plain["correction"]:
        packed = _part(arrays, "trees.")
        grown = Trees.unpack(packed, [n_inputs + 1])[0] if packed else None
        correction = Correction(
            arrays["coef"], arrays["ridge_coef"], float(plain["ridge_intercept"]), grown
        )
        _check(correction.coef.shape == (4,), "coef")
        _check(correction.ridge_coef.shape == (n_inputs,), "ridge_coef")
        _check(grown is not None or correction.coef[3] == 0, "trees")
    for name in (*BINS, "gamma", "weight", "draws", "mixture"):
        _check(arrays[name].dtype.kind == "f", name)
    _check(arrays["is_straight"].dtype == bool, "is_straight")
    _check(len(arrays["weight"]) > 0 and len(arrays["is_straight"]) > 0, "weight")
    _check(bool((np.diff(bins.edges) > 0).all()), "edges")
    _check(n_levels in (0, n_bins), "edges")
    _check(arrays["gamma"].shape == (len(arrays["weight"]), n_bins), "gamma")
    _check(arrays["draws"].shape == (len(arrays["is_straight"]), n_bins), "draws")
    _check(arrays["mixture"].shape == (len(parts),), "mixture")
    _check(bins.edges.shape == (n_bins - 1,), "edges")
    for name in ("share", "low", "high"):
        _check(getattr(bins, name).shape == (n_bins,), name)
    return Tilt(
        observed,
        arrays["gamma"],
        arrays["weight"],
        draws,
        correction,
        str(plain["family"]),
    )


def _residuals(arrays: Mapping[str, Any]) -> Residuals:
    made = Residuals(arrays["prediction"], arrays["residual"], int(arrays["n_similar"]))
    n_kept = len(made.prediction)
    _check(made.prediction.ndim == made.residual.ndim == 1, "residual")
    _check(len(made.residual) == (n_kept or N_RESIDUALS), "residual")
    _check(min(n_kept, 1) <= made.n_similar <= n_kept, "n_similar")
    return made


def _part(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the arrays whose names have this prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _check(fits: bool, name: str) -> None:
    if not fits:
        raise ValueError(f"{name} has the wrong shape, type or values.")


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
