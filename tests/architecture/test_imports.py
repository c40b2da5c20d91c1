"""Dependencies between modules, and what an import loads."""

import ast
import json

import pytest

import psmvae

# Packages that only some users or only the command line need.
OPTIONAL = ["typer", "rich", "matplotlib", "pandas", "polars", "pyarrow", "statsmodels"]

LOADED = "import json, sys; print(json.dumps([n for n in {names} if n in sys.modules]))"

# Everything that can be done before a fit, with every imputer and setting.
WITHOUT_TORCH = """
import sys
import psmvae
from psmvae import Advanced, JointMask, LatentMask, Network, NoMask, LogisticMask
from sklearn.base import clone

masks = [JointMask(hidden=4), LatentMask(), NoMask(), LogisticMask(columns=["a"])]
classes = [getattr(psmvae, name) for name in psmvae.__all__ if name.endswith("Imputer")]
made = [make() for cls in classes for make in (cls, cls.paper)]
made += [psmvae.PSMVAEImputer.paper(model) for model in "ab"]
made += [cls(mask) for cls in (psmvae.PSMVAEImputer, psmvae.NotMIWAEImputer) for mask in masks]
made += [psmvae.PSMVAEImputer(network=Network(width=8), advanced=Advanced(target_ess=None))]
for imputer in made:
    again = clone(imputer)
    assert repr(again) == repr(imputer)
    assert again.get_params() == imputer.get_params()
    again.set_params(random_state=1)
repr([masks, Network()]), psmvae.load
assert "torch" not in sys.modules, "torch was loaded before anything was fitted"
"""


def test_import_contracts_hold(root, python):
    """The contracts are in pyproject.toml, under tool.importlinter."""
    pytest.importorskip("importlinter")
    python(
        "import os, sys; from importlinter.cli import lint_imports\n"
        f"os.chdir({str(root)!r})\n"
        "code = lint_imports(no_cache=True)\n"
        "if code: sys.exit('a contract is broken; run lint-imports to see which')"
    )


def test_there_are_no_circular_imports():
    """Imports inside functions count; those for type checkers only do not."""
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("psmvae", exclude_type_checking_imports=True, cache_dir=None)
    upstream = {module: graph.find_upstream_modules(module) for module in graph.modules}
    cycles = {
        frozenset({module, *(other for other in above if module in upstream[other])})
        for module, above in upstream.items()
    }
    assert sorted(sorted(cycle) for cycle in cycles if len(cycle) > 1) == []


def test_the_library_does_not_import_the_replication_package(root):
    importers = []
    for path in sorted((root / "src" / "psmvae").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(name.split(".")[0] == "psmvae_paper" for name in names):
                importers.append(f"{path.name}:{node.lineno}")
    assert importers == []


@pytest.mark.parametrize("statement", ["import psmvae", "import psmvae; dir(psmvae)"])
def test_importing_the_package_loads_no_large_dependency(python, statement):
    names = [*OPTIONAL, "torch", "sklearn", "psmvae.cli", "psmvae.imputers"]
    assert json.loads(python(f"{statement}\n" + LOADED.format(names=names))) == []


def test_importing_an_imputer_loads_neither_the_command_line_nor_plots(python):
    code = "import psmvae; psmvae.PSMVAEImputer\n"
    # scikit-learn loads pandas, and pandas loads pyarrow, where they are installed
    optional = [name for name in OPTIONAL if name not in ("pandas", "pyarrow")]
    names = [*optional, "psmvae.cli", "psmvae.demo", "psmvae.simulate"]
    assert json.loads(python(code + LOADED.format(names=names))) == []


def test_torch_is_loaded_by_fit(python):
    fit = "psmvae.VAEImputer(max_epochs=1).fit([[1.0, 2.0], [2.0, float('nan')], [3.0, 5.0]])\n"
    assert json.loads(python(WITHOUT_TORCH + fit + LOADED.format(names=["torch"]))) == ["torch"]


def test_torch_is_not_loaded_before_parameters_are_checked(python):
    fit = "import psmvae\ntry: psmvae.VAEImputer(n_draws=0).fit([[1.0]])\nexcept ValueError: pass\n"
    assert json.loads(python(fit + LOADED.format(names=["torch"]))) == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        psmvae.nonsense  # noqa: B018
