"""Records as a run writes them, with figures that are made up."""

import random

from psmvae_paper import Cell, Experiment

WINE, LETTER = "wine", "letter"


def small(**changed) -> Experiment:
    """Two methods on two data sets under two mechanisms, three seeds."""
    given = {
        "name": "small",
        "title": "A small experiment",
        "source": "nowhere",
        "datasets": (WINE, LETTER),
        "mechanisms": ("mcar", "mnar"),
        "rates": (0.2,),
        "methods": ("mean", "mice"),
        "seeds": (0, 1, 2),
    }
    return Experiment(**(given | changed))


def record(cell: Cell, error: str | None = None, **metrics) -> dict:
    """The record of a cell."""
    return {
        "key": cell.key,
        "cell": cell.to_json(),
        "metrics": {} if error else metrics,
        "seconds": {"fit": 2.0, "impute": 0.5},
        "stacked": 1,
        "peak_memory_mib": 10.0,
        "device": "cpu" if cell.method in ("mean", "mice") else "NVIDIA H200",
        "versions": {"psmvae": "1.0", "torch": "2.9"},
        "settings": {},
        "finished": f"2025-03-0{1 + cell.seed}T10:00:00+00:00",
        "error": error,
    }


def made_up(cell: Cell) -> dict:
    """A record with all that its measure holds, random but always the same."""
    rng = random.Random(cell.key)
    error = random.Random(cell.method).uniform(0.05, 0.2) + rng.uniform(0, 0.02)
    found = {"rmse": error, "crps": error / 2, "coverage": 0.85, "width": 0.3, "bias": 0.01}
    if cell.masks == "paper":
        found["rmse_printed"] = 0.9 * error
    if cell.measure == "sets":
        found |= {"set_accuracy": 0.6 + error, "set_majority": 0.7, "adjusted_rand": 0.1}
    if cell.measure == "multiple":
        found["accuracy"] = 0.8 + error
    if cell.measure == "curve":
        found = {"steps": [1, 10, 100], "rmse": [4 * error, 2 * error, error]}
    if cell.measure == "inpaint":
        truth = [[[rng.randrange(17) for _ in range(8)] for _ in range(8)] for _ in range(8)]
        m = [[[int(rng.random() > cell.rate) for _ in row] for row in image] for image in truth]
        found |= {"truth": truth, "m": m, "filled": truth}
    return record(cell, **found)
