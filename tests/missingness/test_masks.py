"""Rates, patterns and flux: what the mask alone tells."""

import numpy as np
import pandas as pd
import pytest

import psmvae
from psmvae.describe.masks import patterns

# rows of 1 (missing) and 0 in the columns a, b, c, d
MASK = ["0000", "0100", "0110", "0110", "0011", "0000", "0101", "0001"]


@pytest.fixture(scope="module")
def found():
    mask = np.array([list(row) for row in MASK]) == "1"
    values = np.arange(32.0).reshape(8, 4)
    values[mask] = np.nan
    return psmvae.missingness(pd.DataFrame(values, columns=list("abcd")))


def test_rates(found):
    rates = found.rates
    assert rates["column"].tolist() == list("abcd")
    assert rates["n_missing"].tolist() == [0, 4, 3, 3]
    assert rates["fraction"].tolist() == [0, 0.5, 0.375, 0.375]
    assert (found.n_rows, found.n_columns, found.n_missing, found.n_complete) == (8, 4, 10, 2)


def test_patterns_are_sorted_by_frequency(found):
    frame = found.patterns
    assert frame["pattern"].tolist() == ["1111", "1001", "1110", "1011", "1100", "1010"]
    assert frame["n"].tolist() == [2, 2, 1, 1, 1, 1]
    assert frame["missing"].tolist() == ["", "b, c", "d", "b", "c, d", "b, d"]
    assert frame["n_missing"].tolist() == [0, 2, 1, 1, 2, 2]
    assert frame["fraction"].sum() == 1


def test_flux_equals_that_of_mice(found):
    """R's mice 3.15, ``flux(data)`` of the same table."""
    flux = found.flux.set_index("column")
    assert flux["pobs"].tolist() == [1, 0.5, 0.625, 0.625]
    expected = [0, 0.409090909090909, 0.272727272727273, 0.318181818181818]
    np.testing.assert_allclose(flux["influx"], expected, rtol=1e-14)
    np.testing.assert_allclose(flux["outflux"], [1, 0.3, 0.4, 0.5], rtol=1e-14)


def test_patterns_of_more_columns_than_bits_of_a_word():
    rng = np.random.default_rng(0)
    mask = rng.random((3, 70)) < 0.3
    found = patterns([f"x{j}" for j in range(70)], mask[np.arange(60) % 3])
    assert found["n"] == [20, 20, 20]
    assert set(found["pattern"]) == {"".join("01"[not lost] for lost in row) for row in mask}
