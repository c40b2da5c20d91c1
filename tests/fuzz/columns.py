"""Contents of odd columns: cells as Python objects, None where missing, and a logical type."""

import datetime as dt
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

# Levels that look like missing cells, numbers, markup or nothing at all.
WORDS = ["a", "b", "", " ", "nan", "NA", "None", "é", "e\u0301", "🙂", "a\nb", "<b>x</b>", "$x_1$"]
WORDS += [
    "1",
    "2.5",
    "-3",
    "x" * 300,
    "ß",
    "日本",
    "\x00",
    "'",
    '"',
    "a,b",
    "=1+1",
    "True",
    "\u202e",
]
NAMES = ["a", "b", "age", "x0", "x1", "Größe", "日本", "🙂", " ", "a b", "a,b", "id", "<b>n</b>"]
NAMES += ["$y_1$", "n" * 300, "a\nb", "'q'", '"', "None", "nan", "e\u0301", "é", "__metadata__"]
NAMES += ["{x}", "%s", "class", "0", "a=1", "\\", "~", "1 + b"]

INTEGERS = {
    f"{sign}int{bits}": (
        0 if sign else -(2 ** (bits - 1)),
        2 ** (bits if sign else bits - 1) - 1,
    )
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}


@dataclass(frozen=True)
class Column:
    """A column of a table.

    `dtype` is a logical type that each library maps to one of its own. `refused` is True if the
    content has no kind, and None if an imputer may refuse it. `categories` are those of a
    categorical type.
    """

    name: str
    content: str
    dtype: str
    cells: list
    refused: bool | None = False
    categories: tuple = ()

    def take(self, rows):
        """Return the column of some rows; None is a row without a value."""
        return replace(self, cells=[None if row is None else self.cells[row] for row in rows])

    @property
    def observed(self):
        """The cells that are not missing."""
        return [cell for cell in self.cells if cell is not None]


def _reals(rng, n):
    return rng.normal(rng.choice([0.0, 50.0]), rng.choice([1.0, 20.0]), n).tolist()


def _magnitudes(rng, n):
    exponents = rng.uniform(-300, 300, n)
    return (rng.choice([-1.0, 1.0], n) * 10**exponents).tolist()


def _edges(rng, n):
    most = np.finfo(np.float64).max
    values = [0.0, -0.0, 5e-324, 1e-310, 1.0, -1.0, 0.1, 1e150, -1e150, most, -most, most / 4]
    return rng.choice(values, n).tolist()


def _integers(rng, n, dtype):
    low, high = INTEGERS[dtype]
    match rng.integers(4):
        case 0:
            return rng.integers(low, high, n, dtype=dtype, endpoint=True).tolist()
        case 1:
            return [int(v) for v in rng.choice(np.array([low, high, 1], dtype=object), n)]
        case 2:
            return rng.integers(0, 5, n).tolist()
    return rng.integers(max(low, -40), 100, n).tolist()


def _words(rng, n, size=None):
    pool = rng.choice(len(WORDS), size or rng.choice([1, 2, 3, 8]), replace=False)
    return [WORDS[k] for k in rng.choice(pool, n)]


def _decimals(rng, n):
    return [Decimal(int(v)).scaleb(-2) for v in rng.integers(-(10**5), 10**5, n)]


