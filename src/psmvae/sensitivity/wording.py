"""Numbers and results in words, as in the text of an article."""

from __future__ import annotations

import math

from psmvae.sensitivity.inference import Inference


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


def exact(value: float) -> str:
    """Return a value that a user gave, without trailing zeros."""
    return f"{value:.6g}"


def p_value(p: float) -> str:
    """Return ``p < 0.001`` or ``p = 0.012``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def estimate(one: Inference, alpha: float) -> str:
    """Return an estimate with its interval and p-value."""
    value, low, high = (
        rounded(each, one.std_error) for each in (one.estimate, one.conf_low, one.conf_high)
    )
    return f"{value} ({100 * (1 - alpha):g}% CI {low} to {high}; {p_value(one.p_value)})"


def conclusion(one: Inference, null: float, alpha: float) -> str:
    """Return what is concluded from an estimate."""
    level = f"at the {100 * alpha:g}% level"
    if not one.p_value < alpha:
        return f"no evidence of a difference from {exact(null)} {level}"
    side = "above" if one.estimate > null else "below"
    return f"a value {side} {exact(null)} {level}"
