"""Structured errors and warnings: attributes, and another remedy in the text."""

import pickle
import warnings

import pytest

from psmvae.table import (
    ColumnMismatchError,
    ContentMismatchError,
    EmptyColumnsWarning,
    IdentifierWarning,
    KindMismatchError,
    OutputExistsError,
    StrayTextError,
    StrayTextWarning,
    StrayValues,
    TooManyLevelsError,
    UnknownLevelsError,
    UnsupportedColumnError,
    UnsupportedColumnsError,
)
from psmvae.table.codec import Codec
from psmvae.table.paths import check_output

STRAY = StrayValues("a", 20, {"unknown": 2, "?": 1}, {})
DATE = UnsupportedColumnError("day", "is of type date, which has no kind", "numbers")
ALL = [
    OutputExistsError("table.csv"),
    DATE,
    UnsupportedColumnsError.joining([DATE, UnsupportedColumnError("list", "is of type list")]),
    ColumnMismatchError(unexpected=("b",), absent=("a",)),
    UnknownLevelsError("a", levels=("z",), n_cells=2, known_levels=("x", "y")),
    TooManyLevelsError("a", "categorical", 1200, 1200, 1000),
    TooManyLevelsError("a", "categorical", 1200, 1200, 1000, stray=STRAY),
    KindMismatchError("a", "integer", "1 of 2 values are not whole", ("real",), "round it"),
    StrayTextError("a", "real", "String"),
    StrayTextError("a", "real", "String", stray=STRAY),
    ContentMismatchError("a", "numbers (Float64, real)", "strings (String)", stray=STRAY),
    EmptyColumnsWarning(("a", "b")),
    StrayTextWarning("a", STRAY),
    IdentifierWarning("a", n_levels=30, n_observed=30),
]


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_another_remedy_replaces_that_for_python(error):
    assert str(error) == error.message()
    assert error.problem.partition("\n")[0] in str(error)
    reworded = error.message("--option")
    assert "--option" in reworded
    assert "--option" not in str(error)


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_errors_can_be_pickled(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


def raised(kind, function, *args, **kwargs):
    with pytest.raises(kind) as caught:
        function(*args, **kwargs)
    return caught.value


def test_attributes_of_the_errors_of_the_codec(make):
    codec = Codec.fit(make({"a": ["x", "y", "x"], "b": [1.5, 2.5, None]}))
    error = raised(ColumnMismatchError, codec.encode, make({"a": ["x"], "c": [1.0]}))
    assert (error.unexpected, error.absent) == (("c",), ("b",))
    error = raised(UnknownLevelsError, codec.encode, make({"a": ["z", "z"], "b": [1.0, 2.0]}))
    assert (error.column, error.levels, error.n_cells) == ("a", ("z",), 2)
    assert error.known_levels == ("x", "y")
    error = raised(ContentMismatchError, codec.encode, make({"a": ["x", "y"], "b": ["1.5", "?"]}))
    assert (error.column, error.stray.words) == ("b", {"?": 1})
    table = make({"a": ["1", "2", "?"]})
    error = raised(StrayTextError, Codec.fit, table, kinds={"a": "real"})
    assert (error.kind, error.stray.codes, error.stray.n_numbers) == ("real", ("?",), 2)
    error = raised(KindMismatchError, Codec.fit, make({"a": [1.5]}), kinds={"a": "integer"})
    assert (error.column, error.kind, error.fitting_kinds) == ("a", "integer", ("real",))


def test_warnings_are_instances_with_attributes(make):
    identifiers = [f"P{i}" for i in range(25)]
    table = make({"id": identifiers, "n": [*(f"{i}.5" for i in range(24)), "?"]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Codec.fit(table)
    identifier, stray = (one.message for one in caught)
    assert isinstance(identifier, IdentifierWarning)
    assert (identifier.column, identifier.n_levels) == ("id", 25)
    assert isinstance(stray, StrayTextWarning)
    assert stray.stray.codes == ("?",)


def test_existing_output_raises_with_its_path(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a\n1\n")
    error = raised(OutputExistsError, check_output, path)
    assert error.path == path
