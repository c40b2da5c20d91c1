"""Write the results page from records: all tables and figures beside the paper's."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from psmvae.table.paths import atomic_path
from psmvae_paper import summary
from psmvae_paper.catalogue import EXPERIMENTS
from psmvae_paper.compare import rank_table, shared_units, verdicts
from psmvae_paper.figures import draw, has_figure, same_pixels
from psmvae_paper.grid import METRICS, Grid, key_of, pivot
from psmvae_paper.methods import label_of
from psmvae_paper.paper import paper
from psmvae_paper.remarks import FIGURES, MISPRINTS, READINGS, WHY
from psmvae_paper.table_writer import MISSING, ResultTable, decimals
from psmvae_paper.tables import cells_to_show, split_by_dataset, to_table

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from psmvae_paper.experiment import Experiment
    from psmvae_paper.grid import Record

__all__ = ["is_generated", "pictures", "write_page"]

# The two main tables of the paper, with twelve columns.
TABLES = ("rmse20", "rmse80")
# The same on the paper's masks, with its score.
PRINTED = ("printed20", "printed80")
SETS = "pattern-sets"
PRINTED_SETS = "printed-sets"
OTHERS = (SETS, PRINTED_SETS, "multiple")
FOLDER = "results"

# In the introduction of every page that this module writes.
_GENERATED = "This page is written by `psmvae-paper page`"

_INTRODUCTION = f"""\
# Results

The paper's experiments, run with psmvae. {_GENERATED} from the
records of the runs: all tables, figures and counts are computed. The remarks on differences from
the paper and on how it was interpreted are written text. [running.md](running.md) describes how to
run the experiments, and what was tried where results differ.

The protocol is the paper's: five seeds; per seed a mask and a split 8:1:1; a method is fitted on
the 80 % and scored on the missing cells of the same 80 %; errors are divided by the range of the
column. Under MCAR every cell is missing with the given rate. Under MNAR the cells above the median
of one random column are missing with this rate. Most of the standard deviation over seeds comes
from which column is drawn, so methods are compared within a seed. The best mean of a column is in
bold; – is a cell that has not been run."""

_RANGES = (
    "An error agrees with the paper's within 3 % for mean, MICE and MissForest, within 5 % for "
    "PSMVAE(b), and within 10 % for the others; an accuracy within 5 percentage points."
)

_SCORES = (
    "The published program draws masks and splits from seeds alone, so the paper's masks can be "
    "reproduced. Its score compares imputations with a shifted truth: the complete table, "
    "standardised by the mean and deviation of all its cells and rescaled by those of the observed "
    "cells. Under MCAR this hardly differs from the truth; under MNAR it removes the bias that the "
    "missing cells cause, so the score is not the error of the imputations. The first table has "
    "this score, to be compared with the printed one; the second has the error of the same "
    "imputations. All other tables of this page use our own masks and the error."
)

_RULES = (
    "By majority: each learned set is matched with the majority of its rows, as in a function of "
    "the published program; this accuracy is at least the share of the larger true set. And the "
    "adjusted Rand index: 1 for the true sets, 0 on average for random sets."
)

_DRAWS = (
    "For methods with multiple imputations: the CRPS (lower is better; it generalises the absolute "
    "error to distributions), and the coverage of the 90 % interval of the draws (.90 is best) "
    "with its width."
)


def write_page(records: Sequence[Record], path: str | os.PathLike[str]) -> list[Path]:
    """Write the results page and, in a folder ``results`` beside it, its figures.

    Cells without a record are shown as missing, so a page can be made of a run in progress. A
    figure is not written again if the file that is there shows the same pixels.

    Parameters
    ----------
    records : sequence of dict
        As `psmvae_paper.load_records` returns them.
    path : path
        A path that ends in ``.md``, in an existing folder.

    Returns
    -------
    list of Path
        The page and its figures.

    Raises
    ------
    ValueError
        If the path is not a Markdown file, its folder does not exist, or no record belongs to an
        experiment in full size.
    """
    target = Path(path)
    if target.suffix.lower() != ".md":
        message = f"path must end in .md, got {str(path)!r}"
        raise ValueError(message)
    if not target.parent.is_dir():
        message = f"path must be in a folder that exists, got {str(path)!r}"
        raise ValueError(message)
    shown = _shown(records)
    if not shown:
        message = "records must hold some of an experiment in full size; they hold none"
        raise ValueError(message)
    grids = {name: _grid(name, shown) for name in EXPERIMENTS}
    twelve = _together([grids[name] for name in TABLES])
    figures, written = _figures(shown, target.parent / FOLDER)
    sections = [
        _INTRODUCTION,
        _listed("How the results were made", summary.made_with(shown, len(records) - len(shown))),
        _listed("Summary", _summary_lines(grids, twelve)),
        *(_table_section(name, grids[name], shown) for name in TABLES),
        *(_printed_section(name, grids[name], shown) for name in PRINTED),
        _ranks(twelve),
        _paired(grids["grid"]),
        _agreement(grids),
        _beyond(grids["grid"]),
        *(_sets_section(name, grids[name], shown) for name in (SETS, PRINTED_SETS)),
        *(
            _table_section(name, grids[name], shown)
            for name in OTHERS
            if name not in (SETS, PRINTED_SETS)
        ),
        _draws(shown, twelve),
        *(
            _figure_section(name, grids[name], figures[name])
            for name, experiment in EXPERIMENTS.items()
            if has_figure(experiment)
        ),
        _times(shown, twelve),
    ]
    with atomic_path(target) as temporary:
        temporary.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    return [target, *written]


def pictures(path: str | os.PathLike[str]) -> list[Path]:
    """Return the paths of the figures of a page.

    Parameters
    ----------
    path : path
        The page.

    Returns
    -------
    list of Path
        One for each experiment with a figure.

    Examples
    --------
    >>> pictures("docs/results.md")[0].as_posix()
    'docs/results/curve.png'
    """
    folder = Path(path).parent / FOLDER
    return [folder / f"{name}.png" for name, one in EXPERIMENTS.items() if has_figure(one)]


def is_generated(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a page that `write_page` wrote, which may be replaced.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    bool
        False also if it does not exist.
    """
    page = Path(path)
    return page.is_file() and _GENERATED in page.read_text(encoding="utf-8", errors="replace")