CONTENTS = {
    "real": lambda rng, n: ("float64", _reals(rng, n)),
    "float32": lambda rng, n: ("float32", np.float32(_reals(rng, n)).tolist()),
    "float16": lambda rng, n: ("float16", np.float16(_reals(rng, n)).tolist()),
    "far from zero": lambda rng, n: ("float64", (1e15 + rng.normal(size=n)).tolist()),
    "tiny": lambda rng, n: ("float64", (rng.integers(-3, 4, n) * 5e-324).tolist()),
    "whole floats": lambda rng, n: ("float64", rng.integers(-5, 40, n).astype(float).tolist()),
    "zero or one": lambda rng, n: ("float64", rng.integers(0, 2, n).astype(float).tolist()),
    "codes": lambda rng, n: ("int64", rng.integers(1, 5, n).tolist()),
    "row number": lambda rng, n: ("int64", list(range(n))),
    "steps": lambda rng, n: ("float32", rng.choice([0.5, 1.5, -2.25], n).tolist()),
    "constant": lambda rng, n: ("float64", [float(rng.choice([0.0, -0.0, 3.5, 1e-300]))] * n),
    "constant word": lambda rng, n: ("string", [WORDS[rng.integers(len(WORDS))]] * n),
    **{dtype: lambda rng, n, dtype=dtype: (dtype, _integers(rng, n, dtype)) for dtype in INTEGERS},
    "bool": lambda rng, n: ("bool", (rng.random(n) < rng.choice([0.1, 0.5, 1.0])).tolist()),
    "word": lambda rng, n: ("string", _words(rng, n)),
    "number as text": lambda rng, n: ("string", [f"{v:.1f}" for v in rng.normal(size=n)]),
    "identifier": lambda rng, n: ("string", [f"p{k}" for k in rng.permutation(n)]),
    "category": lambda rng, n: ("category", _words(rng, n)),
    "ordered": lambda rng, n: ("ordered", rng.choice(["low", "mid", "high"], n).tolist()),
    "category of numbers": lambda rng, n: ("category", rng.choice([7, 3, -1], n).tolist()),
    "decimal": lambda rng, n: ("decimal", _decimals(rng, n)),
    "long integer": lambda rng, n: ("object", [int(v) * 10**20 for v in rng.integers(-9, 9, n)]),
    "nothing": lambda rng, n: (str(rng.choice(["float64", "string", "bool", "null"])), [None] * n),
}
# An imputer may refuse these, by the name of the column.
EXTREME = {
    "magnitudes": lambda rng, n: ("float64", _magnitudes(rng, n)),
    "edges": lambda rng, n: ("float64", _edges(rng, n)),
}
# These have no kind: every imputer refuses them, by the name of the column.
REFUSED = {
    "infinity": lambda rng, n: ("float64", [float("inf"), *_reals(rng, n - 1)]),
    "date": lambda rng, n: ("date", [dt.date(2020, 1, 1) + dt.timedelta(k) for k in range(n)]),
    "time": lambda rng, n: ("time", [dt.datetime(2020, 1, 1, 5)] * n),
    "list": lambda rng, n: ("list", [[1, 2]] * n),
    "bytes": lambda rng, n: ("object", [b"x"] * n),
    "fraction": lambda rng, n: ("object", [Fraction(1, 3)] * n),
    "complex": lambda rng, n: ("object", [1 + 2j] * n),
    "mixture": lambda rng, n: ("object", ["a", *[1.5] * n][:n]),
    "endless integer": lambda rng, n: ("object", [10**400] * n),
    "long double": lambda rng, n: ("longdouble", _reals(rng, n)),
}


def make_column(rng, name, content, n_rows):
    """Return a column without missing cells, except where the content is missing."""
    if content == "mixture" and n_rows == 1:
        content = "real"
    dtype, cells = (CONTENTS | EXTREME | REFUSED)[content](rng, n_rows)
    refused = True if content in REFUSED else None if content in EXTREME else False
    categories = ()
    if dtype in ("category", "ordered"):
        spare = [99] if content == "category of numbers" else ["spare"]
        known = ["low", "mid", "high"] if dtype == "ordered" else list(dict.fromkeys(cells))
        categories = tuple(known + (spare if rng.random() < 0.3 else []))
    return Column(name, content, dtype, list(cells), refused, categories)


def with_holes(rng, column, rate):
    """Return the column with missing cells; what makes it refused stays observed."""
    kept = 1 if column.refused else 0
    cells = [
        cell if k < kept or rng.random() >= rate else None for k, cell in enumerate(column.cells)
    ]
    if column.content == "mixture":
        cells[:2] = column.cells[:2]
    return replace(column, cells=cells)
