"""Tables of benchmarks on the pages of the documentation, between marks."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def marks(name: str) -> tuple[str, str]:
    """Where a benchmark's table begins and ends."""
    script = f"benchmarks/{name}.py"
    return f"<!-- table of {script}: begin -->", f"<!-- table of {script}: end -->"


def marked(name: str, table: str) -> str:
    """A benchmark's table as it stands on a page."""
    begin, end = marks(name)
    return f"{begin}\n\n{table}\n\n{end}"


def write_page(page: Path, name: str, table: str) -> None:
    """Put the table between its marks.

    Raises
    ------
    ValueError
        If the page has not each of them once, in order.
    """
    begin, end = marks(name)
    try:
        before, rest = page.read_text().split(begin)
        _, after = rest.split(end)
    except ValueError:
        raise ValueError(f"{page} needs {begin} and {end}, once each and in order.") from None
    page.write_text(before + marked(name, table) + after)
