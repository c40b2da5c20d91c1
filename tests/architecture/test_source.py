"""Rules for the source files of the package."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parent.parent.parent / "src" / "psmvae"
FILES = sorted(SOURCE.rglob("*.py"))
UNPICKLING = {"pickle", "cloudpickle", "dill", "shelve", "marshal"}
DATA_SUFFIXES = {".csv", ".tsv", ".json", ".jsonl", ".parquet", ".safetensors"}


def nodes():
    """Every syntax node of every file, with its place."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            yield f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}", node


def test_nothing_is_unpickled():
    """Model files hold data; loading one must not run code."""
    found = []
    for place, node in nodes():
        if isinstance(node, ast.Import) and UNPICKLING & {alias.name for alias in node.names}:
            found.append(place)
        if isinstance(node, ast.ImportFrom) and node.module in UNPICKLING:
            found.append(place)
        # joblib runs processes; its files are pickles
        if isinstance(node, ast.ImportFrom) and node.module == "joblib":
            found += [place for alias in node.names if alias.name not in ("Parallel", "delayed")]
        if isinstance(node, ast.Import) and "joblib" in {alias.name for alias in node.names}:
            found.append(place)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("torch.load", "torch.save"):
            found.append(place)
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found.append(place)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("eval", "exec"):
            found.append(place)
    assert found == []


def test_the_environment_is_not_used():
    found = [
        place
        for place, node in nodes()
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "os.environ"
    ]
    assert found == []


def test_the_package_is_typed():
    assert (SOURCE / "py.typed").exists()


def test_the_package_ships_no_data():
    assert [path for path in SOURCE.rglob("*") if path.suffix in DATA_SUFFIXES] == []
