"""The commands of ``psmvae-paper`` and their options.

Modules that are slow to load are imported inside a command, so that ``--help`` stays quick.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from psmvae.cli import run_app
from psmvae.cli.arguments import Device, Force, Quiet
from psmvae.cli.option_groups import expanded
from psmvae.cli.terminal import Terminal, UsageError
from psmvae_paper.cli import results as r
from psmvae_paper.cli.progress import RunProgress
from psmvae_paper.cli.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

PAPER = "paper"
# The method that others are compared with by default: the library's default imputer.
DEFAULT = "psmvae"

app = typer.Typer(
    name="psmvae-paper",
    help="Run the paper's experiments and compare the results with the printed ones.",
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
    return run_app(app, "psmvae-paper", argv)


ExperimentName = Annotated[
    str, typer.Argument(metavar="EXPERIMENT", help="A name from `psmvae-paper list`.")
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="FOLDER",
        show_default=False,
        help="The folder with the records; by default `results` if it has any, else the records "
        "of the repository.",
    ),
]
FormatOption = Annotated[r.Format, typer.Option("--format", help="The format of the table.")]
MetricOption = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        show_default=False,
        help="The metric: rmse, accuracy, bias, crps, coverage, width, fit, impute and others.",
    ),
]


@app.callback()
def common() -> None:
    """Run the paper's experiments and compare the results with the printed ones."""


@app.command("list")
def list_experiments() -> None:
    """List the experiments and the methods.

    psmvae-paper list
    """
    from psmvae_paper import EXPERIMENTS, METHODS

    width = max(map(len, [*EXPERIMENTS, *METHODS])) + 2
    lines = ["Experiments", ""]
    for name, one in EXPERIMENTS.items():
        lines.append(f"{name:{width}}{one.title}")
        details = f"{one.source}; {', '.join(one.datasets)}; {len(one.cells()):,} cells"
        lines.append(" " * width + details)
    lines += ["", "Methods", ""]
    lines += [f"{name:{width}}{method.label}" for name, method in METHODS.items()]
    typer.echo("\n".join(lines))


