"""Tables of benchmarks on pages of the documentation, between comments that mark their place."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def marks(name: str) -> tuple[str, str]:
    """The comments before and after the table of a benchmark."""
    script = f"benchmarks/{name}.py"
    return f"<!-- table of {script}: begin -->", f"<!-- table of {script}: end -->"


def marked(name: str, table: str) -> str:
    """The table of a benchmark with its comments."""
    begin, end = marks(name)
    return f"{begin}\n\n{table}\n\n{end}"


def write_page(page: Path, name: str, table: str) -> None:
    """Replace the table of a benchmark on a page.

    Parameters
    ----------
    page : Path
        The page.
    name : str
        The benchmark.
    table : str
        Its new table.

    Raises
    ------
    ValueError
        If the page does not have both comments, once each and in order.
    """
    begin, end = marks(name)
    try:
        before, rest = page.read_text().split(begin)
        _, after = rest.split(end)
    except ValueError:
        raise ValueError(f"{page} needs {begin} and {end}, once each and in order.") from None
    page.write_text(before + marked(name, table) + after)
