"""The files the demo leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.simulate.trial import KINDS_OF_DROPOUT

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from psmvae.demo.study import Study

PICTURE = "demo.png"


def check_folder(folder: Path) -> None:
    """Make the folder and see that the demo can draw, before any time is spent.

    Raises
    ------
    ValueError
        If the path exists and is not a folder.
    ImportError
        If matplotlib is not installed.
    """
    if folder.exists() and not folder.is_dir():
        message = f"{folder} exists and is not a folder"
        raise ValueError(message)
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError as error:
        message = "the demo draws a picture and needs matplotlib: pip install 'psmvae[plot]'"
        raise ImportError(message) from error
    folder.mkdir(parents=True, exist_ok=True)


def sets_table(sets: NDArray[np.int64], proba: NDArray[np.float64]) -> Any:
    """The set of each row and the probability of every set, as the command line writes them."""
    import pyarrow as pa

    return pa.table(
        {
            "row": np.arange(1, len(sets) + 1),
            "set": sets,
            **{f"probability_{r}": np.round(p, 6) for r, p in enumerate(proba.T)},
        }
    )


def write_files(study: Study, folder: Path) -> list[Path]:
    """Write the tables and the picture, replacing those of an earlier demo.

    Parameters
    ----------
    study : Study
        What `run_study` returned.
    folder : Path
        An existing folder.

    Returns
    -------
    list of Path
        ``trial.csv`` (what was observed), ``truth.csv`` (nothing missing, and why each patient
        left), ``filled.csv`` (imputed), ``sets.csv`` and ``demo.png``.
    """
    import pyarrow as pa

    from psmvae.demo.picture import draw
    from psmvae.table.io import atomic_path, keep_text, read_text, write_table

    trial = study.trial
    reasons = np.array(KINDS_OF_DROPOUT)[trial.dropout]
    write_table(study.table, folder / "trial.csv", force=True)
    tables = {
        "truth.csv": pa.table({**trial.complete, "dropout": reasons}),
        # observed cells as they are written in trial.csv, filled ones with a few digits
        "filled.csv": keep_text(study.completed, read_text(folder / "trial.csv")),
        "sets.csv": sets_table(study.sets, study.proba),
    }
    for name, table in tables.items():
        write_table(table, folder / name, force=True)
    with atomic_path(folder / PICTURE) as temporary:
        draw(study, temporary)
    return [folder / name for name in ("trial.csv", *tables, PICTURE)]
