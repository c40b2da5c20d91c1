"""Tables of benchmarks on the pages of the documentation, between marks."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def marked(name: str, table: str) -> str:
    """A benchmark's table as it stands on a page."""
    begin, end = (f"<!-- table of benchmarks/{name}.py: {part} -->" for part in ("begin", "end"))
    return f"{begin}\n\n{table}\n\n{end}"


def write_page(page: Path, name: str, table: str) -> None:
    """Put the table between its marks."""
    text = page.read_text()
    begin, end = marked(name, "").split("\n\n\n\n")
    before, after = text.split(begin)[0], text.split(end)[1]
    page.write_text(before + marked(name, table) + after)
