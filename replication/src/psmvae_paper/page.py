"""The page of results, written from records: every table and figure beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from psmvae.table.paths import atomic_path
from psmvae_paper import summary
from psmvae_paper.catalogue import EXPERIMENTS
from psmvae_paper.compare import rank_table, shared_units, verdicts
from psmvae_paper.figures import draw, has_figure
from psmvae_paper.grid import METRICS, Grid, key_of, pivot
from psmvae_paper.methods import label_of
from psmvae_paper.paper import paper
from psmvae_paper.remarks import FIGURES, MISPRINTS, READINGS, WHY
from psmvae_paper.table_writer import MISSING, ResultTable, decimals
from psmvae_paper.tables import cells_to_show, split_by_dataset, to_table

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from psmvae_paper.grid import Record

__all__ = ["write_page"]

# The two tables of the paper that make up the twelve cells.
TABLES = ("rmse20", "rmse80")
# The same again on the paper's masks, with its score.
PRINTED = ("printed20", "printed80")
SETS = "pattern-sets"
PRINTED_SETS = "printed-sets"
OTHERS = (SETS, PRINTED_SETS, "multiple")
FOLDER = "results"

_INTRODUCTION = """\
# Results

The paper's experiments, run with this package. This page is written by `psmvae benchmark page`
from the records of the runs: all its tables and figures are computed. What may explain a
difference, and how the paper was read, was written by hand. [benchmark.md](benchmark.md) says how
to run them again, and what was tried where figures differ.

By the paper's protocol: five seeds; per seed a mask and a split 8:1:1; a method is fitted on the
80 % and scored on the missing cells of that same 80 %; an error is divided by the range of its
column. Under MCAR every cell goes missing with the rate. Under MNAR one drawn column does, above
its median, with the rate: which column that is makes most of the spread over seeds, so methods
are compared within a seed, and ± says little about which is better. The best mean of a column is
in bold; – is a cell that has not been run."""

_RANGES = (
    "A mean agrees if it is within 3 % of the paper's for mean, MICE and MissForest, within 5 % "
    "for PSMVAE(b), and within 10 % for the others; an accuracy if it is within 5 points."
)

_SCORES = (
    "The published program draws masks and splits from seeds alone, so the paper's can be drawn "
    "again. It scores against the complete table standardised by its own mean and deviation and "
    "restored by those of its observed cells. Under MCAR the two hardly differ; under MNAR this "
    "takes the bias that the holes cause out of the truth, and what is left is not the error of "
    "the imputations. The first table has that score, to be compared with what was printed; the "
    "second has the error of the same imputations against the truth. All other tables of this page "
    "are of masks of our own, and scored against the truth."
)

_RULES = (
    "By majority: each learned set stands for what most of its rows are, as in a function of the "
    "published program; at least the share of the larger true set. And the adjusted Rand index: 1 "
    "for the true sets, 0 on average for sets that have nothing to do with them."
)

_DRAWS = (
    "For methods whose multiple imputations tell how sure they are: CRPS (less is better; like the "
    "absolute error, but of a distribution), and the share of true values inside the 90 % interval "
    "of the draws (.90 is right) with its width."
)


def write_page(records: Sequence[Record], path: str | os.PathLike[str]) -> list[Path]:
    """Write the page of results and, in a folder ``results`` beside it, its figures.

    What has no record yet is shown as missing, so that a page can be made of a run in progress.

    Parameters
    ----------
    records : sequence of dict
        As `psmvae_paper.load_records` gives them.
    path : path
        A name that ends in ``.md``, in a folder that exists.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    ValueError
        If the path is no Markdown file, its folder is not there, or no record belongs to an
        experiment in its full size.
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
        _listed("How it was made", summary.made_with(shown, len(records) - len(shown))),
        _listed("In short", _in_short(grids, twelve)),
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
    """Return the pictures that may be written with a page.

    Examples
    --------
    >>> pictures("docs/results.md")[0].as_posix()
    'docs/results/curve.png'
    """
    folder = Path(path).parent / FOLDER
    return [folder / f"{name}.png" for name, one in EXPERIMENTS.items() if has_figure(one)]


