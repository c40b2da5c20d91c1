"""Tables that do not match the fitted one: every method refuses them with the same message."""

import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from contract.registry import FAMILIES, IMPUTERS, methods_of

# PSMVAE has every method; the others share the code that reads a table.
METHODS = [("PSMVAE", method) for method in methods_of(IMPUTERS["PSMVAE"]())]
METHODS += [("GAIN", "transform"), ("MICE", "transform"), ("Mean", "sample")]


@pytest.fixture(scope="module")
def frame(mixed):
    return pl.DataFrame(mixed)


@pytest.fixture(scope="module")
def fitted_to_frame(frame):
    """Return an imputer fitted to the frame. It is shared between tests."""
    made = {}

    def fit(name):
        if name not in made:
            made[name] = IMPUTERS[name]().fit(frame)
        return made[name]

    return fit


@pytest.fixture(params=METHODS, ids=" ".join)
def method(request, fitted_to_frame):
    """Each method that takes a table, of a fitted imputer."""
    name, method = request.param
    return getattr(fitted_to_frame(name), method)


class TestEveryMethod:
    def test_refuses_other_column_names(self, method, frame):
        with pytest.raises(ValueError, match="unseen at fit time: 'mass'"):
            method(frame.rename({"weight": "mass"}))
        with pytest.raises(ValueError, match="yet now missing: 'weight'"):
            method(frame.drop("weight"))
        with pytest.raises(ValueError, match="unseen at fit time: 'more'"):
            method(frame.with_columns(more=pl.lit(1.0)))

    def test_refuses_columns_of_another_type(self, method, frame):
        with pytest.raises(TypeError, match=r"'weight' was fitted on numbers.*now holds strings"):
            method(frame.with_columns(pl.col("weight").cast(pl.String)))
        with pytest.raises(TypeError, match=r"'arm' was fitted on strings.*now holds numbers"):
            method(frame.with_columns(arm=pl.col("weight")))
        with pytest.raises(TypeError, match="'weight' is of type Date"):
            method(frame.with_columns(weight=pl.lit(dt.date(2020, 1, 1))))

    def test_refuses_infinity_and_empty_tables(self, method, frame):
        with pytest.raises(ValueError, match="'weight' contains infinity"):
            method(frame.with_columns(weight=pl.lit(float("inf"))))
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            method(frame.head(0))

    def test_refuses_unknown_categories(self, method, frame):
        other = frame.with_columns(arm=pl.Series(["none", "all", *frame["arm"][2:]]))
        with pytest.raises(
            ValueError, match=r"'arm' has 'none', 'all' in 2 rows.*handle_unknown='missing'"
        ):
            method(other)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_another_number_of_columns(fitted, numbers, name, method):
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4 features"):
        getattr(fitted(name), method)(numbers[:, :3])


def test_another_number_of_named_columns(fitted, numbers):
    with pytest.raises(ValueError, match="feature"):
        fitted().transform(pd.DataFrame(numbers[:, :3], columns=list("abc")))


@pytest.mark.parametrize("name", ["PSMVAE", "Mean"])
@pytest.mark.parametrize("library", [pl.DataFrame, pa.table, pd.DataFrame])
def test_columns_are_matched_by_name(fitted_to_frame, mixed, name, library):
    imputer = fitted_to_frame(name)
    reordered = {name: mixed[name] for name in sorted(mixed, reverse=True)}
    one, other = imputer.transform(library(mixed)), imputer.transform(library(reordered))
    # the output has the order of the input
    names = [str(name) for name in getattr(other, "column_names", other.columns)[:]]
    assert names == list(reordered)
    for column in mixed:
        assert list(one[column]) == list(other[column])
    for method in set(methods_of(imputer)) - {"transform", "sample", "score"}:
        call = getattr(imputer, method)
        assert call(library(mixed)).tobytes() == call(library(reordered)).tobytes()


def test_unknown_categories_as_missing(family, frame):
    imputer = family(handle_unknown="missing").fit(frame)
    unknown = frame.with_columns(arm=pl.Series(["none", "all", *frame["arm"][2:]]))
    missing = frame.with_columns(arm=pl.Series([None, None, *frame["arm"][2:]], dtype=pl.String))
    for one, other in zip(
        [imputer.transform(unknown), *imputer.sample(unknown, n=2)],
        [imputer.transform(missing), *imputer.sample(missing, n=2)],
        strict=True,
    ):
        # an observed cell is kept even if the model treats it as missing
        assert one["arm"][:2].to_list() == ["none", "all"]
        assert one.drop("arm").equals(other.drop("arm"))
        assert one["arm"].null_count() == 0
    if hasattr(imputer, "score_samples"):
        assert imputer.score_samples(unknown).tobytes() == imputer.score_samples(missing).tobytes()


@pytest.mark.parametrize("name", FAMILIES)
def test_an_error_does_not_change_the_imputer(fitted_to_frame, frame, name):
    imputer = fitted_to_frame(name)
    before = imputer.transform(frame)
    with pytest.raises(ValueError, match="missing"):
        imputer.transform(frame.drop("weight"))
    assert imputer.transform(frame).equals(before)


@pytest.mark.parametrize("n", [0, -1, 1.5, "two", None, True])
def test_number_of_draws_is_checked(fitted_to_frame, frame, n):
    with pytest.raises((ValueError, TypeError), match=r"^n must be"):
        fitted_to_frame("Mean").sample(frame, n=n)


@pytest.mark.parametrize("seed", [-1, "zero", 1.5])
def test_seed_of_draws_is_checked(fitted_to_frame, frame, seed):
    with pytest.raises(ValueError, match="random_state must be"):
        fitted_to_frame("Mean").sample(frame, n=1, random_state=seed)
