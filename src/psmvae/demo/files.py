"""The output files of the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.reporting.report import check_installed
from psmvae.simulate.trial import DROPOUT_REASONS, OUTCOME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from psmvae.demo.study import Study
    from psmvae.reporting import Report

FIGURE, REPORT = "demo.png", "report.html"


def check_folder(folder: Path) -> None:
    """Create the folder and check what the report needs, before any time is spent."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} exists and is not a folder")
    check_installed()
    folder.mkdir(parents=True, exist_ok=True)


def sets_table(sets: NDArray[np.int64], proba: NDArray[np.float64]) -> Any:
    """Make the table of ``psmvae sets`` from sets ``(row,)`` and probabilities ``(row, set)``."""
    import pyarrow as pa

    probabilities = {f"probability_{r}": np.round(p, 6) for r, p in enumerate(proba.T)}
    return pa.table({"row": np.arange(1, len(sets) + 1), "set": sets, **probabilities})


def make_report(
    study: Study, *, validate: bool = True, progress: Callable[[str], None] | None = None
) -> Report:
    """Make the report of the demo, with a tipping point analysis of the treatment effect."""
    from psmvae.demo.study import EFFECT, mean_and_effect
    from psmvae.reporting import report
    from psmvae.sensitivity import tipping_point

    deltas = np.linspace(0, 20, 11)
    tipping = tipping_point(study.mi, mean_and_effect, OUTCOME, deltas, by="arm", term=EFFECT)
    return report(
        study.table, imputer=study.imputer, mi=study.mi, analyses=study.analyses,
        sensitivity=tipping, title="A simulated trial", validate=validate, progress=progress,
    )  # fmt: skip


def write_files(study: Study, report: Report, folder: Path) -> list[Path]:
    """Write the tables, the figure and the report; files of an earlier demo are replaced."""
    import pyarrow as pa

    from psmvae.demo.figure import draw
    from psmvae.table.io import read_text, write_table
    from psmvae.table.paths import atomic_path
    from psmvae.table.text import keep_text
    from psmvae.table.text_types import mark_missing

    trial = study.trial
    reasons = np.array(DROPOUT_REASONS)[trial.dropout]
    write_table(study.table, folder / "trial.csv", force=True)
    tables = {
        "truth.csv": pa.table({**trial.complete, "dropout": reasons}),
        # observed cells keep the text of trial.csv, imputed ones have six significant digits
        "filled.csv": keep_text(study.completed, mark_missing(read_text(folder / "trial.csv"))),
        "sets.csv": sets_table(study.sets, study.proba),
    }
    for name, table in tables.items():
        write_table(table, folder / name, force=True)
    with atomic_path(folder / FIGURE) as temporary:
        draw(study, temporary)
    report.write_html(folder / REPORT)
    return [folder / name for name in ("trial.csv", *tables, FIGURE, REPORT)]
