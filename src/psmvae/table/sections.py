"""Results in a table and sentences, as plain text and as HTML for a notebook.

Every object that shows itself describes what it shows by `Section`; `as_text` is its ``repr`` and
`as_html` its ``_repr_html_``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from psmvae.table.numbers import ABSENT

MAX_SHOWN = 20
"""Rows of a table that are shown."""
_WIDTH = 100
_MAX_NAME = 60

# In the colours of the notebook: text and lines are those around it, in light and dark themes. The
# variables have the names of those of a report, which a page may set.
_STYLE = """\
.psm-repr{--psm-muted:color-mix(in srgb,currentColor 75%,transparent);\
--psm-rule:color-mix(in srgb,currentColor 45%,transparent);\
--psm-grid:color-mix(in srgb,currentColor 14%,transparent);\
max-width:60rem;font:400 .875rem/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
.psm-repr h3{margin:.9em 0 .35em;\
font:600 1rem/1.3 Charter,"Bitstream Charter",Cambria,Georgia,serif}
.psm-repr p{margin:.35em 0 .5em;max-width:46rem;overflow-wrap:anywhere}
.psm-repr div{overflow-x:auto}
.psm-repr table{margin:0;border:0;border-collapse:collapse;font-variant-numeric:tabular-nums}
.psm-repr th,.psm-repr td{padding:.2rem 1rem .2rem 0;border:0;background:none;font-weight:400;\
text-align:left;vertical-align:top;overflow-wrap:anywhere}
.psm-repr thead th{color:var(--psm-muted);font-weight:600;border-bottom:1px solid var(--psm-rule);\
overflow-wrap:normal}
.psm-repr tbody tr{border-bottom:1px solid var(--psm-grid);background:none}
.psm-repr .psm-right{text-align:right;white-space:nowrap}"""


@dataclass(frozen=True)
class Section:
    """A heading, a table with its names in the first row, or no rows, and paragraphs."""

    title: str
    rows: Sequence[Sequence[str]]
    paragraphs: Sequence[str]


def shortened(section: Section, source: str = "summary()") -> Section:
    """Return a section with at most `MAX_SHOWN` rows; a paragraph says where the others are."""
    more = len(section.rows) - 1 - MAX_SHOWN
    if more <= 0:
        return section
    left = f"… and {more:,} more row{'' if more == 1 else 's'}; see {source}."
    rows, paragraphs = section.rows[: MAX_SHOWN + 1], [left, *section.paragraphs]
    return replace(section, rows=rows, paragraphs=paragraphs)


def as_text(parts: Sequence[Section]) -> str:
    """Return sections as text without a line break at the end."""
    blocks = []
    for part in parts:
        lines = [part.title, *(f"  {line}" for line in aligned(part.rows))]
        for paragraph in part.paragraphs:
            lines += textwrap.wrap(
                paragraph, _WIDTH, initial_indent="  ", subsequent_indent="  ",
                break_on_hyphens=False,
            )  # fmt: skip
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def as_html(parts: Sequence[Section]) -> str:
    """Return sections as an HTML fragment; all text is escaped."""
    blocks = []
    for part in parts:
        blocks.append(f"<h3>{escape(part.title)}</h3>")
        if part.rows:
            blocks.append(f"<div>{_html_table(part.rows)}</div>")
        blocks += [f"<p>{escape(paragraph)}</p>" for paragraph in part.paragraphs]
    return f'<style>{_STYLE}</style>\n<div class="psm-repr">{"".join(blocks)}</div>'


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines with aligned columns; those whose cells are all numbers to the right."""
    short = [[_short(row[0]), *row[1:]] for row in rows]
    columns = []
    for cells, right in zip(zip(*short, strict=True), _numeric(rows), strict=True):
        width = max(map(len, cells))
        columns.append([cell.rjust(width) if right else cell.ljust(width) for cell in cells])
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def _short(name: str) -> str:
    """Return a name on one line; a long one is cut."""
    line = " ".join(name.split())
    return line if len(line) <= _MAX_NAME else f"{line[: _MAX_NAME - 1]}…"


def _numeric(rows: Sequence[Sequence[str]]) -> list[bool]:
    """Whether all cells of a column, below its name, are numbers or stand for one."""
    return [
        all(cell.lstrip("-<> ")[:1].isdigit() or cell in {ABSENT, "∞", ""} for cell in cells[1:])
        for cells in zip(*rows, strict=True)
    ]


def _html_table(rows: Sequence[Sequence[str]]) -> str:
    classes = [' class="psm-right"' if right else "" for right in _numeric(rows)]

    def line(row: Sequence[str], tags: Sequence[str]) -> str:
        cells = zip(row, tags, classes, strict=True)
        return "".join(f"<{tag}{cls}>{escape(cell)}</{tag[:2]}>" for cell, tag, cls in cells)

    names, *body = rows
    n = len(names)
    head = line(names, ['th scope="col"'] * n)
    tags = ['th scope="row"', *["td"] * (n - 1)]
    lines = "".join(f"<tr>{line(row, tags)}</tr>" for row in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