def _shown(records: Sequence[Record]) -> list[Record]:
    """The records of experiments in full size, including methods that a user added."""
    keys = {key_of(cell) for one in EXPERIMENTS.values() for cell in cells_to_show(one, records)}
    return [record for record in records if record["key"] in keys]


def _grid(name: str, records: Sequence[Record], metric: str | None = None) -> Grid:
    return pivot(records, cells_to_show(EXPERIMENTS[name], records), metric)


def _older(name: str, records: Sequence[Record]) -> list[str]:
    """A note if records of an experiment are from before a change."""
    own = {key_of(cell) for cell in cells_to_show(EXPERIMENTS[name], records)}
    return summary.older([record for record in records if record["key"] in own])


def _together(grids: Sequence[Grid]) -> Grid:
    return Grid(grids[0].metric, {at: e for grid in grids for at, e in grid.entries.items()})


def _heading(name: str) -> str:
    experiment = EXPERIMENTS[name]
    return f"## {experiment.title}\n\nIn the paper: {experiment.source}. Here: `{name}`."


def _listed(heading: str, lines: Sequence[str]) -> str:
    return f"## {heading}\n\n" + "\n".join(f"- {line}" for line in lines)


def _summary_lines(grids: dict[str, Grid], twelve: Grid) -> list[str]:
    lines = []
    for name in (*TABLES, *PRINTED, *OTHERS):
        title = EXPERIMENTS[name].title
        if grids[name].empty:
            lines.append(f"{title}: no records yet.")
        else:
            lines += [f"{title}. {line}" for line in summary.agreement(grids[name], paper(name))]
    lines.append(summary.rank_summary(twelve))
    lines += summary.mnar_wins(grids["grid"])
    return lines


def _no_records(name: str) -> str:
    return f"No records yet: `psmvae-paper run {name}` makes them."


def _table_section(name: str, grid: Grid, records: Sequence[Record]) -> str:
    if grid.empty:
        return f"{_heading(name)}\n\n{_no_records(name)}"
    table = to_table(grid, "", paper=paper(name)).write("md")
    notes = [*summary.agreement(grid, paper(name)), *_older(name, records)]
    return "\n\n".join([_heading(name), table, *notes])


