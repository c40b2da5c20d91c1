"""A case: a table, an imputer and how both are used, all drawn from one seed."""

from dataclasses import dataclass, field, replace

import numpy as np

from contract.registry import CLASSES, CLASSICAL, DEEP, quick
from fuzz.columns import (
    CONTENTS,
    EXTREME,
    INTEGERS,
    NAMES,
    REFUSED,
    Column,
    make_column,
    with_holes,
)
from fuzz.libraries import LIBRARIES, Array

N_ROWS = [1, 2, 3, 5, 12, 12, 30, 60]
N_COLUMNS = [1, 2, 3, 3, 4, 6]
RATES = [0.0, 0.1, 0.3, 0.3, 0.6, 1.0]
# Parameters that change what is computed, each in some of the cases.
DEEP_OPTIONS = {
    "mask_model": ["auto", "self", "none", "latent", "logistic-ceiling", "linear", "network"],
    "draws": ["proper", "model"],
    "numeric_draws": ["auto", "pmm"],
    "scale": ["learned", "student", 0.5],
    "n_members": [1, 2],
    "n_sets": [1, 3],
    "n_draws": [1, 3],
}
CHAIN_OPTIONS = {
    "mask_model": ["none", "auto", "self"],
    "method": ["norm", "pmm"],
    "standardise": [True, False],
}


@dataclass(frozen=True)
class Case:
    """What one seed draws.

    `faulty` says why the table may or must be refused: "" if it must be fitted, "name" if an error
    has to name one of the columns `suspects`, "table" for a fault of the whole table. With
    `must_fail`, it has to be refused.
    """

    seed: int
    library: object
    columns: tuple[Column, ...]
    imputer: str
    parameters: dict = field(default_factory=dict)
    faulty: str = ""
    must_fail: bool = False

    def table(self):
        """Build the table of the fit."""
        return self.library.build(self.columns)

    def make(self):
        """Make the imputer, not fitted yet."""
        return quick(CLASSES[self.imputer], **self.parameters)

    @property
    def n_rows(self):
        """Number of rows of the table."""
        return len(self.columns[0].cells) if self.columns else 0

    @property
    def suspects(self):
        """Positions of the columns that an error may be about."""
        return [j for j, column in enumerate(self.columns) if column.refused is not False]

    @property
    def rng(self):
        """Random numbers for the use of the imputer."""
        return np.random.default_rng([self.seed, 1])

    def __str__(self):
        library = type(self.library).__name__
        how = ", ".join(f"{k}={v!r}" for k, v in vars(self.library).items() if k != "flavours")
        columns = ", ".join(f"{c.name[:20]!r}: {c.content}" for c in self.columns)
        own = ", ".join(f"{k}={v!r}" for k, v in self.parameters.items())
        return f"{self.imputer}({own}), {library}({how}), {self.n_rows} rows, {{{columns}}}"


def make_case(seed):
    """Draw a case."""
    rng = np.random.default_rng([seed, 0])
    library = LIBRARIES[rng.choice(list(LIBRARIES), p=[0.25, 0.05, 0.3, 0.2, 0.15, 0.05])](rng)
    columns = _columns(rng, library)
    name = str(rng.choice(DEEP) if rng.random() < 0.35 else rng.choice(CLASSICAL))
    parameters = _options(rng, name) | _declared(rng, library, columns)
    case = Case(seed, library, columns, name, parameters)
    return _with_faults(rng, case)


