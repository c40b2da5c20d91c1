"""Rules for the source files of the package."""

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent.parent / "src" / "psmvae"
FILES = sorted(SOURCE.rglob("*.py"))
UNPICKLING = {"pickle", "cloudpickle", "dill", "shelve", "marshal"}
# `torch.tensor` takes integers, bools and NumPy arrays too, whose types do not vary
FACTORIES = {
    f"torch.{name}"
    for name in ("zeros", "ones", "empty", "rand", "randn", "eye", "linspace", "logspace", "normal")
}
DATA_SUFFIXES = {".csv", ".tsv", ".json", ".jsonl", ".parquet", ".safetensors"}


@cache
def nodes():
    """Every syntax node of every file, with its place."""
    return [
        (f"{name}:{getattr(node, 'lineno', 0)}", node)
        for name, path in [(str(path.relative_to(SOURCE)), path) for path in FILES]
        for node in ast.walk(ast.parse(path.read_text()))
    ]


def dotted(node):
    """The name of a variable or of its attribute, such as ``os.environ``."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


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
        if isinstance(node, ast.Attribute) and dotted(node) in ("torch.load", "torch.save"):
            found.append(place)
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found.append(place)
        if isinstance(node, ast.Call) and dotted(node.func) in ("eval", "exec"):
            found.append(place)
    assert found == []


def test_no_network_and_no_other_programs():
    modules = {"subprocess", "socket", "urllib", "http", "requests", "ftplib", "ssl", "asyncio"}
    found = []
    for place, node in nodes():
        if isinstance(node, ast.Import):
            found += [place for one in node.names if one.name.partition(".")[0] in modules]
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in modules:
            found.append(place)
        calls = ("os.system", "os.popen", "os.execv", "os.posix_spawn")
        if isinstance(node, ast.Attribute) and dotted(node) in calls:
            found.append(place)
    assert found == []


def test_tensors_are_created_with_a_data_type():
    """PyTorch's default data type, which a user may change, must not matter."""
    found = []
    for place, node in nodes():
        if not isinstance(node, ast.Call) or dotted(node.func) not in FACTORIES:
            continue
        has_dtype = any(keyword.arg in ("dtype", None) for keyword in node.keywords)
        if not has_dtype:
            found.append(f"{place} {dotted(node.func)}")
    assert found == []


def test_the_environment_is_not_used():
    found = [
        place
        for place, node in nodes()
        if isinstance(node, ast.Attribute)
        and dotted(node) == "os.environ"
        # it restores what other libraries set
        and not place.startswith("_quiet.py:")
    ]
    assert found == []


def test_the_package_is_typed():
    assert (SOURCE / "py.typed").exists()


def test_the_package_ships_no_data():
    assert [path for path in SOURCE.rglob("*") if path.suffix in DATA_SUFFIXES] == []
