"""What holds for every file."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "psmvae"
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST = 400


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks"])
def test_a_file_can_be_read_in_a_sitting(folder):
    lengths = {path: len(path.read_text().splitlines()) for path in (ROOT / folder).rglob("*.py")}
    assert lengths
    assert {path: length for path, length in lengths.items() if length > LONGEST} == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_is_unpickled_and_no_environment_is_set(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None)]
            assert not {"pickle", "joblib", "cloudpickle", "dill"} & set(names)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "os.environ":
            pytest.fail(f"{path}:{node.lineno} touches the environment")


def test_the_package_is_typed():
    assert (SOURCE / "py.typed").exists()