def _columns(rng, library):
    n_rows = int(rng.choice(N_ROWS))
    pool = [*CONTENTS, *EXTREME] if rng.random() < 0.15 else list(CONTENTS)
    if rng.random() < 0.06:
        pool = [*pool, *REFUSED]
    names = _names(rng, library, 8)
    columns = []
    numeric = isinstance(library, Array) and rng.random() < 0.6
    if numeric:
        # an array of numbers, not of objects
        dtype = str(rng.choice(["float64", "float32", *INTEGERS, "bool"]))
        pool = {
            "float64": [
                *("real", "far from zero", "tiny", "whole floats", "zero or one", "constant"),
                *(["magnitudes", "edges", "infinity"] if rng.random() < 0.2 else []),
            ],
            "float32": ["float32", "steps"],
        }.get(dtype, [dtype])
    for name in names[: int(rng.choice(N_COLUMNS))]:
        made = make_column(rng, name, str(rng.choice(pool)), n_rows)
        if not library.holds(made):
            made = make_column(rng, name, "real", n_rows)
        rate = 0.0 if numeric and made.dtype in (*INTEGERS, "bool") else float(rng.choice(RATES))
        columns.append(with_holes(rng, made, rate))
    return tuple(columns)


def _names(rng, library, n):
    if getattr(library, "labels", None) == "integers":
        return [str(k) for k in rng.choice(50, n, replace=False)]
    return [NAMES[k] for k in rng.choice(len(NAMES), n, replace=False)]


def _options(rng, name):
    """Draw parameters of the imputer, each with a small probability."""
    allowed = CLASSES[name]().get_params()
    pool = DEEP_OPTIONS if name in DEEP else CHAIN_OPTIONS
    picked = {
        option: values[rng.integers(len(values))]
        for option, values in pool.items()
        if option in allowed and rng.random() < 0.3
    }
    if name != "PSMVAE" and name in DEEP and picked.get("mask_model") in ("auto", "self"):
        picked["mask_model"] = "linear"
    if name == "NotMIWAE" and picked.get("mask_model") in ("none", "latent"):
        picked["mask_model"] = "logistic"
    return picked | ({"handle_unknown": "missing"} if rng.random() < 0.5 else {})


def _declared(rng, library, columns):
    """Draw declared kinds and bounds that fit the columns."""
    kinds, bounds = {}, {}
    labels = isinstance(library, LIBRARIES["pandas"]) and library.labels == "multi"
    for j, column in enumerate(columns):
        seen = column.observed
        if column.refused is not False or not seen or rng.random() < 0.8:
            continue
        name = column.name if library.has_names else f"x{j}"
        name = str(("all", name)) if labels else name
        if column.dtype in ("float64", "float32") and column.content in ("real", "float32"):
            bounds[name] = (min(seen) - 1, max(seen) + 1)
        elif column.content in ("codes", "whole floats", "zero or one"):
            kinds[name] = str(rng.choice(["real", "integer", "categorical", "ordinal"]))
        elif column.content == "word" and "" not in seen:
            kinds[name] = ("categorical", sorted(set(seen)))
    derived = {}
    simple = [c.name for c in columns if c.content == "real" and c.name.isidentifier()]
    if library.has_names and not labels and len(simple) > 1 and rng.random() < 0.3:
        derived = {simple[1]: f"{simple[0]} * 2 + 1"}
        bounds.pop(simple[1], None)
    given = {"kinds": kinds, "bounds": bounds, "derived": derived}
    return {name: value for name, value in given.items() if value}


def _with_faults(rng, case):
    """Return the case with what is wrong about its table, and in few cases make it wrong."""
    draw = rng.random()
    if draw < 0.01 and len(case.columns) > 1 and case.library.has_names:
        columns = list(case.columns)
        columns[-1] = replace(columns[-1], name=columns[0].name)
        if not isinstance(case.library, LIBRARIES["polars"]):
            return replace(case, columns=tuple(columns), faulty="table", must_fail=True)
    if draw < 0.015:
        columns = tuple(replace(column, cells=[]) for column in case.columns)
        return replace(case, columns=columns, faulty="table", must_fail=True)
    must_fail = any(column.refused for column in case.columns)
    if must_fail or case.suspects:
        return replace(case, faulty="name", must_fail=must_fail)
    # derived columns are not modelled
    derived = case.parameters.get("derived", ())
    if not any(column.observed for column in case.columns if column.name not in derived):
        return replace(case, faulty="table", must_fail=True)
    return case