def _printed_section(name: str, grid: Grid, records: Sequence[Record]) -> str:
    """The paper's score and the error of the methods that were run on its masks."""
    blocks = [_heading(name), *([_SCORES] if name == PRINTED[0] else [])]
    if grid.empty:
        return "\n\n".join([*blocks, _no_records(name)])
    errors = _nonempty_rows(_grid(name, records, "rmse"))
    blocks.append(to_table(_nonempty_rows(grid), "", paper=paper(name)).write("md"))
    blocks += [*summary.agreement(grid, paper(name)), to_table(errors, "").write("md")]
    blocks += _older(name, records)
    return "\n\n".join(blocks)


def _nonempty_rows(grid: Grid) -> Grid:
    """A grid without its empty rows."""
    there = {row for (row, _), entry in grid.entries.items() if entry.values or entry.errors}
    return Grid(grid.metric, {at: e for at, e in grid.entries.items() if at[0] in there})


def _sets_section(name: str, grid: Grid, records: Sequence[Record]) -> str:
    """The pattern sets, by three measures of agreement."""
    own = _table_section(name, grid, records)
    if grid.empty:
        return own
    majority, rand = (_grid(name, records, rule) for rule in ("set_majority", "adjusted_rand"))
    head = "### The same sets by other rules" + ("" if name == SETS else ", on the paper's masks")
    by_majority = to_table(majority, "", paper=paper(name)).write("md")
    agree = summary.agreement(majority, paper(name))
    blocks = [own, head, *([_RULES] if name == SETS else []), by_majority, *agree]
    return "\n\n".join([*blocks, to_table(rand, "").write("md")])


def _ranks(twelve: Grid) -> str:
    head = "## Ranks over the twelve cells of both tables"
    if twelve.empty:
        return f"{head}\n\nNo records yet."
    return f"{head}\n\n{rank_table(twelve, '').write('md')}"


def _paired(grid: Grid) -> str:
    head = "## The default, paired by seed, where values are missing not at random"
    if not summary.mnar_wins(grid):
        return f"{head}\n\nNo records yet of the default and another method on the same cells."
    return f"{head}\n\n{summary.mnar_table(grid).write('md')}"


def _agreement(grids: dict[str, Grid]) -> str:
    """The means that do not agree with the paper's, with the remarks on their methods."""
    blocks = ["## Agreement with the paper", _RANGES]
    head = ["method", "on", "ours", "paper's", "ratio"]
    judged = [
        (verdict, "on the paper's masks" if EXPERIMENTS[name].masks == "paper" else "")
        for name in (*TABLES, *PRINTED, *OTHERS)
        for verdict in verdicts(grids[name], paper(name))
        if name not in TABLES or verdict.column.mechanism == "mcar"
    ]
    off = [(verdict, masks) for verdict, masks in judged if verdict.verdict != "agrees"]
    body = [
        [
            label_of(verdict.row.method),
            " ".join(text for text in (*verdict.column.texts(), masks) if text),
            decimals(verdict.ours),
            decimals(verdict.paper),
            f"{verdict.ours / verdict.paper:.2f}",
        ]
        for verdict, masks in off
    ]
    if not judged:
        blocks.append("There are no complete means to compare yet.")
    elif not off:
        blocks.append(f"All {len(judged)} means that can be compared agree.")
    else:
        blocks.append(
            f"{len(judged) - len(off)} of {len(judged)} means agree, counting the RMSE under MCAR, "
            "all scores on the paper's masks and all accuracies. These do not:"
        )
        blocks.append(ResultTable("", head, body).write("md"))
    reasons = [f"{label_of(m)}: {WHY[m]}" for m in WHY if any(v.row.method == m for v, _ in off)]
    if reasons:
        blocks += ["Possible causes:", _bullets(reasons)]
    blocks += ["Choices where the paper's text and program differ:", _bullets(READINGS)]
    blocks += ["Likely misprints in the paper:", _bullets(MISPRINTS)]
    return "\n\n".join(blocks)


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _beyond(grid: Grid) -> str:
    """The cells of the grid that are not in the paper's tables."""
    printed = {(key.dataset, key.mechanism, key.rate) for key in paper("grid")}
    rest = [column for column in grid.columns if column[:3] not in printed]
    head = "## Cells that are not in the paper\n\nThe other rate of each data set; `grid`."
    part = grid.only(rest)
    if part.empty:
        return f"{head}\n\n{_no_records('grid')}"
    tables = []
    for rate in sorted({column.rate for column in rest}):
        own = part.only(column for column in rest if column.rate == rate)
        tables.append(to_table(own, f"{100 * rate:g} % missing").write("md"))
    return "\n\n".join([head, *tables])


