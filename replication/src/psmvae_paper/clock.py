"""The wall-clock time that a device was in use, from the times in records."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from psmvae_paper.grid import Record

__all__ = ["busy_seconds", "is_gpu"]


def is_gpu(record: Record) -> bool:
    """Whether a record was made on a GPU.

    Parameters
    ----------
    record : dict
        A record.

    Returns
    -------
    bool
        False also if the device is unknown.

    Examples
    --------
    >>> is_gpu({"device": "NVIDIA H200"}), is_gpu({"device": "cpu"})
    (True, False)
    """
    device = str(record.get("device") or "unknown")
    return not device.lower().startswith(("cpu", "unknown"))


def busy_seconds(records: Iterable[Record]) -> float:
    """Return the seconds in which at least one of the cells was trained or imputed.

    Overlapping times of cells that ran in parallel count once, and so does the training of a stack.

    Parameters
    ----------
    records : iterable of dict
        As `psmvae_paper.load_records` returns them; records without times are ignored.

    Returns
    -------
    float
        Seconds.

    Examples
    --------
    >>> def record(finished, fit, stacked):
    ...     seconds = {"fit": fit, "impute": 1.0}
    ...     return {"finished": finished, "seconds": seconds, "stacked": stacked}
    >>> first = record("2020-01-01T00:01:00+00:00", 2.0, 10)
    >>> second = record("2020-01-01T00:01:01+00:00", 2.0, 10)
    >>> alone = record("2020-01-01T02:00:00+00:00", 4.0, 1)
    >>> busy_seconds([first, second, alone])
    27.0
    """
    total, reached = 0.0, float("-inf")
    for start, end in sorted(_span(record) for record in records if record.get("finished")):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _span(record: Record) -> tuple[float, float]:
    """The latest possible start of the training of a cell, and the end of the cell."""
    seconds = record.get("seconds") or {}
    fit = float(seconds.get("fit") or 0.0) * int(record.get("stacked") or 1)
    end = datetime.fromisoformat(str(record["finished"])).timestamp()
    return end - fit - float(seconds.get("impute") or 0.0), end
