"""``psmvae benchmark``: the paper's experiments, run, shown, compared and written down.

Like the other commands, these import what is slow to load only when they run.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from psmvae_paper.cli import results as r
from psmvae_paper.cli.running import Running

from psmvae.cli.arguments import Device, Force, Quiet
from psmvae.cli.option_groups import expanded
from psmvae.cli.terminal import Terminal, UsageError

if TYPE_CHECKING:
    from psmvae_paper.experiment import Experiment

benchmark = typer.Typer(
    name="benchmark",
    help="Run the paper's experiments and compare the results with the paper's.",
    invoke_without_command=True,
)

PAPER = "paper"
# What users get, and others are held against.
DEFAULT = "psmvae"
# A page that was written by this command says so, and may be replaced.
_OURS = "This page is written by `psmvae benchmark page`"


def _names(given: list[str] | None) -> list[str] | None:
    """Names from an option that is repeated, or holds several separated by commas."""
    if given is None:
        return None
    # a path may hold a comma
    texts = [[text] if Path(text).is_file() else text.split(",") for text in given]
    return [name.strip() for parts in texts for name in parts if name.strip()]


def _numbers(text: str | None) -> list[int] | None:
    """Seeds from a text such as 0-4 or 0,2,7."""
    if text is None:
        return None
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            message = f"--seeds must be of the form 0-4 or 0,2,7, got {text!r}"
            raise UsageError(message)
        seeds += range(int(match[1]), int(match[2] or match[1]) + 1)
    return seeds


ExperimentName = Annotated[
    str, typer.Argument(metavar="EXPERIMENT", help="A name from `psmvae benchmark list`.")
]
Folder = Annotated[Path, typer.Option("--from", metavar="FOLDER", help="Where the records are.")]
FormatOption = Annotated[r.Format, typer.Option("--format", help="How to write the table.")]
MetricOption = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        show_default=False,
        help="What to show: rmse, accuracy, bias, crps, coverage, width, fit, impute and others.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Part:
    """Which part of an experiment."""

    quick: Annotated[
        bool,
        typer.Option("--quick", help="The small version: shipped data, two seeds, few epochs."),
    ] = False
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", metavar="0-4", show_default=False, help="These seeds."),
    ] = None
    datasets: Annotated[
        list[str] | None,
        typer.Option(
            "--datasets",
            metavar="NAMES",
            show_default=False,
            help="These data sets (repeatable, or with commas).",
        ),
    ] = None
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            metavar="NAMES",
            show_default=False,
            help="These methods (repeatable, or with commas).",
        ),
    ] = None

    def of(self, name: str, records: list[dict[str, Any]] | None = None) -> Experiment:
        """The experiment of that name, as far as it is asked for, or as it was recorded."""
        from psmvae_paper import find_experiment

        try:
            whole = find_experiment(name)
            whole = whole.quick() if self.quick else whole
            seeds, datasets = _numbers(self.seeds), _names(self.datasets)
            part = whole.only(seeds, datasets, _names(self.methods))
        except ValueError as error:
            raise UsageError(str(error)) from error
        if not self.quick:
            return part
        return _within_files(part) if records is None else r.within_records(part, records)


@benchmark.callback()
def about(context: typer.Context) -> None:
    """Run the paper's experiments and compare the results with the paper's."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@benchmark.command("list")
def show_list() -> None:
    """List the experiments and the methods.

    psmvae benchmark list
    """
    from psmvae_paper import EXPERIMENTS, METHODS

    width = max(map(len, [*EXPERIMENTS, *METHODS])) + 2
    lines = ["Experiments", ""]
    for name, one in EXPERIMENTS.items():
        lines.append(f"{name:{width}}{one.title}")
        about = f"{one.source}; {', '.join(one.datasets)}; {len(one.cells()):,} cells"
        lines.append(" " * width + about)
    lines += ["", "Methods", ""]
    lines += [f"{name:{width}}{method.label}" for name, method in METHODS.items()]
    typer.echo("\n".join(lines))


