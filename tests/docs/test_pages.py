"""The examples of the user guide run, and the files that the pages name exist."""

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"
GUIDE = (
    "getting_started",
    "columns",
    "missingness",
    "nonignorable",
    "multiple_imputation",
    "sensitivity",
)
EXAMPLES = [
    (name, number, code)
    for name in GUIDE
    for number, code in enumerate(
        re.findall(r"```python\n(.*?)```", (DOCS / f"{name}.md").read_text(), re.DOTALL)
    )
]
PAGES = sorted(DOCS.glob("*.md"))
# `print(...)  # output`
PRINTED = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "number", "code"), EXAMPLES, ids=[f"{name}-{number}" for name, number, _ in EXAMPLES]
)
def test_example_prints_the_output_it_shows(name, number, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, f"docs/{name}.md, example {number}", "exec"), {})
    assert PRINTED.findall(code)
    assert printed.getvalue().splitlines() == PRINTED.findall(code)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_named_files_exist(page, root):
    text = page.read_text()
    for target in re.findall(r"\]\(([\w./]+\.(?:md|rst|png))", text):
        assert (DOCS / target).is_file(), target
    package = root / "src" / "psmvae"
    for name in re.findall(r"`([\w/]+/\w+\.py)`", text):
        assert (root / name).is_file() or (package / name).is_file(), name


def test_every_page_is_in_a_table_of_contents():
    index = (DOCS / "index.md").read_text()
    listed = {
        line
        for block in re.findall(r"```{toctree}\n(.*?)```", index, re.DOTALL)
        for line in block.splitlines()
        if re.fullmatch(r"[\w/]+", line)
    }
    pages = {page.stem for page in PAGES} | {page.stem for page in DOCS.glob("*.rst")}
    assert pages - {"index"} == listed - {"auto_examples/index"}
