"""The columns of a fitted imputer in words: their kinds, why, and how to change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psmvae.cli.terminal import Terminal
    from psmvae.imputers.base import Imputer
    from psmvae.kinds import Column

# Columns that are listed; `psmvae info` lists all.
MAX_LISTED = 30
# Longest name that is aligned with the others.
_NAME_WIDTH = 24


def list_columns(imputer: Imputer, terminal: Terminal) -> None:
    """Write one line for each column, and how to change its kind."""
    columns = imputer.schema_.columns
    shown = columns[:MAX_LISTED]
    width = min(_NAME_WIDTH, max(len(column.name) for column in shown))
    for column in shown:
        kind = "derived" if column.formula else column.kind
        terminal.say(f"  {column.name:<{width}}  {kind:<11}  {_why(column)}")
    if len(columns) > len(shown):
        terminal.say(f"  and {len(columns) - len(shown):,} more columns (see psmvae info)")
    terminal.say("  change with --kind COLUMN=KIND or --bounds COLUMN=LOW:HIGH")


def list_mechanisms(imputer: Imputer, terminal: Terminal) -> None:
    """Write one line for each column whose values explain their absence, in draws at least."""
    mechanism = getattr(imputer, "mechanism_", None)
    if mechanism is None or not mechanism.drawn_tilts:
        return
    for name in mechanism:
        if mechanism[name].drawn is not None:
            terminal.say(f"  {mechanism.sentence(name)}")
    terminal.say("  this compares explanations and proves none; --mask-model none ignores it")


def _why(column: Column) -> str:
    if column.formula:
        return column.formula
    return "; ".join(text for text in (column.reason, _bounds(column)) if text)


def _bounds(column: Column) -> str:
    low, high = column.low, column.high
    if low is not None and high is not None:
        return f"between {low:g} and {high:g}"
    if low is not None:
        return f"at least {low:g}"
    return "" if high is None else f"at most {high:g}"
