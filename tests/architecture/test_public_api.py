"""Docstrings of the public API: every parameter is documented, and no other."""

import importlib
import inspect
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import psmvae

ROOT = Path(__file__).parent.parent.parent
REFERENCE = (ROOT / "docs" / "api.rst").read_text()
# Modules whose public names must be in the API reference.
MODULES = [
    "psmvae",
    "psmvae.describe",
    "psmvae.mechanism",
    "psmvae.simulate",
    "psmvae.multiple",
    "psmvae.plot",
    "psmvae.ray",
    "psmvae.sensitivity",
    "psmvae.table",
]


def listed_names():
    """Module and name of every entry of the API reference."""
    module = "psmvae"
    for line in REFERENCE.splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.fullmatch(r"   ([A-Za-z]\w*)|\.\. data:: (\w+)", line):
            yield module, match[1] or match[2]


OBJECTS = {
    f"{module}.{name}": getattr(importlib.import_module(module), name)
    for module, name in listed_names()
}
CLASSES = {name: value for name, value in OBJECTS.items() if inspect.isclass(value)}
# Protocols, abstract classes and exceptions are not made by users.
CONSTRUCTED = {
    name: cls
    for name, cls in CLASSES.items()
    if not getattr(cls, "_is_protocol", False)
    and not issubclass(cls, Exception | torch.nn.Module)
    and not inspect.isabstract(cls)
}


def methods_of(cls):
    """Public methods that the package defines, inherited ones included."""
    for name, value in inspect.getmembers(cls, inspect.isroutine):
        if name.startswith("_") or issubclass(cls, Exception):
            continue
        # scikit-learn and PyTorch document what they define
        if (getattr(value, "__module__", None) or "").startswith("psmvae"):
            yield name, value


FUNCTIONS = {name: value for name, value in OBJECTS.items() if inspect.isfunction(value)} | {
    f"{name}.{method}": function
    for name, cls in CLASSES.items()
    for method, function in methods_of(cls)
}


def documented(doc, section):
    """Entries of a section of a numpydoc docstring: text by name."""
    lines = inspect.cleandoc(doc or "").splitlines()
    ruled = [i for i, line in enumerate(lines) if re.fullmatch(r"-{3,}", line)]
    start = next((i for i in ruled if lines[i - 1] == section), None)
    if start is None:
        return {}
    end = next((i - 1 for i in ruled if i > start), len(lines))
    entries, names = {}, []
    for line in lines[start + 1 : end]:
        if line and not line.startswith(" "):
            names = [name.strip().lstrip("*") for name in line.split(" : ")[0].split(",")]
            entries |= dict.fromkeys(names, "")
        for name in names:
            entries[name] += line.strip() if line.startswith(" ") else ""
    return entries


def test_the_parser_of_docstrings():
    doc = """Summary.

    Parameters
    ----------
    a, b : int
        Two.
    **rest
        More.
    empty : int

    Returns
    -------
    int
    """
    found = documented(doc, "Parameters")
    assert found == {"a": "Two.", "b": "Two.", "rest": "More.", "empty": ""}
    assert documented(doc, "Examples") == {}


def check_parameters(function, doc):
    """The section "Parameters" names the parameters, each with a description."""
    parameters = [name for name in inspect.signature(function).parameters if name != "self"]
    entries = documented(doc, "Parameters")
    missing = [name for name in parameters if not entries.get(name)]
    unknown = [name for name in entries if name not in parameters]
    assert (missing, unknown) == ([], []), "(not documented, not a parameter)"


@pytest.mark.parametrize("name", CONSTRUCTED)
def test_constructor_parameters_are_documented(name):
    cls = CONSTRUCTED[name]
    attributes = documented(cls.__doc__, "Attributes")
    if attributes and not documented(cls.__doc__, "Parameters"):
        # returned by a function; users read its attributes and do not construct it
        assert [each for each, text in attributes.items() if not text] == []
    else:
        check_parameters(cls, cls.__doc__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_methods_are_documented(name):
    doc = FUNCTIONS[name].__doc__
    assert doc
    check_parameters(FUNCTIONS[name], doc)


@pytest.mark.parametrize("name", psmvae.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(psmvae, name) is not None
    assert name in dir(psmvae)


QUICK = partial(dict, random_state=0)
SMALL = {
    "PSMVAEImputer": QUICK(max_epochs=1),
    "MIWAEImputer": QUICK(max_epochs=1),
    "GAINImputer": QUICK(max_epochs=1),
    "MICEImputer": QUICK(max_iter=1),
    "MissForestImputer": QUICK(max_iter=1, n_jobs=1),
    "MeanImputer": QUICK(),
}


@pytest.mark.parametrize("name", SMALL)
def test_documented_attributes_exist_after_fit(name):
    cls = getattr(psmvae, name)
    table = np.random.default_rng(0).normal(size=(20, 3))
    table[::4, 0] = np.nan
    imputer = cls(**SMALL[name]).fit(table)
    attributes = documented(cls.__doc__, "Attributes")
    assert attributes
    assert [each for each in attributes if not hasattr(imputer, each)] == []
    assert [each for each, text in attributes.items() if not text] == []
    # attributes of scikit-learn, and the module and objects that files are made of
    own = {each for each in vars(imputer) if each.endswith("_") and not each.startswith("_")}
    shared = {"n_features_in_", "feature_names_in_", "model_", "matrix_", "donors_", "reference_"}
    assert own - shared - set(attributes) == set()


@pytest.mark.parametrize("module", MODULES)
def test_the_api_reference_lists_every_public_name(module):
    listed = {name for place, name in listed_names() if place in (module, "psmvae")}
    public = {name for name in importlib.import_module(module).__all__ if name[0] != "_"}
    assert public - listed == set()
