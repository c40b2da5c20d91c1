"""Write a table of texts as plain text, Markdown, CSV or LaTeX.

pandas could write the same four formats, but its ``to_markdown`` needs tabulate and its
``to_latex`` needs jinja2, two dependencies for a dozen lines each, and neither marks single cells
as the best nor adds notes and captions. CSV is written by the `csv` module.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["FORMATS", "MISSING", "ResultTable", "decimals"]

MISSING = "–"


@dataclass(frozen=True)
class ResultTable:
    """A table of texts.

    Parameters
    ----------
    title : str
        The title.
    head : sequence of str
        The names of the columns, including that of the first column, the names of the rows.
    body : sequence of sequences of str
        The rows.
    bold : set of (int, int)
        Row and column, as in `body`, of the best cells, which are marked.
    notes : sequence of str
        Sentences below the table.
    facts : sequence of dict
        The unrounded values in long format, for CSV; `body` is written if empty.
    mark : str, default="the best of its column"
        The meaning of `bold`.

    Examples
    --------
    >>> body = [["mean", ".17"], ["MICE", ".09"]]
    >>> table = ResultTable("Errors", ["method", "wine"], body, {(1, 1)})
    >>> print(table.write("md"))
    **Errors**
    <BLANKLINE>
    | method | wine |
    | --- | ---: |
    | mean | .17 |
    | MICE | **.09** |
    """

    title: str
    head: Sequence[str]
    body: Sequence[Sequence[str]]
    bold: frozenset[tuple[int, int]] | set[tuple[int, int]] = frozenset()
    notes: Sequence[str] = ()
    facts: Sequence[Mapping[str, Any]] = ()
    mark: str = "the best of its column"

    def write(self, how: str) -> str:
        """Return the table as a text without a final newline.

        Parameters
        ----------
        how : {"text", "md", "csv", "tex"}
            The format.

        Returns
        -------
        str
            The table.

        Raises
        ------
        ValueError
            If the format is unknown.
        """
        if how not in FORMATS:
            message = f"how must be one of {', '.join(FORMATS)}, got {how!r}"
            raise ValueError(message)
        return FORMATS[how](self)


def decimals(value: float | None, *, digits: int = 4, sign: bool = False) -> str:
    """Format a number with no zero before the point, as the paper does.

    Parameters
    ----------
    value : float or None
        The number.
    digits : int, default=4
        Digits after the point.
    sign : bool, default=False
        Whether a plus sign is shown.

    Returns
    -------
    str
        The text; a dash for None.

    Examples
    --------
    >>> decimals(0.07384), decimals(-0.5, digits=2), decimals(0.02, sign=True), decimals(None)
    ('.0738', '-.50', '+.0200', '–')
    """
    if value is None:
        return MISSING
    text = f"{value:{'+' if sign else ''}.{digits}f}"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text


def _text(table: ResultTable) -> str:
    starred = {j for _, j in table.bold}

    def marked(row: Sequence[str], i: int = -1) -> list[str]:
        # cells without a star are padded, so that digits stay aligned
        ends = [" *" if (i, j) in table.bold else "  " for j in range(len(row))]
        return [text + ends[j] if j in starred else text for j, text in enumerate(row)]

    rows = [marked(table.head), *(marked(row, i) for i, row in enumerate(table.body))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            text.rjust(width) if j else text.ljust(width)
            for j, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "-" * max(map(len, lines)))
    notes = [f"* {table.mark}"] if table.bold else []
    notes += table.notes
    return "\n".join([table.title, "", *lines, *([""] if notes else []), *notes])


def _markdown(table: ResultTable) -> str:
    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in row) + " |"

    lines = [line(table.head), "| --- |" + " ---: |" * (len(table.head) - 1)]
    for i, row in enumerate(table.body):
        marked = [f"**{text}**" if (i, j) in table.bold else text for j, text in enumerate(row)]
        lines.append(line(marked))
    parts = ([f"**{table.title}**"] if table.title else []) + ["\n".join(lines), *table.notes]
    return "\n\n".join(parts)


def _csv(table: ResultTable) -> str:
    written = io.StringIO()
    if table.facts:
        writer = csv.DictWriter(written, list(table.facts[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table.facts)
    else:
        plain = csv.writer(written, lineterminator="\n")
        plain.writerow(table.head)
        plain.writerows(table.body)
    return written.getvalue().removesuffix("\n")


_TEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": "$<$",
    ">": "$>$",
    "±": r"$\pm$",
    "–": "--",
    "π": r"$\pi$",
    "→": r"$\to$",
    "−": "$-$",
}


def _tex(table: ResultTable) -> str:
    def cell(text: str, *, bold: bool = False) -> str:
        escaped = "".join(_TEX.get(character, character) for character in text)
        return rf"\textbf{{{escaped}}}" if bold else escaped

    def line(row: Sequence[str], i: int = -1) -> str:
        cells = (cell(text, bold=(i, j) in table.bold) for j, text in enumerate(row))
        return " & ".join(cells) + r" \\"

    rows = [line(row, i) for i, row in enumerate(table.body)]
    caption = ". ".join(text for text in (table.title, " ".join(table.notes)) if text)
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{cell(caption)}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(table.head) - 1)}}}",
        r"\toprule",
        line(table.head),
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


FORMATS: dict[str, Callable[[ResultTable], str]] = {
    "text": _text,
    "md": _markdown,
    "csv": _csv,
    "tex": _tex,
}