@app.command()
@expanded
def run(
    experiment: ExperimentName,
    selection: Selection,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="The folder of the records; cells that have a record there are skipped.",
        ),
    ] = r.RESULTS,
    data_home: Annotated[
        Path | None,
        typer.Option(
            "--data-home",
            metavar="FOLDER",
            show_default=False,
            help="The folder with the data; by default PSMVAE_DATA_HOME or the user's cache.",
        ),
    ] = None,
    device: Device = "auto",
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            min=1,
            show_default=False,
            help="Processes on the CPU; by default one a core.",
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", metavar="N", min=1, help="Processes that share the GPU.")
    ] = 1,
    retry: Annotated[bool, typer.Option("--retry", help="Run failed cells again.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment; cells that have a record are skipped.

    psmvae-paper run rmse20 --quick
    """
    selected = selection.of(experiment)
    terminal = Terminal(quiet=quiet)
    from psmvae_paper.runner import run as run_experiment

    progress = RunProgress(terminal, quiet=quiet)
    try:
        with progress:
            records = run_experiment(
                selected,
                out,
                data_home=data_home,
                device=device,
                workers=workers,
                processes=processes,
                retry=retry,
                progress=progress.show,
            )
    except (ValueError, FileNotFoundError) as error:
        raise UsageError(" ".join(str(error).split())) from error
    terminal.say(progress.summary())
    command = f"psmvae-paper show {experiment}{selection.options()} --from {shlex.quote(str(out))}"
    terminal.say(f"records in {out}; {command}")
    failed = [record for record in records if record.get("error")]
    if failed:
        message = f"{len(failed)} of {len(records)} cells failed; --retry runs them again; the "
        raise RuntimeError(message + f"first: {failed[0]['error']}")


@app.command()
@expanded
def show(
    experiment: ExperimentName,
    selection: Selection,
    folder: Folder = None,
    metric: MetricOption = None,
    form: FormatOption = r.Format.TEXT,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure", metavar="FILE.png", show_default=False, help="Draw the figure here."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Show the table of an experiment, or draw its figure.

    psmvae-paper show rmse20
    """
    folder = r.folder_or_default(folder)
    records = r.records_in(folder)
    selected = selection.of(experiment, records)
    from psmvae_paper.figures import draw, has_figure
    from psmvae_paper.tables import split_by_dataset, to_table

    grid = r.grid_of(selected, records, folder, metric)
    if figure is None:
        parts = split_by_dataset(grid, selected.title)
        r.print_tables([to_table(part, title) for title, part in parts], form)
        return
    if not has_figure(selected):
        message = f"--figure: {experiment} has a table and no figure"
        raise UsageError(message)
    r.check_file(figure, ".png", "--figure", force=force)
    try:
        notes = draw(selected, records, figure)
    except ValueError as error:
        raise UsageError(f"--figure: {error}") from error
    terminal = Terminal()
    for line in [*notes, f"wrote {figure}"]:
        terminal.say(line)


@app.command()
@expanded
def compare(
    experiment: ExperimentName,
    selection: Selection,
    folder: Folder = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="paper|FOLDER",
            show_default=False,
            help="The paper (default), or the folder of other records.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="METHOD",
            show_default=False,
            help="Compare every method with this one, paired by seed, and rank all; by default "
            "psmvae, beside the paper's figures.",
        ),
    ] = None,
    metric: MetricOption = None,
    form: FormatOption = r.Format.TEXT,
) -> None:
    """Compare results with the paper's, with other records, and methods with each other.

    psmvae-paper compare rmse20 --to paper
    """
    if to is not None and against is not None and form is r.Format.CSV:
        message = "--to and --against: give one of them, since a CSV file holds one table"
        raise UsageError(message)
    folder = r.folder_or_default(folder)
    records = r.records_in(folder)
    selected = selection.of(experiment, records)
    grid = r.grid_of(selected, records, folder, metric)
    from psmvae_paper import compare as c
    from psmvae_paper.tables import split_by_dataset

    title = selected.title
    parts, tables = split_by_dataset(grid, title), []
    if to == PAPER or (to is None and against is None):
        figures = r.paper_of(selected, grid)
        tables += [c.beside_paper(part, figures, name) for name, part in parts]
        if against is None and form is not r.Format.CSV and r.has_one_row(grid, DEFAULT):
            against = DEFAULT
    elif to is not None:
        other = r.grid_of(selected, r.records_in(Path(to)), Path(to), metric)
        tables += [c.beside_other(part, other, name, f"of {to}") for name, part in parts]
    if against is not None:
        row = r.row_of(grid, against)
        others = [one for one in grid.rows if one != row]
        tables.append(c.paired_table(grid, others, row, f"{title}: against {against}"))
        if form is not r.Format.CSV:
            tables.append(c.rank_table(grid, f"{title}: ranks"))
    r.print_tables(tables, form)


@app.command()
def page(
    folder: Folder = None,
    to: Annotated[
        Path, typer.Option("--to", metavar="FILE.md", help="The page; figures go beside it.")
    ] = Path("results.md"),
    force: Force = False,
) -> None:
    """Write all tables and figures on one page, beside the paper's figures.

    psmvae-paper page --to results.md
    """
    folder = r.folder_or_default(folder)
    records = r.records_in(folder)
    from psmvae_paper.page import is_generated, pictures, write_page

    replace = force or is_generated(to)
    r.check_file(to, ".md", "--to", force=replace)
    for picture in filter(Path.exists, pictures(to)):
        r.check_file(picture, ".png", "--to", force=replace)
    try:
        written = write_page(records, to)
    except ValueError as error:
        raise UsageError(f"{folder}: {error}") from error
    Terminal().say(f"wrote {', '.join(map(str, written))}")
