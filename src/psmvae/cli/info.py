"""``psmvae info``: the contents of a model file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table
from rich.text import Text

from psmvae.cli.files import check_input
from psmvae.cli.streams import StdoutConsole

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console


def info(path: Path, *, as_json: bool) -> None:
    """Print the description of a model file on standard output."""
    check_input(path)
    from psmvae.imputers import load

    description = load(path).describe()
    if as_json:
        typer.echo(json.dumps(description, indent=2))
        return
    console = StdoutConsole()
    for name, value in description.items():
        _print(console, name, value)


def _print(console: Console, name: str, value: Any, indent: str = "") -> None:
    """Print one entry: a list of records as a table, a dictionary indented, others on a line."""
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        console.print(_records(name, value))
    elif isinstance(value, dict) and value:
        console.print(Text(f"{indent}{name}:"))
        for key, one in value.items():
            _print(console, key, one, indent + "  ")
    else:
        console.print(Text(f"{indent}{name}: {_readable(value)}"), soft_wrap=True)


def _records(name: str, records: list[dict[str, Any]]) -> Table:
    table = Table(title=name, title_justify="left")
    keys = list(dict.fromkeys(key for record in records for key in record))
    for key in keys:
        # only sentences are wrapped
        table.add_column(Text(key.replace("_", " ")), no_wrap=key != "reason")
    for record in records:
        table.add_row(*(Text(_readable(record.get(key))) for key in keys))
    return table


def _readable(value: Any) -> str:
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
        case list() | tuple():
            return ", ".join(_readable(one) for one in value) if value else "–"
        case dict():
            return ", ".join(f"{key} {_readable(one)}" for key, one in value.items()) or "–"
    return str(value)
