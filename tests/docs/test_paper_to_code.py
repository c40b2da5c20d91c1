"""The table "The paper → the code" of docs/architecture.md names files and objects that exist."""

import importlib
import re
from functools import reduce

import pytest

ROOT_NAMES = re.compile(r"`(src/psmvae/[\w/]+\.py)` · `([\w.]+)`")
SECTION = re.compile(r"## The paper → the code\n(.*?)\n## ", re.DOTALL)
FACTORS = (
    "q(r | x_obs, m)",
    "q(z | r, x_obs, m)",
    "q(x_mis | z, r, x_obs, m)",
    "p(r)",
    "p(z | r)",
    "p(x_obs | z, r)",
    "p(x_mis | z, r)",
    "p(m | z, r)",
    "p(m | x, r)",
)


@pytest.fixture(scope="module")
def rows(root):
    """The rows of the table: the paper's notation, and the cell that names the code."""
    section = SECTION.search((root / "docs" / "architecture.md").read_text())[1]
    lines = [line for line in section.splitlines() if line.startswith("| ")][2:]
    cells = (re.split(r" (?<!\\)\| ", line.strip("| ")) for line in lines)
    return [(notation.replace("\\|", "|"), code) for notation, code in cells]


def test_every_row_names_a_file_and_an_object(rows):
    assert len(rows) >= 15
    assert [notation for notation, code in rows if not ROOT_NAMES.fullmatch(code)] == []


def test_files_exist_and_objects_resolve(rows, root):
    for notation, code in rows:
        path, name = ROOT_NAMES.fullmatch(code).groups()
        assert (root / path).is_file(), (notation, path)
        module_name = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
        module = importlib.import_module(module_name)
        found = reduce(getattr, name.split("."), module)
        # the file that defines the object, not one that imports it
        defined_in = getattr(getattr(found, "fget", None) or found, "__module__", module_name)
        assert defined_in == module_name, (notation, name)


def test_every_factor_of_the_paper_has_a_row(rows):
    text = "\n".join(notation for notation, _ in rows)
    assert [factor for factor in FACTORS if factor not in text] == []
