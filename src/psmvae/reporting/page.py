"""The page of a report: one HTML file that loads nothing, or a fragment for a notebook.

The template of the body is the same for both. Everything in it is text and is escaped, except the
SVG elements, whose text the drawing has escaped, and the style sheet and the script of this
package.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from psmvae._version import __version__
from psmvae.multiple.convergence import HIGH_R_HAT
from psmvae.multiple.pooling import HIGH_FMI
from psmvae.reporting.filters import FILTERS

if TYPE_CHECKING:
    from jinja2 import Environment

    from psmvae.reporting.figures import Figure
    from psmvae.reporting.schema import ReportData

N_OPEN_CARDS = 12
"""Columns whose cards are open; those of the other columns are folded."""
SHORT_LABELS = ("How much", "In which rows", "Why", "How well", "Beware")
"""What the five sentences answer."""


class _Section(NamedTuple):
    id: str
    title: str
    needs: str

    @property
    def template(self) -> str:
        return f"{self.id}.html.j2"

    def is_given(self, data: Mapping[str, Any]) -> bool:
        return data[self.needs] is not None


SECTIONS = (
    _Section("short", "In short", "summary"),
    _Section("missing", "What is missing", "missing"),
    _Section("why", "Why", "mechanism"),
    _Section("imputed", "What was imputed", "imputed"),
    _Section("believe", "Can it be believed", "validation"),
    _Section("follows", "What follows", "results"),
    _Section("write", "How to write it up", "methods"),
)
_PAGE = {"report": "div", "header": "header", "main": "main", "footer": "footer"}
# landmarks of a page have no place in that of a notebook
_FRAGMENT = {"report": "article", "header": "div", "main": "div", "footer": "div"}
_PAGE_STYLE = "html, body { margin: 0; background: Canvas; }\n.psm-report { min-height: 100vh; }\n"


# Pictures that are left out of a page that would be too large, the first ones first. The numbers
# that they show are in tables.
_OPTIONAL = ("strip", "predictors", "overimputation", "trace", "odds", "density", "bars", "row-map")
MAX_BYTES = 1_500_000
"""Size of a page."""


def to_html(data: ReportData, figures: Mapping[str, Figure]) -> str:
    """Return the page of a report.

    Parameters
    ----------
    data : dict
        The data of the report.
    figures : mapping of str to Figure
        SVG elements by name; parts without a figure are left out.

    Returns
    -------
    str
        A whole HTML document.
    """
    from markupsafe import Markup

    style, script = _PAGE_STYLE + _asset("style.css"), _closure("connect(document);")
    policy = (
        "default-src 'none'; img-src data:; "
        f"style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    # text of this package, which must reach the browser unchanged: the policy has its hash
    own = {"style": Markup(style), "script": Markup(script), "policy": Markup(policy)}  # noqa: S704
    return _fitting("page.html.j2", data, figures, frame=_PAGE, **own)


def to_snippet(data: ReportData, figures: Mapping[str, Figure]) -> str:
    """Return a fragment of HTML for a notebook or another page.

    The report is in a shadow root, so that styles, identifiers and scripts of the page and of
    other reports are separate. A parser makes the root from the template; where HTML is inserted
    by a script, as in Jupyter, the fragment's own script does.

    Parameters
    ----------
    data : dict
        The data of the report.
    figures : mapping of str to Figure
        SVG elements by name; parts without a figure are left out.

    Returns
    -------
    str
        An element with a new identifier, and a script.
    """
    from markupsafe import Markup

    host = f"psm-{secrets.token_hex(8)}"
    own = {
        "host": host,
        "style": Markup(_asset("style.css")),  # noqa: S704 text of this package
        "script": Markup(_closure(f"connect(shadow('{host}'));")),  # noqa: S704
    }
    return _fitting("snippet.html.j2", data, figures, frame=_FRAGMENT, **own)


def _fitting(template: str, data: ReportData, figures: Mapping[str, Figure], **more: Any) -> str:
    """Render with as many figures as `MAX_BYTES` allows."""
    kept = dict(figures)
    html = _render(template, data, kept, n_left_out=0, **more)
    excess = len(html.encode()) - MAX_BYTES
    if excess <= 0:
        return html
    # room for the sentence that says so
    excess += 1_000
    # of one kind the last first: the first columns have the highest missing rates
    last_first = list(figures)[::-1]
    for name in sorted(last_first, key=_necessity):
        if excess > 0 and _necessity(name) < len(_OPTIONAL):
            excess -= len(kept.pop(name).svg.encode())
    return _render(template, data, kept, n_left_out=len(figures) - len(kept), **more)


def _necessity(name: str) -> int:
    """Place in the order in which figures are left out; those that stay come last."""
    kind = re.sub(r"-\d+$", "", name)
    return _OPTIONAL.index(kind) if kind in _OPTIONAL else len(_OPTIONAL)


def _render(template: str, data: ReportData, figures: Mapping[str, Figure], **more: Any) -> str:
    sections = [
        {"id": one.id, "title": one.title, "template": one.template, "given": one.is_given(data)}
        for one in SECTIONS
    ]
    html = (
        _environment()
        .get_template(template)
        .render(
            data=data,
            figures=figures,
            sections=sections,
            short_labels=SHORT_LABELS,
            n_open_cards=N_OPEN_CARDS,
            high_fmi=HIGH_FMI,
            high_r_hat=HIGH_R_HAT,
            version=__version__,
            **more,
        )
    )
    return printable(html)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("psmvae.reporting"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(FILTERS)
    # the drawing has escaped the text in its elements
    environment.globals.update(svg=lambda figure: Markup(figure.svg))  # noqa: S704
    return environment


@cache
def _asset(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None  # noqa: S101 set above
    return environment.loader.get_source(environment, name)[0]


def _closure(call: str) -> str:
    """The script with a call at its end, in a scope of its own."""
    return f'(() => {{\n"use strict";\n{_asset("script.js")}{call}\n}})();\n'


def _hash(text: str) -> str:
    """The source expression of an inline element in a Content-Security-Policy."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


# Control characters, lone surrogates and non-characters are no HTML; explicit directions (U+202A
# to U+202E, U+2066 to U+2069) would reorder the text around a name.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def printable(text: str) -> str:
    """Return text with characters that HTML cannot hold replaced by their code points."""
    return _UNPRINTABLE.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)
