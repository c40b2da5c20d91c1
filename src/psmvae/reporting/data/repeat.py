"""What repeats an analysis: versions, parameters, and the Python code."""

from __future__ import annotations

import inspect
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from psmvae._version import __version__
from psmvae.multiple.imputation import LONG_TABLE
from psmvae.reporting.data.sections import Sections

# Libraries whose version may change results; those that are loaded are listed.
_LIBRARIES = {"numpy": "numpy", "sklearn": "scikit-learn", "torch": "torch"}


def versions() -> dict[str, str]:
    """Return the versions of psmvae, Python and the libraries that are loaded."""
    found = {"psmvae": __version__, "Python": platform.python_version()}
    loaded = {name for module, name in _LIBRARIES.items() if module in sys.modules}
    return found | {name: version(name) for name in _LIBRARIES.values() if name in loaded}


def parameters(imputer: Any) -> dict[str, str]:
    """Return the parameters of an imputer that differ from their defaults, as Python code."""
    if imputer is None:
        return {}
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(type(imputer)).parameters.items()
    }
    given = imputer.get_params(deep=False)
    return {
        name: repr(value)
        for name, value in given.items()
        if name != "random_state" and repr(value) != repr(defaults[name])
    }


def code(
    parts: Sections, title: str, seed: int, pairs: Sequence[tuple[str, str]] | None = None
) -> str:
    """Return Python code that repeats the report; X is the incomplete table."""
    lines = ["import psmvae", ""]
    given = ["X"]
    if parts.imputer is not None:
        chosen = parameters(parts.imputer)
        if parts.seed is None:
            lines.append("# random_state was not an integer: results will differ")
        else:
            chosen["random_state"] = str(parts.seed)
        arguments = ", ".join(f"{name}={value}" for name, value in chosen.items())
        lines.append(f"imputer = psmvae.{parts.imputer_name}({arguments}).fit(X)")
        given.append("imputer=imputer")
        if parts.m is not None:
            lines.append(f"mi = imputer.impute_multiple(X, m={parts.m})")
            given.append("mi=mi")
    elif parts.mi is not None:
        if parts.info.get("source") == LONG_TABLE:
            lines.append("mi = psmvae.MultipleImputation.from_long(...)")
        given.append("mi=mi")
    if parts.results is not None and parts.results["estimates"]:
        lines.append("analyses = mi.analyse(...)")
        given.append("analyses=analyses")
    if parts.results is not None and (parts.results["tipping"] or parts.results["assumptions"]):
        given.append("sensitivity=sensitivity")
    if pairs is not None:
        given.append(f"pairs={[tuple(pair) for pair in pairs]!r}")
    given.append(f"title={title!r}")
    if seed:
        given.append(f"random_state={seed}")
    lines.append(f"psmvae.report({', '.join(given)})")
    return "\n".join(lines)