def _shown(records: Sequence[Record]) -> list[Record]:
    """The records of experiments in full size, also by methods that a user added."""
    keys = {key_of(cell) for one in EXPERIMENTS.values() for cell in cells_to_show(one, records)}
    return [record for record in records if record["key"] in keys]


def _grid(name: str, records: Sequence[Record], metric: str | None = None) -> Grid:
    return pivot(records, cells_to_show(EXPERIMENTS[name], records), metric)


def _older(name: str, records: Sequence[Record]) -> list[str]:
    """Which of an experiment's records are from before a change; a line of a figure may mix."""
    own = {key_of(cell) for cell in cells_to_show(EXPERIMENTS[name], records)}
    return summary.older([record for record in records if record["key"] in own])


def _together(grids: Sequence[Grid]) -> Grid:
    return Grid(grids[0].metric, {at: e for grid in grids for at, e in grid.entries.items()})


def _heading(name: str) -> str:
    experiment = EXPERIMENTS[name]
    return f"## {experiment.title}\n\nIn the paper: {experiment.source}. Here: `{name}`."


def _listed(heading: str, lines: Sequence[str]) -> str:
    return f"## {heading}\n\n" + "\n".join(f"- {line}" for line in lines)


def _in_short(grids: dict[str, Grid], twelve: Grid) -> list[str]:
    told = []
    for name in (*TABLES, *PRINTED, *OTHERS):
        title = EXPERIMENTS[name].title
        if grids[name].empty:
            told.append(f"{title}: no records yet.")
        else:
            told += [f"{title}. {line}" for line in summary.agreement(grids[name], paper(name))]
    told.append(summary.places(twelve))
    told += summary.mnar_wins(grids["grid"])
    return told


def _no_records(name: str) -> str:
    return f"No records yet: `psmvae benchmark run {name}` makes them."


def _table_section(name: str, grid: Grid, records: Sequence[Record]) -> str:
    if grid.empty:
        return f"{_heading(name)}\n\n{_no_records(name)}"
    table = to_table(grid, "", paper=paper(name)).write("md")
    told = [*summary.agreement(grid, paper(name)), *_older(name, records)]
    return "\n\n".join([_heading(name), table, *told])


def _printed_section(name: str, grid: Grid, records: Sequence[Record]) -> str:
    """The paper's score of the methods that were run on its masks, and their error."""
    blocks = [_heading(name), *([_SCORES] if name == PRINTED[0] else [])]
    if grid.empty:
        return "\n\n".join([*blocks, _no_records(name)])
    errors = _run(_grid(name, records, "rmse"))
    blocks.append(to_table(_run(grid), "", paper=paper(name)).write("md"))
    blocks += [*summary.agreement(grid, paper(name)), to_table(errors, "").write("md")]
    blocks += _older(name, records)
    return "\n\n".join(blocks)


def _run(grid: Grid) -> Grid:
    """A grid without the rows that have nothing to show."""
    there = {row for (row, _), entry in grid.entries.items() if entry.values or entry.errors}
    return Grid(grid.metric, {at: e for at, e in grid.entries.items() if at[0] in there})


def _sets_section(name: str, grid: Grid, records: Sequence[Record]) -> str:
    """The pattern sets, judged in three ways."""
    own = _table_section(name, grid, records)
    if grid.empty:
        return own
    majority, rand = (_grid(name, records, rule) for rule in ("set_majority", "adjusted_rand"))
    head = "### The same sets by other rules" + ("" if name == SETS else ", on its masks")
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
    """What is outside the thresholds, a line a mean, with the remark on its method."""
    blocks = ["## What agrees with the paper and what does not", _RANGES]
    head = ["method", "on", "ours", "paper's", "ratio"]
    judged = [
        (verdict, "on its masks" if EXPERIMENTS[name].masks == "paper" else "")
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
            f"{len(judged) - len(off)} of {len(judged)} means agree: the RMSE of MCAR cells, "
            "the scores on the paper's masks and the accuracies of all cells. These do not:"
        )
        blocks.append(ResultTable("", head, body).write("md"))
    reasons = [f"{label_of(m)}: {WHY[m]}" for m in WHY if any(v.row.method == m for v, _ in off)]
    if reasons:
        blocks += ["What may explain it:", _bullets(reasons)]
    blocks += ["How the paper was read where it can be read in two ways:", _bullets(READINGS)]
    blocks += ["Figures of the paper that look like misprints:", _bullets(MISPRINTS)]
    return "\n\n".join(blocks)


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _beyond(grid: Grid) -> str:
    """The cells of the grid that the paper's tables leave out, and the accuracy of levels."""
    printed = {(key.dataset, key.mechanism, key.rate) for key in paper("grid")}
    rest = [column for column in grid.columns if column[:3] not in printed]
    head = "## Cells the paper does not print\n\nThe other rate of each data set; `grid`."
    part = grid.only(rest)
    if part.empty:
        return f"{head}\n\n{_no_records('grid')}"
    tables = []
    for rate in sorted({column.rate for column in rest}):
        own = part.only(column for column in rest if column.rate == rate)
        tables.append(to_table(own, f"{100 * rate:g} % missing").write("md"))
    return "\n\n".join([head, *tables])


