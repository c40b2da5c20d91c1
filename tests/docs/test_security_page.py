"""The limits on the page about security are those of the code."""

import pytest

from psmvae.imputers import checks, file_schema
from psmvae.table import formula, schema


@pytest.fixture(scope="module")
def page(root):
    return " ".join((root / "docs" / "security.md").read_text().split())


def test_limits(page):
    assert f"{file_schema.MAX_DOCUMENT:,} characters" in page
    assert f"{file_schema.MAX_DEPTH} levels |" in page
    assert f"levels of a column | {schema.MAX_LEVELS:,} |" in page
    assert f"whole-number parameters | {checks.MAX_WHOLE_NUMBER:,} |" in page
    lengths = f"{formula._MAX_LENGTH:,} characters and {formula._MAX_DEPTH} levels of nesting"
    assert lengths in page


def test_limits_of_mutated_files(page, benchmark):
    mutate = benchmark("mutate")
    assert mutate.MEMORY == 2**30
    assert f"at most 1 GiB of additional memory and {mutate.SECONDS} seconds each" in page
