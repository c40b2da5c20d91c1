"""The commands and their options; the work is in :mod:`psmvae.cli.commands`.

Whatever loads torch or pyarrow is imported inside a command, so that ``--help`` stays quick.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from psmvae._version import __version__
from psmvae.cli import arguments as a
from psmvae.cli import options as o
from psmvae.cli.option_groups import expanded
from psmvae.cli.simulate import SimulateOptions, put_holes
from psmvae.cli.source import ModelSource
from psmvae.cli.terminal import Interrupted, Terminal, UsageError, interruptible

if TYPE_CHECKING:
    from collections.abc import Sequence

# typer bundles click in some releases and imports it in others; its own exception leads to either.
_PARSER_ERROR: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

# What the library raises when a table, a model file or the machine is at fault; anything else is
# a bug, and its traceback is the most useful thing to show.
_FAILURES = (ValueError, TypeError, OSError, MemoryError, ImportError, RuntimeError)

app = typer.Typer(
    name="psmvae",
    help="Impute missing values in tables with deep generative models.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit code: 0, 1 if the command failed, 2 if it was called wrongly, 130 after Ctrl-C and
        143 after a termination signal.
    """
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    terminal = Terminal()
    try:
        with interruptible(), terminal.plain_warnings():
            code = app(arguments, prog_name="psmvae", standalone_mode=False)
    except UsageError as error:
        terminal.line(f"error: {error}")
        return 2
    except _PARSER_ERROR as error:
        # One line also where the choices of an option are listed below each other.
        text: str = getattr(error, "format_message", error.__str__)()
        terminal.line(f"error: {' '.join(text.split())}")
        return 2
    except (Interrupted, KeyboardInterrupt) as error:
        terminal.line("error: interrupted")
        return getattr(error, "exit_code", 128 + signal.SIGINT)
    except _FAILURES as error:
        # One line also where scikit-learn or torch write several.
        lines = str(error).split("\n") if str(error) else [type(error).__name__]
        terminal.line("error: " + " ".join(line.strip() for line in lines if line.strip()))
        return 1
    return code if isinstance(code, int) else 0


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"psmvae {__version__}")
        raise typer.Exit


@app.callback()
def common(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Impute missing values in tables with deep generative models."""


@app.command()
@expanded
def impute(
    files: o.Files,
    source: o.ModelFiles,
    model: o.ModelOptions,
    run: o.RunOptions,
    multiple: Annotated[
        int | None,
        typer.Option(
            "--multiple",
            metavar="N",
            min=1,
            show_default=False,
            help="Draw this many imputations instead of the best guess: one long file with a "
            "leading column 'imputation', or one file each if the output's name contains {i}.",
        ),
    ] = None,
    quiet: a.Quiet = False,
) -> None:
    """Fill the missing cells of a table; observed cells stay as they are.

    psmvae impute patients.csv -o filled.csv
    """
    fitted = ModelSource(model, run, source)
    from psmvae.cli import commands

    commands.impute(files, fitted, Terminal(quiet=quiet), multiple=multiple)


@app.command()
@expanded
def fit(files: o.Files, model: o.ModelOptions, run: o.RunOptions, quiet: a.Quiet = False) -> None:
    """Fit a model to a table and write it to a .safetensors file.

    psmvae fit patients.parquet -o model.safetensors
    """
    source = ModelSource(model, run)
    from psmvae.cli import commands

    commands.fit(files, source, Terminal(quiet=quiet))


@app.command()
@expanded
def sets(
    files: o.Files,
    source: o.ModelFiles,
    model: o.ModelOptions,
    run: o.RunOptions,
    quiet: a.Quiet = False,
) -> None:
    """Write the missingness pattern set of each row, with the probability of every set.

    psmvae sets patients.csv -o sets.csv
    """
    fitted = ModelSource(model, run, source)
    from psmvae.cli import commands

    commands.sets(files, fitted, Terminal(quiet=quiet))


@app.command()
def info(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A .safetensors file written by psmvae.")
    ],
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say what a model file holds: columns, settings and how training went.

    psmvae info model.safetensors
    """
    from psmvae.cli import report

    report.info(model, as_json=json)


@app.command()
@expanded
def simulate(files: o.Files, options: SimulateOptions, quiet: a.Quiet = False) -> None:
    """Put holes into a table by a known mechanism, to see how well they are filled.

    psmvae simulate patients.csv -o holes.csv --mechanism mnar-self --columns income --rate 0.2
    """
    put_holes(files, options, Terminal(quiet=quiet))


@app.command()
def demo(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder; an earlier demo's files there are overwritten.",
        ),
    ] = Path("demo"),
    seed: a.Seed = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few epochs on few patients: worse, in seconds.")
    ] = False,
    device: a.Device = "auto",
    quiet: a.Quiet = False,
) -> None:
    """Impute a simulated trial whose truth is known and show how well that went.

    psmvae demo
    """
    from psmvae.cli import report

    report.demo(output, seed=seed, quick=quick, device=device, terminal=Terminal(quiet=quiet))
