"""Cells: what they are made of, and keys that never change."""

import json
from dataclasses import replace

import numpy as np
import pytest

from psmvae_paper import Cell

PLAIN = Cell("breast", "mcar", 0.2, 0, "mean")
FULL = Cell(
    "wine",
    "mnar-mcar",
    0.8,
    3,
    "psmvae-b",
    measure="sets",
    n_rows=100,
    n_columns=5,
    epochs=7,
    settings=(("pi", "rate"), ("n_sets", 2), ("weight_observed", False), ("max_time", None)),
)


@pytest.mark.parametrize("cell", [PLAIN, FULL])
def test_cell_round_trips_through_json(cell):
    assert Cell.from_json(json.loads(json.dumps(cell.to_json()))) == cell


def test_keys_are_stable():
    assert PLAIN.key == "bababe2d294dc18b"
    assert FULL.key == "507cc34036294067"


def test_different_cells_have_different_keys():
    other = {
        "dataset": "spam",
        "mechanism": "mcar",
        "rate": 0.7,
        "seed": 4,
        "method": "mean",
        "measure": "impute",
        "n_rows": None,
        "n_columns": 6,
        "epochs": 8,
        "settings": (("pi", 0.5),),
    }
    keys = {replace(FULL, **{name: value}).key for name, value in other.items()}
    assert len(keys | {FULL.key}) == len(other) + 1


def test_key_ignores_order_of_settings_and_number_types():
    swapped = replace(FULL, settings=tuple(reversed(FULL.settings)))
    assert swapped == FULL
    assert swapped.key == FULL.key
    assert replace(PLAIN, rate=1).key == replace(PLAIN, rate=1.0).key
    numbers = {name: np.int64(getattr(FULL, name)) for name in ("seed", "n_rows", "epochs")}
    assert replace(FULL, **numbers).key == FULL.key


def test_equal_cells_have_equal_hashes():
    assert len({PLAIN, Cell("breast", "mcar", 0.2, 0, "mean"), FULL}) == 2


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("dataset", "", "dataset must be a name"),
        ("method", None, "method must be a name"),
        ("rate", 1.5, "rate must be a number between 0 and 1, got 1.5"),
        ("rate", "high", "rate must be"),
        ("seed", -1, "seed must be a whole number from 0 to .*, got -1"),
        ("seed", True, "seed must be"),
        ("measure", "speed", "measure must be one of impute, sets"),
        ("masks", "mine", "masks must be one of own, paper, got 'mine'"),
        ("n_rows", 0, "n_rows must be a whole number from 1 or None, got 0"),
        ("epochs", 2.5, "epochs must be"),
        ("settings", ("pi",), "settings must be pairs"),
        ("settings", (("pi", [1]),), "settings must be names with plain values"),
        ("settings", (("pi", float("nan")),), "pi must be finite"),
        ("settings", (("pi", 0.1), ("pi", 0.2)), "once"),
    ],
)
def test_invalid_cell_is_rejected(name, value, message):
    with pytest.raises((ValueError, TypeError), match=message):
        replace(PLAIN, **{name: value})


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ([], "must be an object"),
        ({"dataset": "wine"}, "a cell needs mechanism, method, rate, seed"),
        (PLAIN.to_json() | {"colour": 1}, "a cell has no colour"),
        (PLAIN.to_json() | {"settings": [1]}, "settings must be an object"),
    ],
)
def test_invalid_json_cell_is_rejected(plain, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Cell.from_json(plain)