@benchmark.command()
@expanded
def run(
    experiment: ExperimentName,
    part: Part,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Where records go; what is there already is not run again.",
        ),
    ] = Path("results"),
    data_home: Annotated[
        Path | None,
        typer.Option(
            "--data-home",
            metavar="FOLDER",
            show_default=False,
            help="Where the data are; by default PSMVAE_DATA_HOME or the user's cache.",
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
    retry: Annotated[
        bool, typer.Option("--retry", help="Run the cells again that failed.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment; what is done already is skipped.

    psmvae benchmark run rmse20 --quick
    """
    asked = part.of(experiment)
    terminal = Terminal(quiet=quiet)
    from psmvae_paper.runner import run as run_experiment

    running = Running(terminal, quiet=quiet)
    try:
        with running:
            records = run_experiment(
                asked,
                out,
                data_home=data_home,
                device=device,
                workers=workers,
                processes=processes,
                retry=retry,
                progress=running.show,
            )
    except (ValueError, FileNotFoundError) as error:
        raise UsageError(" ".join(str(error).split())) from error
    terminal.say(running.summary())
    again = f"psmvae benchmark show {experiment}{_again(part)} --from {shlex.quote(str(out))}"
    terminal.say(f"records in {out}; {again}")
    failed = [record for record in records if record.get("error")]
    if failed:
        message = f"{len(failed)} of {len(records)} cells failed; --retry runs them again; the "
        raise RuntimeError(message + f"first: {failed[0]['error']}")


@benchmark.command()
@expanded
def show(
    experiment: ExperimentName,
    part: Part,
    folder: Folder = Path("results"),
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

    psmvae benchmark show rmse20
    """
    records = r.records_in(folder)
    asked = part.of(experiment, records)
    from psmvae_paper.figures import draw, has_figure
    from psmvae_paper.tables import parts
    from psmvae_paper.tables import show as sheet_of

    grid = r.grid_of(asked, records, folder, metric)
    if figure is None:
        r.print_sheets([sheet_of(one, title) for title, one in parts(grid, asked.title)], form)
        return
    if not has_figure(asked):
        message = f"--figure: {experiment} has a table and no figure"
        raise UsageError(message)
    r.check_file(figure, ".png", "--figure", force=force)
    try:
        lacking = draw(asked, records, figure)
    except ValueError as error:
        raise UsageError(f"--figure: {error}") from error
    terminal = Terminal()
    for line in [*lacking, f"wrote {figure}"]:
        terminal.say(line)


@benchmark.command()
@expanded
def compare(
    experiment: ExperimentName,
    part: Part,
    folder: Folder = Path("results"),
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
            help="Compare every method with this one, paired by seed, and rank all; beside the "
            "paper's figures that is psmvae, the default.",
        ),
    ] = None,
    metric: MetricOption = None,
    form: FormatOption = r.Format.TEXT,
) -> None:
    """Compare results with the paper's, with others, and methods with each other.

    psmvae benchmark compare rmse20 --to paper
    """
    if to is not None and against is not None and form is r.Format.CSV:
        message = "--to and --against: one of them, since a CSV file holds one table"
        raise UsageError(message)
    records = r.records_in(folder)
    asked = part.of(experiment, records)
    grid = r.grid_of(asked, records, folder, metric)
    from psmvae_paper import compare as c
    from psmvae_paper.tables import parts

    title, sheets = asked.title, []
    if to == PAPER or (to is None and against is None):
        figures = r.paper_of(asked, grid)
        sheets += [c.beside_paper(one, figures, name) for name, one in parts(grid, title)]
        if against is None and form is not r.Format.CSV and r.compares(grid, DEFAULT):
            against = DEFAULT
    elif to is not None:
        other = r.grid_of(asked, r.records_in(Path(to)), Path(to), metric)
        sheets += [c.beside_other(one, other, name, f"of {to}") for name, one in parts(grid, title)]
    if against is not None:
        row = r.row_of(grid, against)
        others = [one for one in grid.rows if one != row]
        sheets.append(c.paired_sheet(grid, others, row, f"{title}: against {against}"))
        if form is not r.Format.CSV:
            sheets.append(c.rank_sheet(grid, f"{title}: ranks"))
    r.print_sheets(sheets, form)


@benchmark.command()
def page(
    folder: Folder = Path("results"),
    to: Annotated[
        Path, typer.Option("--to", metavar="FILE.md", help="The page; figures go beside it.")
    ] = Path("docs/results.md"),
    force: Force = False,
) -> None:
    """Write every table and figure there are records of on one page, beside the paper's.

    psmvae benchmark page --to results.md
    """
    records = r.records_in(folder)
    ours = to.is_file() and _OURS in to.read_text(encoding="utf-8", errors="replace")
    r.check_file(to, ".md", "--to", force=force or ours)
    from psmvae_paper.page import pictures, write_page

    for picture in filter(Path.exists, pictures(to)):
        r.check_file(picture, ".png", "--to", force=force or ours)
    try:
        written = write_page(records, to)
    except ValueError as error:
        raise UsageError(f"{folder}: {error}") from error
    Terminal().say(f"wrote {', '.join(map(str, written))}")


def _within_files(experiment: Experiment) -> Experiment:
    """The experiment on as much of a user's files as they have: the small one cuts tables."""
    from psmvae_paper.datasets import load

    for path in experiment.datasets:
        if Path(path).is_file():
            try:
                experiment = experiment.within(*load(path).X.shape)
            except (ValueError, OSError):
                # what cannot be read is said before the run begins
                continue
    return experiment


def _again(part: Part) -> str:
    """The options that `show` needs to show what was run."""
    told = " --quick" if part.quick else ""
    for option, values in (("--datasets", part.datasets), ("--methods", part.methods)):
        told += f" {option} {shlex.quote(','.join(values))}" if values else ""
    return told + (f" --seeds {shlex.quote(part.seeds)}" if part.seeds else "")
