"""Text columns that may not be categorical."""

import warnings

import numpy as np
import pytest

from psmvae.table import read_table
from psmvae.table.codec import Codec
from psmvae.table.column_checks import accidental_text, missing_value_codes
from psmvae.table.frames import open_table
from psmvae.table.text import MISSING

pd = pytest.importorskip("pandas")

WHOLE = [str(1000 * i) for i in range(1, 101)]
FRACTIONS = [f"{i / 7:.3f}" for i in range(1, 101)]


def cells(values):
    return open_table(pd.DataFrame({"a": pd.Series(values, dtype=object)})).cells(0)


def warned(values, **kinds):
    """Return the texts of the warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Codec.fit(pd.DataFrame({"a": pd.Series(values, dtype=object)}), kinds=kinds or None)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([*WHOLE, "unknown"], {"unknown": 1}),
        ([*WHOLE, "refused", "refused", "n.d."], {"refused": 2, "n.d.": 1}),
        ([*WHOLE, None, "<5"], {"<5": 1}),
        ([*FRACTIONS, "12.5a"], {"12.5a": 1}),
        # any number of codes for missing values
        ([*WHOLE[:10], *["."] * 90], {".": 90}),
        ([*["1", "2", "3"] * 10, "?"], {"?": 1}),
        (["1.5", "2.5", "3.5", "4.5", "5.5", "-"], {"-": 1}),
        # ten numbers and one word
        ([*WHOLE[:10], "refused"], {"refused": 1}),
    ],
)
def test_few_words_among_numbers_are_found(values, words):
    found = accidental_text(cells(values))
    assert found is not None
    assert found.words == words


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
def test_numeric_labels_are_not_reported(values):
    assert accidental_text(cells(values)) is None


@pytest.mark.parametrize(
    "spell", ["{:,}", "{:_}", "{},5"], ids=["thousands", "apostrophes", "decimal-comma"]
)
def test_formatted_numbers_are_reported(spell):
    values = [spell.format(1000 * i).replace("_", "'") for i in range(1, 101)]
    (message,) = warned(values)
    assert f"{values[0]!r} (1 cell)" in message
    assert "97 more" in message
    assert "decimal point" in message


def test_stray_text_warning_has_column_cells_and_remedy():
    values = [*WHOLE, "unknown", "unknown", "?", "refused", "n.d."]
    (message,) = warned(values)
    assert "column 'a'" in message
    assert "'unknown' (2 cells), '?' (1 cell), 'refused' (1 cell) and 1 more" in message
    assert "100 other cells are" in message
    assert "replace them by missing values and convert the column to numbers" in message


def test_declared_and_categorical_columns_are_not_reported():
    assert warned([*WHOLE, "unknown"], a="categorical") == []
    assert warned([f"P{i}" for i in range(30)], a="categorical") == []
    table = pd.DataFrame({"a": pd.Categorical([*WHOLE, "unknown"])})
    Codec.fit(table)


def test_identifier_warning():
    (message,) = warned([f"P{i}" for i in range(30)])
    assert "looks like an identifier (30 distinct values in 30 observed cells)" in message
    assert warned([f"P{i}" for i in range(20)]) == []
    assert warned([f"P{i % 25}" for i in range(50)]) == []
    assert len(warned([f"P{i % 26}" for i in range(51)])) == 1


def test_text_in_a_declared_numeric_column_raises_with_the_cells():
    table = pd.DataFrame({"a": [*WHOLE, "unknown"]})
    with pytest.raises(ValueError, match=r"declared real.*'unknown' \(1 cell\).*100 other cells"):
        Codec.fit(table, kinds={"a": "real"})
    with pytest.raises(ValueError, match="declare it categorical"):
        Codec.fit(pd.DataFrame({"a": ["x", "y"]}), kinds={"a": "real"})


def test_too_many_levels_raises_with_the_stray_cells():
    table = pd.DataFrame({"a": [*(f"{i}.5" for i in range(1200)), "unknown"]})
    with pytest.raises(ValueError, match=r"1201 levels.*'unknown' \(1 cell\).*1,200 other cells"):
        Codec.fit(table)
    table = pd.DataFrame({"a": [f"P{i}" for i in range(1200)]})
    with pytest.raises(ValueError, match=r"1200 levels.*drop it \(an identifier\?\)"):
        Codec.fit(table)


def test_text_at_encode_in_a_numeric_column_raises_with_the_cells():
    codec = Codec.fit(pd.DataFrame({"a": [1.5, 2.5, np.nan]}))
    with pytest.raises(TypeError, match=r"fitted on numbers.*'unknown' \(1 cell\)"):
        codec.encode(pd.DataFrame({"a": ["1.5", "unknown"]}))


def test_missing_value_codes():
    assert missing_value_codes(cells(["red", "?", "Unknown", "?"])) == {"?": 2, "Unknown": 1}
    assert missing_value_codes(cells(["red", "blue"])) == {}
    assert missing_value_codes(cells([*WHOLE, "refused"])) == {"refused": 1}
    assert missing_value_codes(cells([1.5, 2.5])) == {}


@pytest.mark.parametrize("code", ["n/a", "#N/A", "#NA", "<NA>", "-nan"])
def test_default_missing_codes_keep_columns_numeric(tmp_path, code):
    pytest.importorskip("pyarrow")
    assert code in MISSING
    path = tmp_path / "table.csv"
    path.write_text(f"a,b\n{code},x\n1.5,{code}\n")
    assert read_table(path).to_pydict() == {"a": [None, 1.5], "b": ["x", None]}
