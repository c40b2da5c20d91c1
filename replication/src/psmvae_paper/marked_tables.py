"""Generated tables inside hand-written Markdown pages, between HTML comments.

Examples
--------
>>> print(marked("readings", "| table |"))
<!-- table of scripts/readings.py: begin -->
<BLANKLINE>
| table |
<BLANKLINE>
<!-- table of scripts/readings.py: end -->
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["marked", "marks", "replace_table"]


def marks(script: str) -> tuple[str, str]:
    """Return the comments before and after the table of a script.

    Parameters
    ----------
    script : str
        The name of the script without its folder and suffix.

    Returns
    -------
    begin, end : str
        The comments.
    """
    file = f"scripts/{script}.py"
    return f"<!-- table of {file}: begin -->", f"<!-- table of {file}: end -->"


def marked(script: str, table: str) -> str:
    """Return a table between its marks.

    Parameters
    ----------
    script : str
        The name of the script.
    table : str
        The table as Markdown.

    Returns
    -------
    str
        The text on the page.
    """
    begin, end = marks(script)
    return f"{begin}\n\n{table}\n\n{end}"


def replace_table(page: Path, script: str, table: str) -> None:
    """Replace the table of a script on a page.

    Parameters
    ----------
    page : Path
        The Markdown file.
    script : str
        The name of the script.
    table : str
        The new table.

    Raises
    ------
    ValueError
        If the page does not have both marks once and in order; it is left unchanged.
    """
    begin, end = marks(script)
    try:
        before, rest = page.read_text(encoding="utf-8").split(begin)
        _, after = rest.split(end)
    except ValueError:
        raise ValueError(f"{page} must have {begin} and {end}, once each and in order.") from None
    page.write_text(before + marked(script, table) + after, encoding="utf-8")
