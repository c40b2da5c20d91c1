"""Numbers and results in words, as in the text of an article."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from psmvae.mechanism.settings import SelfMask
from psmvae.multiple.shift import Odds, read_value
from psmvae.sensitivity.inference import Inference

_BASES = {
    "complete cases": "in complete cases",
    "mar": "if missing at random",
    "latent": "if latent variables determine what is missing",
    "self": "if each value affects its own missingness",
    "auto": "with a correction where values explain their own missingness",
}

# Terms that are the names of statistics and not of variables.
_STATISTICS = frozenset(["mean", "median", "difference", "proportion", "variance", "correlation"])


def number(value: float) -> str:
    """Return a number with three significant digits, without an exponent where it is readable."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = 2 - math.floor(math.log10(abs(value)))
    if not -3 <= decimals <= 6:
        return f"{value:.3g}"
    return f"{value:.{max(decimals, 0)}f}"


def rounded(value: float, error: float) -> str:
    """Return a number with as many decimals as its standard error has at two digits."""
    if not (math.isfinite(error) and 1e-6 < error < 1e6):
        return number(value)
    return f"{value:.{max(0, 1 - math.floor(math.log10(error)))}f}"


def size(value: float, error: float) -> str:
    """Return a difference as `rounded` does, and one that is not zero never as zero."""
    text = rounded(value, error)
    return number(value) if value != 0 and float(text) == 0 else text


def exact(value: float) -> str:
    """Return a value that a user gave, without trailing zeros."""
    return f"{value:.6g}"


def p_value(p: float) -> str:
    """Return ``p < 0.001`` or ``p = 0.012``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def percent(part: float) -> str:
    """Return a level, as 95 %."""
    return f"{100 * part:g} %"


def estimate(one: Inference, alpha: float, error: float) -> str:
    """Return an estimate with its interval and p-value, with the decimals for an error."""
    value, low, high = (
        rounded(each, error) for each in (one.estimate, one.conf_low, one.conf_high)
    )
    return f"{value} ({percent(1 - alpha)} CI {low} to {high}; {p_value(one.p_value)})"


def quantity(term: str) -> str:
    """Return what is estimated, by the name of its term."""
    if term == "estimate":
        return "the estimate"
    return f"the estimated {term}" if term in _STATISTICS else f"the estimate of {term}"


def conclusion(one: Inference, null: float, alpha: float) -> str:
    """Return what is concluded from an estimate."""
    level = f"at the {percent(alpha)} level"
    if not one.p_value < alpha:
        return f"no evidence of a difference from {exact(null)} {level}"
    side = "above" if one.estimate > null else "below"
    return f"a value {side} {exact(null)} {level}"


def assumption(base: Any, shift: Mapping[str, Any] | None) -> str:
    """Return an assumption of `compare_assumptions`, as a clause after an estimate."""
    if isinstance(base, SelfMask):
        text = _self_mask(base)
    elif isinstance(base, str):
        text = _BASES.get(base, f"with the mask model {base}")
    else:
        text = f"under {base!r}"
    if shift is None:
        return text
    words = [part for column, value in shift.items() for part in _shifted(str(column), value)]
    return f"{text} and then {' and '.join(words)}"


def _self_mask(mask: SelfMask) -> str:
    if mask.columns is None:
        text = _BASES["self"]
    else:
        several = len(mask.columns) > 1
        how = "are missing by their own values" if several else "is missing by its own value"
        text = f"if {' and '.join(mask.columns)} {how}"
    details = []
    if mask.sign is not None:
        details.append(f"{mask.sign} values more often")
    if isinstance(mask.slope, tuple):
        details.append(f"slope {mask.slope[0]:.6g} with standard deviation {mask.slope[1]:.6g}")
    elif mask.slope is not None:
        details.append(f"slope {mask.slope:.6g}")
    if mask.shape != "auto":
        details.append(f"{mask.shape} log odds")
    if mask.shadow is not None:
        details.append(f"shadow variables {', '.join(mask.shadow)}")
    return f"{text} ({', '.join(details)})" if details else text


def _shifted(column: str, value: Any) -> list[str]:
    """Return the shifts of a column in words, one for each condition."""
    if isinstance(value, Mapping):
        return [
            f"{part} where {condition}"
            for condition, one in value.items()
            for part in _shifted(column, one)
        ]
    read = read_value(column, value)
    if isinstance(read, Odds):
        level = "" if read.level is None else f"{read.level} in "
        return [f"the odds of {level}{column} multiplied by {exact(read.factor)}"]
    if read.factor != 1:
        return [f"{column} multiplied by {exact(read.factor)}"]
    return [f"{column} shifted by {exact(read.amount)}"]
