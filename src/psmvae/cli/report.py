"""The commands that show something: a model file's contents, and the demo."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from psmvae.cli.terminal import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from psmvae.cli.terminal import Terminal
    from psmvae.demo import Study

# The demo with --quick: enough to see every step work, not to see it work well.
_QUICK_PATIENTS, _QUICK_EPOCHS = 200, 10
_PATIENTS = 800

_ABOUT_SETS = (
    "Pattern sets against the true kinds of drop-out (none, administrative, bad outcome): "
    "{study.accuracy:.0%} of the patients agree, adjusted Rand index {study.rand_index:.2f}. "
    "Staying and leaving because of a bad outcome may share a set: their masks differ in one cell."
)
_ABOUT_COMPARISON = (
    "PSMVAE was told that the outcome may go missing by its own value, which the others cannot be."
)


def demo(folder: Path, *, seed: int, quick: bool, device: str, terminal: Terminal) -> None:
    """Run the demo, write its files and print its table on standard output."""
    from psmvae.demo import check_folder, run_study, write_files

    check_folder(folder)
    n = _QUICK_PATIENTS if quick else _PATIENTS
    terminal.say(f"Simulating a trial of {n} patients and imputing it")
    with terminal.training() as callback:
        study = run_study(
            n=n,
            seed=seed,
            max_epochs=_QUICK_EPOCHS if quick else None,
            device=device,
            callback=callback,
        )
    paths = write_files(study, folder)
    console = Console()
    console.print(_comparison(study))
    for text in (_ABOUT_SETS.format(study=study), _ABOUT_COMPARISON):
        console.print(Text(text))
    terminal.say(f"PSMVAE took {study.seconds:.0f} s")
    terminal.say(f"wrote {', '.join(str(path) for path in paths)}")


def _comparison(study: Study) -> Table:
    trial = study.trial
    table = Table(
        title=f"A trial of {len(trial.m)} patients, {(~trial.m).sum()} missing cells",
        caption="RMSE in standard deviations; bias in points of the 0-100 score",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("method")
    table.add_column("RMSE\nall missing cells", justify="right")
    table.add_column("RMSE outcome,\nleft because bad", justify="right")
    table.add_column("bias of the\noutcome's mean", justify="right")
    for score in study.scores:
        rmse = [
            "–" if value is None else f"{value:.3f}" for value in (score.rmse, score.rmse_outcome)
        ]
        table.add_row(score.method, *rmse, f"{score.bias:+.2f}")
    return table


def info(path: Path, *, as_json: bool) -> None:
    """Print what a model file holds on standard output."""
    if not path.exists():
        message = f"{path}: no such file"
        raise UsageError(message)
    from psmvae.imputers import load

    facts = load(path).describe()
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    console = Console()
    for name, fact in facts.items():
        _show(console, name, fact)


def _show(console: Console, name: str, fact: Any) -> None:
    """Print one fact: a list of records as a table, a group of facts indented, else a line."""
    if isinstance(fact, list) and fact and isinstance(fact[0], dict):
        table = Table(title=name, title_justify="left")
        for key in fact[0]:
            table.add_column(Text(key.replace("_", " ")))
        for record in fact:
            table.add_row(*(Text(_readable(value)) for value in record.values()))
        console.print(table)
    elif isinstance(fact, dict):
        console.print(Text(f"{name}:"))
        for key, value in fact.items():
            console.print(Text(f"  {key}: {_readable(value)}"), soft_wrap=True)
    else:
        console.print(Text(f"{name}: {_readable(fact)}"), soft_wrap=True)


def _readable(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(_readable(one) for one in value)
    return str(value)
