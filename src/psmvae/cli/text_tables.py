"""Tables as Markdown and CSV, and the format of an output file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from psmvae.cli.terminal import UsageError

Rows = Sequence[Sequence[str]]
_Format = TypeVar("_Format")


def format_of(output: Path | None, formats: Mapping[str, _Format]) -> _Format:
    """Return the format of an output file by its extension; standard output has none."""
    ending = "" if output is None else output.suffix.lower().removeprefix(".")
    if ending not in formats:
        endings = ", ".join(f".{one}" for one in formats if one)
        raise UsageError(
            f"--output {output}: the extension is none of {endings}; --format writes one of these "
            "formats to any file"
        )
    return formats[ending]


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
