"""Bad tables after fit: every question refuses them with the same words."""

import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from contract.registry import IMPUTERS, methods_of

QUESTIONS = [(name, method) for name, make in IMPUTERS.items() for method in methods_of(make())]


@pytest.fixture(scope="module")
def frame(mixed):
    return pl.DataFrame(mixed)


@pytest.fixture(scope="module")
def fitted_to_frame(frame):
    """Each imputer fitted to the frame, made once: not to be changed."""
    made = {}

    def fit(name):
        if name not in made:
            made[name] = IMPUTERS[name]().fit(frame)
        return made[name]

    return fit


@pytest.fixture(params=QUESTIONS, ids=" ".join)
def ask(request, fitted_to_frame):
    """Each question that can be asked of each imputer."""
    name, method = request.param
    return getattr(fitted_to_frame(name), method)


class TestQuestions:
    def test_names_that_are_new_or_gone(self, ask, frame):
        with pytest.raises(ValueError, match="unseen at fit time: 'mass'"):
            ask(frame.rename({"weight": "mass"}))
        with pytest.raises(ValueError, match="yet now missing: 'weight'"):
            ask(frame.drop("weight"))
        with pytest.raises(ValueError, match="unseen at fit time: 'more'"):
            ask(frame.with_columns(more=pl.lit(1.0)))

    def test_another_type(self, ask, frame):
        with pytest.raises(TypeError, match=r"'weight' was fitted on numbers.*now holds strings"):
            ask(frame.with_columns(pl.col("weight").cast(pl.String)))
        with pytest.raises(TypeError, match=r"'arm' was fitted on strings.*now holds numbers"):
            ask(frame.with_columns(arm=pl.col("weight")))
        with pytest.raises(TypeError, match="'weight' is of type Date"):
            ask(frame.with_columns(weight=pl.lit(dt.date(2020, 1, 1))))

    def test_infinity_and_no_rows(self, ask, frame):
        with pytest.raises(ValueError, match="'weight' contains infinity"):
            ask(frame.with_columns(weight=pl.lit(float("inf"))))
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            ask(frame.head(0))

    def test_unseen_levels(self, ask, frame):
        odd = frame.with_columns(arm=pl.Series(["none", "all", *frame["arm"][2:]]))
        with pytest.raises(
            ValueError, match=r"'arm' has 'none', 'all' in 2 rows.*handle_unknown='missing'"
        ):
            ask(odd)


@pytest.mark.parametrize(("name", "method"), QUESTIONS)
def test_another_number_of_columns(fitted, numbers, name, method):
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4 features"):
        getattr(fitted(name), method)(numbers[:, :3])


def test_another_number_of_columns_with_names(fitted, numbers):
    with pytest.raises(ValueError, match="feature"):
        fitted().transform(pd.DataFrame(numbers[:, :3], columns=list("abc")))


@pytest.mark.parametrize("name", IMPUTERS)
@pytest.mark.parametrize("library", [pl.DataFrame, pa.table, pd.DataFrame])
def test_the_order_of_columns_is_repaired(fitted_to_frame, mixed, name, library):
    imputer = fitted_to_frame(name)
    turned = {name: mixed[name] for name in sorted(mixed, reverse=True)}
    one, other = imputer.transform(library(mixed)), imputer.transform(library(turned))
    # the columns stay where the user put them
    names = [str(name) for name in getattr(other, "column_names", other.columns)[:]]
    assert names == list(turned)
    for column in mixed:
        assert list(one[column]) == list(other[column])
    for method in set(methods_of(imputer)) - {"transform", "sample", "score"}:
        ask = getattr(imputer, method)
        assert ask(library(mixed)).tobytes() == ask(library(turned)).tobytes()


def test_unseen_levels_as_missing(make, frame):
    imputer = make(handle_unknown="missing").fit(frame)
    odd = frame.with_columns(arm=pl.Series(["none", "all", *frame["arm"][2:]]))
    empty = frame.with_columns(arm=pl.Series([None, None, *frame["arm"][2:]], dtype=pl.String))
    for one, other in zip(
        [imputer.transform(odd), *imputer.sample(odd, n=2)],
        [imputer.transform(empty), *imputer.sample(empty, n=2)],
        strict=True,
    ):
        # an observed cell is not touched, though the model cannot read it
        assert one["arm"][:2].to_list() == ["none", "all"]
        assert one.drop("arm").equals(other.drop("arm"))
        assert one["arm"].null_count() == 0
    if hasattr(imputer, "score_samples"):
        assert imputer.score_samples(odd).tobytes() == imputer.score_samples(empty).tobytes()


@pytest.mark.parametrize("name", IMPUTERS)
class TestAfterAnError:
    def test_nothing_is_lost(self, fitted_to_frame, frame, name):
        imputer = fitted_to_frame(name)
        before = imputer.transform(frame)
        with pytest.raises(ValueError, match="missing"):
            imputer.transform(frame.drop("weight"))
        assert imputer.transform(frame).equals(before)

    @pytest.mark.parametrize("n", [0, -1, 1.5, "two", None, True])
    def test_number_of_draws(self, fitted_to_frame, frame, name, n):
        with pytest.raises((ValueError, TypeError), match=r"^n must be"):
            fitted_to_frame(name).sample(frame, n=n)

    @pytest.mark.parametrize("seed", [-1, "zero", 1.5])
    def test_seed_of_the_draws(self, fitted_to_frame, frame, name, seed):
        with pytest.raises(ValueError, match="random_state must be"):
            fitted_to_frame(name).sample(frame, n=1, random_state=seed)