def _draws(records: Sequence[Record], twelve: Grid) -> str:
    head = f"## How sure: intervals from draws\n\n{_DRAWS}"
    names = ("crps", "coverage", "width")
    table = _means(records, twelve, names, ("CRPS", "coverage", "width"))
    return f"{head}\n\n{table}"


def _times(records: Sequence[Record], twelve: Grid) -> str:
    head = (
        "## Time\n\nSeconds a table. What was trained together on a GPU is shared out between the "
        "tables; K = 1 and K = 10,000 are read off one training where they were run together."
    )
    keys = [key_of(cell) for name in TABLES for cell in cells_to_show(EXPERIMENTS[name], records)]
    table = _means(records, twelve, ("fit", "impute"), ("fit, s", "impute, s"))
    return "\n\n".join(part for part in (head, summary.table_time(records, keys), table) if part)


def _means(
    records: Sequence[Record], twelve: Grid, metrics: Sequence[str], heads: Sequence[str]
) -> str:
    """A table of means over all cells of the twelve, a column a metric."""
    names, units = twelve.row_names(), shared_units(twelve)
    grids = [_together([_grid(name, records, metric) for name in TABLES]) for metric in metrics]
    body = []
    for row in twelve.rows:
        texts = []
        for metric, grid in zip(metrics, grids, strict=True):
            values = [grid.at(row, column).values.get(seed) for column, seed in units]
            there = [value for value in values if value is not None]
            whole = there and len(there) == len(units)
            mean = sum(there) / len(there) if whole else None
            texts.append(decimals(mean, digits=METRICS[metric].digits))
        if set(texts) != {MISSING}:
            body.append([names[row], *texts])
    if not body:
        return "Too few records yet."
    note = (
        "Means over the cells and seeds of the twelve that at least half of the methods have; a "
        "method that lacks one of these is left out."
    )
    return ResultTable("", ["method", *heads], body, notes=[note]).write("md")


def _figures(records: Sequence[Record], folder: Path) -> tuple[dict[str, str], list[Path]]:
    """Draw every figure there are records of; what to put on the page for each."""
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
        lacking = draw(experiment, records, path)
        written.append(path)
        image = f"![{experiment.title}]({FOLDER}/{path.name})"
        texts[name] = "\n\n".join([image, *lacking, *_older(name, records)])
    return texts, written


def _figure_section(name: str, grid: Grid, text: str) -> str:
    if grid.empty:
        return f"{_heading(name)}\n\n{text}"
    images = EXPERIMENTS[name].measure == "inpaint"
    caption = (
        "Missing pixels red above, filled in below; what lies outside of the pixels' range is "
        "drawn at its end."
        if images
        else "Lines are means over seeds, bands reach from the lowest to the highest seed; a point "
        "of fewer seeds than others is left out."
    )
    if EXPERIMENTS[name].measure == "curve":
        caption += " The table is of the end."
    tables = [to_table(part, title).write("md") for title, part in split_by_dataset(grid, "")]
    told = [FIGURES[name]] if name in FIGURES else []
    return "\n\n".join([_heading(name), text, caption, *tables, *told])
