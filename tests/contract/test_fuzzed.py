"""Faults that `make fuzz` found, one test for each class of them."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from contract.registry import IMPUTERS
from psmvae import MultipleImputation, report
from psmvae.table import TableError, write_table


class TestMissForest:
    def test_cells_beyond_the_range_of_float32(self):
        largest = np.finfo(np.float64).max
        values = [1e150, 1.0, largest, -largest, largest, 0.1, -1e150, np.nan]
        table = np.column_stack([values, np.arange(8.0)])
        filled = IMPUTERS["MissForest"]().fit_transform(table)
        assert np.isfinite(filled).all()

    def test_a_later_table_with_distant_cells(self):
        rng = np.random.default_rng(0)
        imputer = IMPUTERS["MissForest"]().fit(rng.normal(size=(20, 2)))
        filled = imputer.transform(np.array([[1e300, np.nan]]))
        assert np.isfinite(filled).all()


class TestMean:
    @pytest.mark.parametrize("unit", [5e-324, 1e300])
    def test_draws_of_very_small_or_large_numbers_give_no_warning(self, unit):
        table = np.array([[3.0], [0.0], [3.0], [np.nan]]) * unit
        imputer = IMPUTERS["Mean"]().fit(table)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for drawn in imputer.sample(table, n=5):
                assert np.isfinite(drawn).all()


@pytest.mark.parametrize("name", ["Mean", "MICE", "MissForest"])
def test_numbers_whose_difference_overflows(name):
    largest = np.finfo(np.float64).max
    table = np.array([[largest], [largest], [-largest], [0.0], [-1e150], [np.nan]])
    imputer = IMPUTERS[name]().fit(table)
    filled = imputer.transform(table)
    if name == "Mean":
        assert filled[5, 0] == pytest.approx(largest / 5)
    for one in (filled, *imputer.sample(table, n=3)):
        assert np.isfinite(one).all()


def test_traces_of_numbers_near_the_largest_float():
    largest = np.finfo(np.float64).max
    table = np.array([[largest], [-largest], [largest], [0.0], [1.0], [np.nan]])
    table = np.column_stack([table, np.arange(6.0)])
    imputer = IMPUTERS["MICE"]().fit(table)
    assert np.isfinite(imputer.convergence().mean).all()


def test_a_report_on_whole_numbers_that_a_float_rounds():
    numbers = pa.array([2**64 - 1, None, 2**63 + 1, 5], pa.uint64())
    table = pa.table({"n": numbers, "x": [1.5, 2.5, None, 0.5]})
    imputer = IMPUTERS["Mean"]().fit(table)
    assert report(table, imputer=imputer, validate=False).markdown()


def test_a_file_of_objects_that_arrow_has_no_type_for(tmp_path):
    table = pd.DataFrame({"x": [1.5, 2.5], "n": [10**40, 1]}, dtype=object)
    with pytest.raises(TableError, match=r"t\.csv: cannot be written: column 'n': "):
        write_table(table, tmp_path / "t.csv")
    assert not list(tmp_path.iterdir())


class TestSetOutput:
    @pytest.mark.parametrize("kind", ["pandas", "array"])
    def test_whole_numbers_that_polars_cannot_hold(self, kind):
        table = pd.DataFrame({"n": [10**40, 2 * 10**40, None], "x": [1.5, 2.5, 3.5]}, dtype=object)
        table = table if kind == "pandas" else table.to_numpy()
        imputer = IMPUTERS["Mean"]().fit(table).set_output(transform="polars")
        name = "n" if kind == "pandas" else "x0"
        with pytest.raises(
            TypeError, match=rf"set_output.* cannot hold column '{name}' \([oO]bject\); convert"
        ):
            imputer.transform(table)

    def test_labels_that_are_not_strings(self):
        table = pd.DataFrame({1: [1.5, None, 3.5], 0: ["a", "b", "a"]})
        imputer = IMPUTERS["Mean"]().fit(table).set_output(transform="polars")
        assert imputer.transform(table)[:, 1].to_list() == ["a", "b", "a"]


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="this pyarrow has no string_view")
def test_the_long_format_of_text_that_arrow_cannot_move():
    text = pa.array(["a", None, "b", "a"], pa.string_view())
    table = pa.table({"word": text, "x": [1.5, None, 2.5, 3.5]})
    imputed = IMPUTERS["Mean"]().fit(table).impute_multiple(table, m=2)
    again = MultipleImputation.from_long(imputed.to_long())
    assert again.original.equals(table)
    assert [each.to_pydict() for each in again] == [each.to_pydict() for each in imputed]
