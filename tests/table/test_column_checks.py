"""Columns of text that may not be meant as text."""

import warnings

import numpy as np
import pytest

from psmvae.table import Codec, read_table
from psmvae.table.column_checks import almost_numbers, codes_for_missing
from psmvae.table.frames import open_table
from psmvae.table.text import MISSING
from psmvae.table.words import command_line_words

pd = pytest.importorskip("pandas")

WHOLE = [str(1000 * i) for i in range(1, 101)]
FRACTIONS = [f"{i / 7:.3f}" for i in range(1, 101)]


def cells(values):
    return open_table(pd.DataFrame({"a": pd.Series(values, dtype=object)})).cells(0)


def warned(values, **kinds):
    """The warnings of a fit, one string each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Codec.fit(pd.DataFrame({"a": pd.Series(values, dtype=object)}), kinds=kinds or None)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    ("values", "strays"),
    [
        ([*WHOLE, "unknown"], {"unknown": 1}),
        ([*WHOLE, "refused", "refused", "n.d."], {"refused": 2, "n.d.": 1}),
        ([*WHOLE, None, "<5"], {"<5": 1}),
        ([*FRACTIONS, "12.5a"], {"12.5a": 1}),
        # any number of codes for missing
        ([*WHOLE[:10], *["."] * 90], {".": 90}),
        ([*["1", "2", "3"] * 10, "?"], {"?": 1}),
        (["1.5", "2.5", "3.5", "4.5", "5.5", "-"], {"-": 1}),
        # ten numbers and a word in a small table
        ([*WHOLE[:10], "refused"], {"refused": 1}),
    ],
)
def test_numbers_but_for_a_few_cells(values, strays):
    found = almost_numbers(cells(values))
    assert found is not None
    assert found.words == strays


@pytest.mark.parametrize(
    "values",
    [
        WHOLE,
        ["1", "2", "3"] * 30 + ["A"] * 3,
        ["1.0", "1.1", "2.0"] * 30 + ["beta"],
        [f"{i:05}" for i in range(100, 200)] + ["unknown"],
        [str(i) for i in range(8000, 8100)] + ["EC1A", "D-79100"],
        [str(i) for i in range(1, 40)] + ["12a", "7b"],
        WHOLE[:50] + [f"P{i}" for i in range(50)],
        ["red", "green", "blue", "?"] * 9,
        ["1", "2", "3", "4", "unknown"],
        [None, None],
        [1.5, 2.5],
    ],
    ids=[
        "numbers",
        "levels",
        "versions",
        "leading-zeros",
        "postcodes",
        "houses",
        "half",
        "words",
        "too-few",
        "nothing",
        "no-text",
    ],
)
def test_names_made_of_digits_are_no_numbers(values):
    assert almost_numbers(cells(values)) is None


@pytest.mark.parametrize(
    "spell", ["{:,}", "{:_}", "{},5"], ids=["thousands", "apostrophes", "decimal-comma"]
)
def test_numbers_that_are_not_read_as_such(spell):
    values = [spell.format(1000 * i).replace("_", "'") for i in range(1, 101)]
    (message,) = warned(values)
    assert f"{values[0]!r} (1 cell)" in message
    assert "97 more" in message
    assert "decimal point" in message


def test_the_warning_names_column_cells_and_remedy():
    values = [*WHOLE, "unknown", "unknown", "?", "refused", "n.d."]
    (message,) = warned(values)
    assert "column 'a'" in message
    assert "'unknown' (2 cells), '?' (1 cell), 'refused' (1 cell) and 1 more" in message
    assert "100 other cells are" in message
    assert "replace them by missing values" in message
    assert "--na" not in message
    with command_line_words():
        (message,) = warned(values)
    assert "--na unknown --na '?' --na refused read them as missing" in message
    with command_line_words(text_file=False):
        # what has a type of its own does not become numbers by --na
        (message,) = warned(values)
    assert "turn the column into numbers" in message


def test_what_is_declared_is_not_doubted():
    assert warned([*WHOLE, "unknown"], a="categorical") == []
    assert warned([f"P{i}" for i in range(30)], a="categorical") == []
    table = pd.DataFrame({"a": pd.Categorical([*WHOLE, "unknown"])})
    Codec.fit(table)


def test_an_identifier_is_doubted():
    (message,) = warned([f"P{i}" for i in range(30)])
    assert "looks like an identifier (30 levels in 30 observed cells)" in message
    with command_line_words():
        assert "--ignore a" in warned([f"P{i}" for i in range(30)])[0]
    assert warned([f"P{i}" for i in range(20)]) == []
    assert warned([f"P{i % 25}" for i in range(50)]) == []
    assert len(warned([f"P{i % 26}" for i in range(51)])) == 1


def test_the_error_for_a_declared_kind_names_the_cells():
    table = pd.DataFrame({"a": [*WHOLE, "unknown"]})
    with pytest.raises(ValueError, match=r"declared real.*'unknown' \(1 cell\).*100 other cells"):
        Codec.fit(table, kinds={"a": "real"})
    with pytest.raises(ValueError, match="declare it categorical"):
        Codec.fit(pd.DataFrame({"a": ["x", "y"]}), kinds={"a": "real"})


def test_the_error_for_too_many_levels_names_the_cells():
    table = pd.DataFrame({"a": [*(f"{i}.5" for i in range(1200)), "unknown"]})
    with pytest.raises(ValueError, match=r"1201 levels.*'unknown' \(1 cell\).*1,200 other cells"):
        Codec.fit(table)
    table = pd.DataFrame({"a": [f"P{i}" for i in range(1200)]})
    with pytest.raises(ValueError, match=r"1200 levels.*drop it \(an identifier\?\)"):
        Codec.fit(table)
    with command_line_words(), pytest.raises(ValueError, match="--ignore a "):
        Codec.fit(table)


def test_new_rows_of_text_in_a_column_of_numbers_name_the_cells():
    codec = Codec.fit(pd.DataFrame({"a": [1.5, 2.5, np.nan]}))
    with pytest.raises(TypeError, match=r"fitted on numbers.*'unknown' \(1 cell\)"):
        codec.encode(pd.DataFrame({"a": ["1.5", "unknown"]}))


def test_codes_for_missing_in_text():
    assert codes_for_missing(cells(["red", "?", "Unknown", "?"])) == {"?": 2, "Unknown": 1}
    assert codes_for_missing(cells(["red", "blue"])) == {}
    assert codes_for_missing(cells([*WHOLE, "refused"])) == {"refused": 1}
    assert codes_for_missing(cells([1.5, 2.5])) == {}


@pytest.mark.parametrize("mark", ["n/a", "#N/A", "#NA", "<NA>", "-nan"])
def test_more_marks_leave_numbers_numeric(tmp_path, mark):
    pytest.importorskip("pyarrow")
    assert mark in MISSING
    path = tmp_path / "table.csv"
    path.write_text(f"a,b\n{mark},x\n1.5,{mark}\n")
    assert read_table(path).to_pydict() == {"a": [None, 1.5], "b": ["x", None]}
