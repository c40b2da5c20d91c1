"""Bounds, derived columns and `where` of every imputer, and the warnings about values."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from contract.registry import FAMILIES, IMPUTERS
from psmvae import MeanImputer, MICEImputer, load
from psmvae.imputers.blocks import BlockSeed
from psmvae.imputers.fit_warnings import FewRowsWarning, MaxTimeWarning, NothingLearnedWarning
from psmvae.imputers.truncation import truncated_draws
from psmvae.kinds import Column
from psmvae.table import (
    ConstantColumnsWarning,
    FormulaDomainWarning,
    IdentifierWarning,
    OutsideRangeWarning,
)

DERIVED = {"ratio": "bmi / 25", "bmi": "wgt / (hgt / 100) ** 2"}


pytestmark = pytest.mark.filterwarnings("ignore:the imputations of this GAINImputer")


@pytest.fixture(scope="module")
def body():
    """Heights, weights, codes and two derived columns, as columns of lists."""
    rng = np.random.default_rng(3)
    n = 60
    hgt = rng.normal(170, 9, n).round(1)
    wgt = (hgt - 100 + rng.normal(0, 8, n)).round(1)
    bmi = wgt / (hgt / 100) ** 2
    columns = {"hgt": hgt, "wgt": wgt, "bmi": bmi, "ratio": bmi / 25, "tv": rng.integers(0, 4, n)}
    lists = {name: values.tolist() for name, values in columns.items()}
    for name, step in (("hgt", 7), ("wgt", 5), ("tv", 4)):
        lists[name][::step] = [None] * len(lists[name][::step])
    for i in range(n):
        if None in (lists["hgt"][i], lists["wgt"][i]):
            lists["bmi"][i] = lists["ratio"][i] = None
    # a derived cell that is missing although its inputs are known, and the reverse
    lists["bmi"][1] = None
    lists["bmi"][5] = 99.0
    return lists


def frames(body):
    return {
        "pandas": pd.DataFrame(body).astype({"tv": "Int64"}),
        "polars": pl.DataFrame(body),
        "pyarrow": pa.table(body),
    }


def as_pandas(table):
    return table if isinstance(table, pd.DataFrame) else table.to_pandas()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("name", FAMILIES)
def test_derived_columns_follow_their_inputs(body, name, library):
    table = frames(body)[library]
    imputer = IMPUTERS[name](derived=DERIVED).fit(table)
    mi = imputer.impute_multiple(table, m=2)
    for each in [imputer.transform(table), *mi]:
        assert type(each) is type(table)
        filled = as_pandas(each)
        assert not filled.isna().any().any()
        bmi = filled["wgt"] / (filled["hgt"] / 100) ** 2
        np.testing.assert_allclose(filled["bmi"], bmi, rtol=1e-12)
        np.testing.assert_allclose(filled["ratio"], bmi / 25, rtol=1e-12)
        assert set(filled["tv"]) == {0, 1, 2, 3}
    # row 5 had a BMI without a weight: it is computed from the imputed weight
    assert mi.mask[[1, 5], 2].tolist() == [True, True]
    assert not mi.mask[2, 2]


def test_derived_columns_of_arrays_and_renamed_columns(numbers):
    table = np.column_stack([numbers, numbers[:, 0] + 2 * numbers[:, 1]])
    imputer = MeanImputer(derived={"x4": "x0 + 2 * x1"}).fit(table)
    filled = imputer.transform(table)
    np.testing.assert_allclose(filled[:, 4], filled[:, 0] + 2 * filled[:, 1])
    frame = pd.DataFrame(table, columns=list("abcde"))
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        again = imputer.transform(frame)
    np.testing.assert_array_equal(again.to_numpy(), filled)


def test_column_settings_are_saved(body, tmp_path):
    table = frames(body)["pandas"]
    settings = {
        "kinds": {"tv": ("ordinal", [3, 2, 1, 0])},
        "bounds": {"wgt": (30, np.inf)},
        "derived": DERIVED,
    }
    imputer = MeanImputer(random_state=0, **settings).fit(table)
    imputer.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.schema_ == imputer.schema_
    pd.testing.assert_frame_equal(again.transform(table), imputer.transform(table))
    assert again.bounds == {"wgt": (30, None)}
    assert again.derived == DERIVED
    facts = {column["name"]: column for column in again.describe()["columns"]}
    assert facts["tv"]["kind"] == "ordinal"
    assert facts["tv"]["reason"] == "declared: 3 < 2 < 1 < 0"
    assert facts["bmi"]["reason"].startswith("derived: wgt / ")
    assert (facts["wgt"]["low"], facts["wgt"]["high"]) == (30.0, None)


def test_a_formula_that_is_not_finite_is_reported(body):
    table = frames(body)["pandas"].assign(ratio=np.nan)
    imputer = MeanImputer(derived={"ratio": "log(wgt - 1000)"}).fit(table)
    with pytest.warns(FormulaDomainWarning, match=r"'ratio'.*60 rows.*bounds") as caught:
        filled = imputer.transform(table)
    assert len(caught) == 1
    assert filled["ratio"].isna().all()


# the third column has no bounds, and draws exceed its range
@pytest.mark.filterwarnings("ignore:imputed values outside the observed range")
@pytest.mark.parametrize("name", IMPUTERS)
def test_draws_and_points_are_inside_the_bounds(name):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1)) + rng.normal(size=(60, 3))
    x = np.clip(x, -1.5, 1.5)
    x[:, 0] = np.abs(x[:, 0])
    x[rng.random(x.shape) < 0.3] = np.nan
    imputer = IMPUTERS[name](bounds={"x1": (-1.5, 1.5)}).fit(x)
    for each in [imputer.transform(x), *imputer.sample(x, n=5)]:
        assert each[:, 0].min() >= 0
        assert np.abs(each[:, 1]).max() <= 1.5


def test_draws_are_truncated_and_not_clipped():
    """Truncated N(0, 1) draws above 0 have mean √(2/π) and standard deviation √(1 - 2/π)."""

    def draw(x, m, n, seed):
        return np.random.default_rng(seed.cells).normal(size=(len(x), n, x.shape[1]))

    columns = [Column("a", "real", "Float64", 9, low=0.0), Column("b", "real", "Float64", 9)]
    x, m = np.zeros((2000, 2)), np.zeros((2000, 2), dtype=bool)
    drawn = truncated_draws(draw, columns, x, m, 10, BlockSeed(0))
    assert drawn[..., 0].mean() == pytest.approx(np.sqrt(2 / np.pi), abs=0.02)
    assert drawn[..., 0].std() == pytest.approx(np.sqrt(1 - 2 / np.pi), abs=0.02)
    assert (drawn[..., 0] == 0).mean() < 0.005
    assert drawn[..., 1].std() == pytest.approx(1.0, abs=0.02)


def test_rows_are_redrawn_as_a_whole_so_that_cells_stay_dependent():
    def draw(x, m, n, seed):
        common = np.random.default_rng(seed.cells).normal(size=(len(x), n, 1))
        return np.repeat(common, 2, axis=2)

    columns = [Column("a", "real", "Float64", 9, low=-1.0), Column("b", "real", "Float64", 9)]
    x, m = np.zeros((500, 2)), np.zeros((500, 2), dtype=bool)
    drawn = truncated_draws(draw, columns, x, m, 10, BlockSeed(0))
    assert (drawn[..., 0] == drawn[..., 1]).mean() > 0.995
    assert drawn[..., 0].min() >= -1


def test_observed_cells_out_of_bounds_are_not_redrawn():
    def draw(x, m, n, seed):
        return np.where(m, -5.0, 1.0)[:, None, :].repeat(n, axis=1)

    columns = [Column("a", "real", "Float64", 9, low=0.0)]
    m = np.array([[True], [False]])
    drawn = truncated_draws(draw, columns, np.zeros((2, 1)), m, 3, BlockSeed(0))
    assert drawn[:, 0, 0].tolist() == [-5.0, 1.0]


def where_of(table, library):
    wanted = np.random.default_rng(1).random(as_pandas(table).shape) < 0.5
    names = list(as_pandas(table).columns)
    data = {name: wanted[:, j].tolist() for j, name in enumerate(names)}
    back = {name: data[name] for name in reversed(names)}
    made = {"pandas": pd.DataFrame(back), "polars": pl.DataFrame(back), "pyarrow": pa.table(back)}
    return wanted, [wanted, made[library]]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("name", FAMILIES)
def test_where_selects_the_cells_to_fill(mixed, name, library):
    table = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library](mixed)
    imputer = IMPUTERS[name]().fit(table)
    missing = as_pandas(table).isna().to_numpy()
    wanted, spellings = where_of(table, library)
    complete = imputer.sample(table, n=2)
    for where in spellings:
        mi = imputer.impute_multiple(table, m=2, where=where)
        np.testing.assert_array_equal(mi.mask, missing & wanted)
        for part, whole in zip(mi, complete, strict=True):
            assert type(part) is type(table)
            found, expected = as_pandas(part), as_pandas(whole)
            np.testing.assert_array_equal(found.isna().to_numpy(), missing & ~wanted)
            # the values are those that are drawn without `where`
            same = (found == expected).to_numpy() | (missing & ~wanted)
            assert same.all()
        points = as_pandas(imputer.transform(table, where=where))
        np.testing.assert_array_equal(points.isna().to_numpy(), missing & ~wanted)


def test_where_of_an_array_keeps_structural_holes(numbers):
    imputer = MICEImputer(random_state=0).fit(numbers)
    where = np.zeros(numbers.shape, dtype=bool)
    np.testing.assert_array_equal(imputer.transform(numbers, where=where), numbers)
    where[:, 1] = True
    filled = imputer.transform(numbers, where=where)
    assert not np.isnan(filled[:, 1]).any()
    np.testing.assert_array_equal(np.delete(filled, 1, 1), np.delete(numbers, 1, 1))


def test_where_keeps_derived_cells(body):
    table = frames(body)["pandas"]
    where = pd.DataFrame(True, index=table.index, columns=table.columns).assign(ratio=False)
    filled = MeanImputer(derived=DERIVED).fit(table).transform(table, where=where)
    assert filled["ratio"].equals(table["ratio"])
    assert not filled["bmi"].isna().any()


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (np.ones((3, 4), dtype=bool), "shape of X"),
        (np.ones((30, 4)), "True or False"),
        (np.full((30, 4), None), "True or False"),
        ("x0", "expected a pandas"),
    ],
)
def test_where_that_cannot_be_used(numbers, where, words):
    imputer = MeanImputer().fit(numbers)
    with pytest.raises((ValueError, TypeError), match=words):
        imputer.transform(numbers, where=where)


def test_where_of_pandas_is_matched_by_its_index():
    rows = list("pqrs")
    table = pd.DataFrame({"a": [1.5, None, None, 3.5], "b": [1.0, 2.0, 3.0, 4.5]}, index=rows)
    where = pd.DataFrame({"a": [False, True, False, False], "b": False}, index=rows)
    imputer = MeanImputer().fit(table)
    for each in (where, where.iloc[::-1]):
        filled = imputer.transform(table, where=each)
        assert filled["a"].isna().tolist() == [False, False, True, False]
    for index in (range(4), list("ppqr")):
        with pytest.raises(ValueError, match=r"where must have the index of X.*set_axis"):
            imputer.transform(table, where=where.set_axis(index))


def test_few_observed_values_and_imputations_far_from_them():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=60), "b": np.nan})
    table.loc[[0, 1], "b"] = [5.1, 5.2]
    with pytest.warns(OutsideRangeWarning, match="'b'"):
        MICEImputer(random_state=0).fit(table).sample(table, n=5)


@pytest.mark.parametrize("parameter", [{"bounds": {"bmi": (20, 21)}}, {"kinds": {"bmi": "count"}}])
def test_statements_about_a_derived_column_are_refused(body, parameter):
    (name,) = parameter
    imputer = MeanImputer(derived=DERIVED, **parameter)
    with pytest.raises(ValueError, match=f"{name} names the derived column 'bmi'.*follow from"):
        imputer.fit(frames(body)["pandas"])


def test_a_derived_column_cannot_be_a_predictor(body):
    imputer = MICEImputer(derived=DERIVED, predictors={"wgt": ["bmi"]})
    with pytest.raises(ValueError, match="predictors names 'bmi', which is derived"):
        imputer.fit(frames(body)["pandas"])


def test_warnings_name_the_line_of_the_caller(body):
    table = frames(body)["pandas"].assign(site="Basel")
    with pytest.warns(UserWarning, match="one distinct") as caught:
        MeanImputer().fit(table)
    assert [one.filename for one in caught] == [__file__]


def test_where_with_other_columns():
    table = pd.DataFrame({"a": [1.5, None, 2.5], "b": [1.5, 2.5, 0.5]})
    where = pd.DataFrame({"a": [True] * 3, "c": [True] * 3})
    with pytest.raises(ValueError, match="no 'b'"):
        MeanImputer().fit(table).transform(table, where=where)


def test_identifiers_and_constant_columns_are_reported(body):
    table = frames(body)["pandas"].assign(patient=range(1000, 1060), site="Basel")
    with (
        pytest.warns(ConstantColumnsWarning, match="others: 'site';"),
        pytest.warns(IdentifierWarning, match="'patient'.*modelled as numbers"),
    ):
        MeanImputer().fit(table)


@pytest.mark.parametrize(
    "values",
    [
        # fractions, repeated, missing, few rows, measurements in any order
        np.arange(60) + 0.5,
        np.arange(60) // 2,
        np.where(np.arange(60) == 5, np.nan, np.arange(60)),
        np.random.default_rng(0).permutation(np.arange(60) * 137),
    ],
)
def test_columns_that_are_no_identifiers(values):
    MeanImputer().fit(pd.DataFrame({"a": values, "b": np.arange(60) % 7 + 0.5}))


@pytest.mark.parametrize("name", ["id", "patient_id", "subjectId", "Id.1", "case no"])
def test_a_name_can_make_an_identifier(name):
    values = np.random.default_rng(0).permutation(np.arange(60) * 137)
    with pytest.warns(IdentifierWarning):
        MeanImputer().fit(pd.DataFrame({name: values, "b": np.arange(60) % 7 + 0.5}))


def test_imputations_outside_the_observed_range_are_reported():
    """The line of 60 rows is extrapolated to ten times their range."""
    x = np.arange(60) - 30.5
    table = np.column_stack([x, 3 * x + np.sin(x)])
    imputer = MICEImputer(random_state=0).fit(table)
    new = np.array([[500.5, np.nan], [0.5, np.nan]])
    with pytest.warns(OutsideRangeWarning, match=r"'x1' \(1 value\).*bounds") as caught:
        imputer.transform(new)
    assert len(caught) == 1
    MICEImputer(random_state=0, bounds={"x1": (-100, 100)}).fit(table).transform(new)


class TestFit:
    """Warnings about the fit of a deep imputer."""

    @staticmethod
    def table(n_rows, noise):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(n_rows, 1)) + noise * rng.normal(size=(n_rows, 4))
        x[rng.random(x.shape) < 0.1] = np.nan
        return x

    @staticmethod
    def categories_of(caught):
        return [one.category for one in caught if one.category is not DeprecationWarning]

    def test_few_rows(self, quick):
        with pytest.warns(FewRowsWarning, match=r"40 rows.*MICEImputer"):
            quick().fit(self.table(40, 0.1))

    def test_nothing_learned(self, quick):
        with pytest.warns(NothingLearnedWarning, match=r"column means, 1\.0"):
            quick().fit(self.table(100, 1e6))

    def test_max_time(self, quick):
        with pytest.warns(MaxTimeWarning, match=r"1e-09 s.* 1 of at most 50 epochs"):
            quick(max_time=1e-9, max_epochs=50).fit(self.table(100, 0.1))

    def test_a_good_fit_has_no_warning(self, quick, recwarn):
        quick(max_epochs=5).fit(self.table(100, 0.1))
        assert self.categories_of(recwarn) == []
