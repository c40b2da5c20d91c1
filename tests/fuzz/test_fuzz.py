"""500 random tables and imputers keep all invariants; `make fuzz` runs more."""

import pytest

from fuzz.run import run_block

N_CASES, BLOCK = 500, 25


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("first", range(0, N_CASES, BLOCK))
def test_cases(first):
    faults = run_block(range(first, first + BLOCK))
    assert not faults, "\n".join(map(str, faults))
