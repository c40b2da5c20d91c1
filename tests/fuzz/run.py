"""Run cases and report faults."""

import importlib
import time
import traceback
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import psmvae
from contract.conftest import SHORT
from fuzz.cases import make_case
from fuzz.invariants import check_error, check_warnings, require
from fuzz.libraries import content, layout
from fuzz.state import changed, global_state
from fuzz.steps import ALWAYS, STEPS

# A case that takes longer is a fault.
SECONDS = 60.0
N_STEPS = 2


@dataclass(frozen=True)
class Fault:
    """An invariant that does not hold in a case."""

    seed: int
    step: str
    message: str
    case: str

    def __str__(self):
        return f"make fuzz SEED={self.seed} N=1  # {self.step}: {self.message}\n    {self.case}"


@contextmanager
def short_training():
    """Shorten the steps of training before and after the epochs, and use one thread."""
    before = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for name, value in SHORT.items():
        module, _, attribute = name.rpartition(".")
        home = importlib.import_module(module)
        before[home, attribute] = getattr(home, attribute)
        setattr(home, attribute, value)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        for (home, attribute), value in before.items():
            setattr(home, attribute, value)


def run_block(seeds):
    """Run some cases and return their faults."""
    with short_training():
        return [fault for seed in seeds if (fault := run_case(seed)) is not None]


def run_case(seed, *, all_steps=False):
    """Run one case and return its fault, or None."""
    step, case = "generator", None
    began = time.perf_counter()
    try:
        case = make_case(seed)
        table = case.table()
        before, cells, arrangement = global_state(), content(table), layout(table)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            step = "fit"
            imputer = _fitted(case, table)
            for call in [] if imputer is None else _steps(case, all_steps=all_steps):
                step = call.__name__
                call(case, imputer, table)
        check_warnings(caught)
        require(content(table) == cells and layout(table) == arrangement, "the input was changed")
        require(not (names := changed(before)), f"changed: {', '.join(names)}")
        seconds = time.perf_counter() - began
        require(seconds < SECONDS, f"took {seconds:.0f} s")
    except Exception as error:  # noqa: BLE001
        return Fault(seed, step, _message(error), str(case))
    return None


def _fitted(case, table):
    try:
        imputer = case.make().fit(table)
    except Exception as error:  # noqa: BLE001
        check_error(error, case, table)
        return None
    require(not case.must_fail, "fitted a table that has no kind")
    return imputer


def _steps(case, *, all_steps):
    rest = [step for step in STEPS if step not in ALWAYS]
    if all_steps:
        return STEPS
    picked = np.random.default_rng([case.seed, 2]).choice(len(rest), N_STEPS, replace=False)
    return [*ALWAYS, *(rest[k] for k in sorted(picked))]


def _message(error):
    """Return the error in one line, with the place in the library where it was raised."""
    text = " ".join(str(error).split())[:300]
    frames = traceback.extract_tb(error.__traceback__)
    home = str(Path(psmvae.__file__).parent)
    inside = [frame for frame in frames if frame.filename.startswith(home)]
    place = f" ({Path(inside[-1].filename).name}:{inside[-1].lineno})" if inside else ""
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    return f"{kind}{text}{place}"
