"""Tables of estimates as text: an aligned table, Markdown, LaTeX or CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from psmvae.cli.formula_options import Format
from psmvae.cli.text_tables import Rows, csv_text, markdown

if TYPE_CHECKING:
    from psmvae.multiple import PooledTest

Columns = Mapping[str, tuple[str, Callable[[Any], str]]]
_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}  # fmt: skip


def show_number(value: float) -> str:
    """Return a number with four digits after the point, or four significant ones."""
    return f"{value:.4g}" if abs(value) < 1e-3 or abs(value) >= 1e5 else f"{value:.4f}"


def show_p_value(value: float, equals: str = "") -> str:
    """Return a p-value as it is reported."""
    return "< 0.001" if value < 0.001 else f"{equals}{value:.3f}"


def show_df(value: float) -> str:
    """Return degrees of freedom; very many are those of a Normal or χ² distribution."""
    return f"{value:.1f}" if value < 1e9 else "inf"


# Columns of a table by their headings: name in the summary, and how a value is shown.
ESTIMATES: Columns = {
    "estimate": ("estimate", show_number),
    "std. error": ("std_error", show_number),
    "{level} low": ("conf_low", show_number),
    "{level} high": ("conf_high", show_number),
}
# What an article reports of a pooled summary.
POOLED: Columns = {
    "term": ("term", str),
    **ESTIMATES,
    "statistic": ("statistic", show_number),
    "df": ("df", show_df),
    "p": ("p_value", show_p_value),
    "fmi": ("fmi", lambda value: f"{value:.3f}"),
}


def formatted(
    columns: Mapping[str, Sequence[Any]], shown: Columns, how: Format, *, conf_level: float
) -> str:
    """Return columns as text that ends with a line break.

    ``shown`` are the columns of a readable table; CSV has all, with all digits.
    """
    if how is Format.CSV:
        return csv_text(columns)
    rows = _readable(columns, shown, conf_level)
    if how is Format.MARKDOWN:
        return markdown(rows)
    return _latex(rows) if how is Format.LATEX else _aligned(rows)


def describe_test(hypothesis: str, method: str, test: PooledTest) -> str:
    """Return the result of a test as one line."""
    return (
        f"{method} test of {hypothesis}: "
        f"F({test.df1:.0f}, {show_df(test.df2)}) = {test.statistic:.3f}, "
        f"p {show_p_value(test.p_value, equals='= ')}, riv = {test.riv:.3f}"
    )


def _readable(columns: Mapping[str, Sequence[Any]], shown: Columns, conf_level: float) -> Rows:
    """Return the shown columns, rounded, with their headings in the first row."""
    level = f"{100 * conf_level:g}%"
    headings = [heading.format(level=level) for heading in shown]
    cells = [[show(value) for value in columns[name]] for name, show in shown.values()]
    return [headings, *(list(row) for row in zip(*cells, strict=True))]


def _aligned(rows: Rows) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        numbers = [cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *numbers]))
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:], ""])


def _latex(rows: Rows) -> str:
    lines = [" & ".join(_escaped(cell) for cell in row) + r" \\" for row in rows]
    alignment = "l" + "r" * (len(rows[0]) - 1)
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _escaped(cell: str) -> str:
    escaped = re.sub(r"[\\~^&%$#_{}]", lambda match: _LATEX[match[0]], cell)
    return escaped.replace("<", "$<$")