def _draws(records: Sequence[Record], twelve: Grid) -> str:
    head = f"## Calibration of multiple imputations\n\n{_DRAWS}"
    names = ("crps", "coverage", "width")
    table = _means(records, twelve, names, ("CRPS", "coverage", "width"))
    return f"{head}\n\n{table}"


def _times(records: Sequence[Record], twelve: Grid) -> str:
    head = (
        "## Time\n\nSeconds for each table. The time of a stacked training on a GPU is divided "
        "between its tables; K = 1 and K = 10,000 share one training where they were run together."
    )
    keys = [key_of(cell) for name in TABLES for cell in cells_to_show(EXPERIMENTS[name], records)]
    table = _means(records, twelve, ("fit", "impute"), ("fit, s", "impute, s"))
    return "\n\n".join(part for part in (head, summary.table_time(records, keys), table) if part)


def _means(
    records: Sequence[Record], twelve: Grid, metrics: Sequence[str], heads: Sequence[str]
) -> str:
    """A table of means over the twelve columns, one column for each metric."""
    names, units = twelve.row_names(), shared_units(twelve)
    grids = [_together([_grid(name, records, metric) for name in TABLES]) for metric in metrics]
    body = []
    for row in twelve.rows:
        texts = []
        for metric, grid in zip(metrics, grids, strict=True):
            values = [grid.at(row, column).values.get(seed) for column, seed in units]
            known = [value for value in values if value is not None]
            complete = known and len(known) == len(units)
            mean = sum(known) / len(known) if complete else None
            texts.append(decimals(mean, digits=METRICS[metric].digits))
        if set(texts) != {MISSING}:
            body.append([names[row], *texts])
    if not body:
        return "Too few records yet."
    note = (
        "Means over the cells and seeds of the two tables that at least half of the methods have; "
        "a method that lacks one of these is omitted."
    )
    return ResultTable("", ["method", *heads], body, notes=[note]).write("md")


def _figures(records: Sequence[Record], folder: Path) -> tuple[dict[str, str], list[Path]]:
    """Draw every figure that has records; return the text of each on the page."""
    texts, written = {}, []
    keys = {record["key"] for record in records if not record.get("error")}
    for name, experiment in EXPERIMENTS.items():
        if not has_figure(experiment):
            continue
        if not any(key_of(cell) in keys for cell in cells_to_show(experiment, records)):
            texts[name] = _no_records(name)
            continue
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.png"
        notes = _draw_if_changed(experiment, records, path)
        written.append(path)
        image = f"![{experiment.title}]({FOLDER}/{path.name})"
        texts[name] = "\n\n".join([image, *notes, *_older(name, records)])
    return texts, written


def _draw_if_changed(experiment: Experiment, records: Sequence[Record], path: Path) -> list[str]:
    """Draw a figure, and keep the file that is there if it shows the same pixels."""
    with TemporaryDirectory() as folder:
        new = Path(folder) / path.name
        notes = draw(experiment, records, new)
        if not (path.is_file() and same_pixels(new, path)):
            with atomic_path(path) as temporary:
                temporary.write_bytes(new.read_bytes())
    return notes


def _figure_section(name: str, grid: Grid, text: str) -> str:
    if grid.empty:
        return f"{_heading(name)}\n\n{text}"
    images = EXPERIMENTS[name].measure == "inpaint"
    caption = (
        "Missing pixels red above, imputed images below, clipped to the range of the pixels."
        if images
        else "Lines are means over seeds, bands their range; points with fewer seeds than others "
        "are omitted."
    )
    if EXPERIMENTS[name].measure == "curve":
        caption += " The table has the errors at the end of training."
    tables = [to_table(part, title).write("md") for title, part in split_by_dataset(grid, "")]
    remarks = [FIGURES[name]] if name in FIGURES else []
    return "\n\n".join([_heading(name), text, caption, *tables, *remarks])
