"""The arrows of the design, and what an import may load."""

import json

import pytest

import psmvae

# What only some users, or only the command line, need.
OPTIONAL = ["typer", "rich", "matplotlib", "pandas", "polars", "pyarrow", "ray"]

LOADED = "import json, sys; print(json.dumps([n for n in {names} if n in sys.modules]))"

# All that can be had without a tensor, of every imputer and setting.
MADE = """
import sys
import psmvae
from psmvae import JointMask, LatentMask, Network, NoMask, SelfMask
from sklearn.base import clone

masks = [JointMask(hidden=4), LatentMask(), NoMask(), SelfMask(columns=["a"])]
classes = [getattr(psmvae, name) for name in psmvae.__all__ if name.endswith("Imputer")]
made = [make() for one in classes for make in (one, one.paper)]
made += [psmvae.PSMVAEImputer.paper(model) for model in "ab"]
made += [one(mask) for one in (psmvae.PSMVAEImputer, psmvae.NotMIWAEImputer) for mask in masks]
made += [psmvae.PSMVAEImputer(network=Network(width=8), regression=Network.paper())]
for imputer in made:
    again = clone(imputer)
    assert repr(again) == repr(imputer)
    assert again.get_params() == imputer.get_params()
    again.set_params(random_state=1)
repr([masks, Network()]), psmvae.load
assert "torch" not in sys.modules, "torch was loaded before anything was fitted"
"""


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


def test_torch_is_loaded_by_fit_and_not_before(python):
    fit = "psmvae.VAEImputer(max_epochs=1).fit([[1.0, 2.0], [2.0, float('nan')], [3.0, 5.0]])\n"
    assert json.loads(python(MADE + fit + LOADED.format(names=["torch"]))) == ["torch"]


def test_torch_is_not_loaded_for_a_parameter_that_is_refused(python):
    fit = "import psmvae\ntry: psmvae.VAEImputer(n_draws=0).fit([[1.0]])\nexcept ValueError: pass\n"
    assert json.loads(python(fit + LOADED.format(names=["torch"]))) == []


@pytest.mark.parametrize("name", psmvae.__all__)
def test_every_public_name_is_there(name):
    assert getattr(psmvae, name) is not None
    assert name in dir(psmvae)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        psmvae.nonsense  # noqa: B018
