"""The commands of ``psmvae`` and their options.

Modules that load torch or pyarrow are imported inside a command, so that ``--help`` is fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from psmvae._version import __version__
from psmvae.cli.analyse_options import AnalyseOptions
from psmvae.cli.arguments import Device, Quiet, SampleRows, Seed
from psmvae.cli.missingness_options import MissingnessOptions
from psmvae.cli.option_groups import expanded
from psmvae.cli.options import (
    EngineOptions,
    Files,
    ModelFiles,
    ModelOptions,
    ModelSource,
    PartOptions,
    RunOptions,
    TableFiles,
)
from psmvae.cli.report_options import ReportOptions
from psmvae.cli.run import run_app
from psmvae.cli.sensitivity_options import SensitivityOptions
from psmvae.cli.simulate_options import SimulateOptions
from psmvae.cli.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

app = typer.Typer(
    name="psmvae",
    help="Impute missing values in tables with deep generative models.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run_app(app, "psmvae", argv)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"psmvae {__version__}")
        raise typer.Exit


@app.callback()
def common(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Impute missing values in tables with deep generative models."""


@app.command()
@expanded
def impute(
    files: TableFiles,
    parts: PartOptions,
    engine: EngineOptions,
    source: ModelFiles,
    model: ModelOptions,
    run: RunOptions,
    multiple: Annotated[
        int | None,
        typer.Option(
            "--multiple",
            metavar="N",
            min=1,
            show_default=False,
            help="Multiple imputation: draw this many completed tables. They are written to one "
            "long file in the format of R's mice, with columns .imp (0: the incomplete table) and "
            ".id, or to one file per imputation if the output's name contains {i}.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Fill the missing cells of a table; observed cells are kept unchanged.

    psmvae impute patients.csv -o filled.csv

    psmvae impute data/*.parquet -m model.safetensors -o filled/
    """
    fitted = ModelSource(model, run, source)
    terminal = Terminal(quiet=quiet)
    if files.are_parts or files.to_folder or parts.given or engine.given:
        from psmvae.cli.parts import impute_parts

        impute_parts(files, fitted, parts, engine, terminal, multiple=multiple)
        return
    from psmvae.cli import commands

    commands.impute(files.single(), fitted, terminal, multiple=multiple)


@app.command()
@expanded
def analyse(options: AnalyseOptions, quiet: Quiet = False) -> None:
    """Fit a model to every imputation of a long file and pool the estimates by Rubin's rules.

    psmvae analyse all.csv --formula "bmi ~ age + chl"
    """
    from psmvae.cli.analyse import analyse

    analyse(options, Terminal(quiet=quiet))


@app.command()
@expanded
def sensitivity(options: SensitivityOptions, quiet: Quiet = False) -> None:
    """Shift the imputed values of a long file step by step, and find where a conclusion turns.

    psmvae sensitivity all.csv --formula "y ~ arm" --column y --delta 0:20:21
    """
    from psmvae.cli.sensitivity import sensitivity

    sensitivity(options, Terminal(quiet=quiet))


@app.command()
@expanded
def fit(
    files: TableFiles,
    engine: EngineOptions,
    model: ModelOptions,
    run: RunOptions,
    sample_rows: SampleRows = None,
    quiet: Quiet = False,
) -> None:
    """Fit a model to a table and write it to a .safetensors file.

    psmvae fit patients.parquet -o model.safetensors

    psmvae fit data/*.parquet -o model.safetensors --sample-rows 500000
    """
    source = ModelSource(model, run)
    terminal = Terminal(quiet=quiet)
    if files.are_parts or sample_rows is not None or engine.given:
        from psmvae.cli.parts import fit_parts

        fit_parts(files, source, engine, terminal, sample_rows=sample_rows)
        return
    from psmvae.cli import commands

    commands.fit(files.single(), source, terminal)


@app.command()
@expanded
def sets(
    files: Files, source: ModelFiles, model: ModelOptions, run: RunOptions, quiet: Quiet = False
) -> None:
    """Write the missingness pattern set of each row and the probability of every set.

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
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Describe a model file: columns, settings and training.

    psmvae info model.safetensors
    """
    from psmvae.cli.info import info

    info(model, as_json=json)


@app.command()
@expanded
def missingness(options: MissingnessOptions, quiet: Quiet = False) -> None:
    """Describe missing cells: rates, patterns, flux, Little's test, and what predicts them.

    psmvae missingness patients.csv
    """
    from psmvae.cli.missingness import missingness

    missingness(options, Terminal(quiet=quiet))


@app.command()
@expanded
def report(
    files: Files,
    source: ModelFiles,
    options: ReportOptions,
    model: ModelOptions,
    run: RunOptions,
    quiet: Quiet = False,
) -> None:
    """Impute a table and write a page on what is missing, why, and what was imputed.

    psmvae report patients.csv -o report.html
    """
    fitted = ModelSource(model, run, source)
    from psmvae.cli.report import report

    report(files, fitted, options, Terminal(quiet=quiet))


@app.command()
@expanded
def simulate(files: Files, options: SimulateOptions, quiet: Quiet = False) -> None:
    """Make cells of a table missing by a known mechanism, to evaluate imputation.

    psmvae simulate patients.csv -o incomplete.csv --mechanism mnar-self --columns income --rate 0.2
    """
    from psmvae.cli.simulate import simulate

    simulate(files, options, Terminal(quiet=quiet))


@app.command()
def demo(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="The output folder; files of an earlier demo are replaced.",
        ),
    ] = Path("demo"),
    seed: Seed = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer patients and epochs: faster and less accurate.")
    ] = False,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Impute a simulated clinical trial with known true values and show the errors.

    psmvae demo
    """
    from psmvae.cli.demo import demo

    demo(output, seed=seed, quick=quick, device=device, terminal=Terminal(quiet=quiet))
