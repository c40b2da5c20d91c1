"""The arrows of the design, and what an import may load."""

import json

import pytest

import psmvae

# What only some users, or only the command line, need.
OPTIONAL = ["typer", "rich", "matplotlib", "pandas", "polars", "pyarrow", "ray"]

LOADED = "import json, sys; print(json.dumps([n for n in {names} if n in sys.modules]))"


def test_the_contracts_hold(root, python):
    """They are in pyproject.toml, under tool.importlinter: an arrow never points back."""
    pytest.importorskip("importlinter")
    python(
        "import os, sys; from importlinter.cli import lint_imports\n"
        f"os.chdir({str(root)!r})\n"
        "code = lint_imports(no_cache=True)\n"
        "if code: sys.exit('a contract is broken; see: lint-imports')"
    )


@pytest.mark.parametrize("statement", ["import psmvae", "import psmvae; dir(psmvae)"])
def test_importing_the_package_loads_nothing_heavy(python, statement):
    names = [*OPTIONAL, "torch", "sklearn", "psmvae.cli", "psmvae.imputers"]
    assert json.loads(python(f"{statement}\n" + LOADED.format(names=names))) == []


def test_the_imputer_loads_neither_the_command_line_nor_plots(python):
    code = "import psmvae; psmvae.PSMVAEImputer\n"
    # scikit-learn loads pandas, and that pyarrow, where they are installed
    optional = [name for name in OPTIONAL if name not in ("pandas", "pyarrow")]
    names = [*optional, "psmvae.cli", "psmvae.demo", "psmvae.simulate"]
    assert json.loads(python(code + LOADED.format(names=names))) == []


@pytest.mark.parametrize("name", psmvae.__all__)
def test_every_public_name_is_there(name):
    assert getattr(psmvae, name) is not None
    assert name in dir(psmvae)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        psmvae.nonsense  # noqa: B018
