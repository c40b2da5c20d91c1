"""The Markdown text of a report."""

import re

import pytest

from psmvae.reporting.data.methods import methods_data
from psmvae.reporting.data.summary import summary_data
from psmvae.reporting.markdown import code_block, escape, table, to_markdown
from report import parts

HEADINGS = [
    "In short", "What is missing", "Why", "What was imputed", "Can it be believed", "What follows",
    "How to write it up",
]  # fmt: skip
HOSTILE = [
    "<script>alert(1)</script>", "a|b", "`code`", "two\nlines", "**bold** _em_ [link](http://x)",
    "\u202etxt.exe", "# title", "1. item", "- item", "$x$", "&lt;", "", "🩺", "a\ud800\x00",
]  # fmt: skip


def report(**changes):
    made = parts.sections(**changes)
    return {
        "schema": 1,
        "title": "A <title>",
        "table": made.table,
        "summary": summary_data(made),
        "missing": made.missing,
        "mechanism": made.mechanism,
        "imputed": made.imputed,
        "validation": made.validation,
        "results": made.results,
        "methods": methods_data(made, title="T", random_state=0),
    }


def rows_of(text):
    """Return the tables of a text as lists of rows, split at bars that are not escaped."""
    blocks = [block for block in text.split("\n\n") if block.startswith("|")]
    return [[re.split(r"(?<!\\)\|", line)[1:-1] for line in block.split("\n")] for block in blocks]


def test_seven_sections_in_order():
    text = to_markdown(report())
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS
    assert text.startswith("# A \\<title\\>\n")
    assert text.endswith("\n")


def test_tables_are_rectangular_with_hostile_names():
    for block in rows_of(to_markdown(report())):
        assert len({len(row) for row in block}) == 1
        assert len(block) > 2


def test_numbers_are_there():
    text = to_markdown(report())
    assert "| bmi | real | 60 | 60.0 % | 0.5 | – |" in text
    assert "| slope | 2 | 1 to 3 | 0.5 | – | < 0.001 | 0.62 | 1 | -0.5 to 2.5 |" in text.replace(
        "\\<", "<"
    )
    assert "| bmi | 1.01 | 1.3 |" in text
    assert "| 1 | 2 | 0.1 | -1 to 1.2 | – | no |" in text
    assert "| 0 | 1 | 2 ◆ | no\\| |" in text


@pytest.mark.parametrize("absent", ["imputed", "validation", "results"])
def test_sections_that_are_not_there_say_so(absent):
    text = to_markdown(report(**{absent: None}))
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_shown_as_text(name):
    escaped = escape(name)
    assert "\n" not in escaped
    assert not re.search(r"(?<!\\)[<>|`*_\[\]$]", escaped)
    assert not re.match(r"[-#+=]|\d+[.)]", escaped)
    assert "\u202e" not in escaped
    escaped.encode()


def test_long_names_are_cut_and_empty_ones_shown():
    ((_, _, *rows),) = rows_of(table(["name"], [["x" * 300], [""]]))
    assert len(rows[0][0].strip()) == 80
    assert rows[1][0].strip() == "–"


def test_long_tables_are_cut_and_said():
    text = table(["a"], [[k] for k in range(100)])
    assert text.endswith("… and 40 more.")


def test_code_with_backticks_stays_one_block():
    assert code_block("a\n```\nb") == "````\na\n```\nb\n````"
