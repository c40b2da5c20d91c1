"""Conditions that select rows."""

import numpy as np
import pandas as pd
import pytest

from psmvae.table import ConditionError
from psmvae.table.condition import parse_condition
from psmvae.table.frames import open_table

FRAME = pd.DataFrame(
    {
        "arm": ["a", "b", "a", "c"],
        "age": [1.0, 5.0, 9.0, 4.0],
        "female": [True, False, True, False],
        "blood group": [1, 2, 3, 2],
    }
)


def rows(text, frame=FRAME):
    opened = open_table(frame)
    condition = parse_condition(text, opened.names)
    return condition({name: opened.cells(opened.names.index(name)) for name in condition.names})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("arm == 'a'", FRAME["arm"] == "a"),
        ('arm != "a" and age < 5', (FRAME["arm"] != "a") & (FRAME["age"] < 5)),
        ("arm == 'c' or age > 6", (FRAME["arm"] == "c") | (FRAME["age"] > 6)),
        ("(arm == 'a') & (age < 3) | female", FRAME["female"]),
        ("not female", ~FRAME["female"]),
        ("female == True", FRAME["female"]),
        ("4 < age <= 5", [False, True, False, False]),
        ("age ** 2 > 2 * `blood group`", [False, True, True, True]),
        ("`blood group` in [1, 3]", [True, False, True, False]),
        ("arm not in ('a', 'b')", [False, False, False, True]),
        ("age == -1 or age in [-1, +4]", [False, False, False, True]),
    ],
)
def test_condition(text, expected):
    np.testing.assert_array_equal(rows(text), expected)


def test_texts_of_categories():
    frame = FRAME.astype({"arm": "category"})
    np.testing.assert_array_equal(rows("arm in ['a']", frame), FRAME["arm"] == "a")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("arm = 'a'", "cannot be parsed"),
        ("arm == 1", "one is a text"),
        ("arm < 'b'", "no order"),
        ("arm + 1 > 2", "computes with texts"),
        ("age", "compared with nothing"),
        ("arm", "compared with nothing"),
        ("treatment == 1", "no column 'treatment'"),
        ("1 == 1", "names no column"),
        ("age > 1 & age < 3", "'1 & age' is not arithmetic"),
        ("age in arm", "is not a comparison"),
        ("age is 1", "is not a comparison"),
        ("__import__('os').system('true') == 0", "is not arithmetic"),
        ("[age for age in age]", "is not a comparison"),
        ("", "not the text of a condition"),
        (3, "not the text of a condition"),
    ],
)
def test_what_is_not_a_condition_is_named(text, reason):
    with pytest.raises(ConditionError, match=reason):
        rows(text)
