"""Tables as Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Sequence[str]]


def markdown(rows: Rows) -> str:
    """Return rows as a Markdown table; the first row has the names."""
    lines = [" | ".join(cell.replace("|", r"\|") for cell in row) for row in rows]
    rule = " | ".join(["---", *["---:"] * (len(rows[0]) - 1)])
    return "".join(f"| {line} |\n" for line in (lines[0], rule, *lines[1:]))


def csv_text(columns: Mapping[str, Sequence[Any]]) -> str:
    """Return columns as CSV with all digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
