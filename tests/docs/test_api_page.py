"""docs/api.rst lists exactly the public names of the package."""

import importlib
import re

import pytest

MODULES = (
    "psmvae",
    "psmvae.describe",
    "psmvae.mechanism",
    "psmvae.simulate",
    "psmvae.multiple",
    "psmvae.plot",
    "psmvae.ray",
    "psmvae.sensitivity",
    "psmvae.nn.mask",
    "psmvae.table",
    "psmvae.kinds",
    "psmvae.imputers.fit_warnings",
    "psmvae.imputers.reference",
    "psmvae.streaming",
    "psmvae.training.progress",
)
# described in the text of the page, or on the page of another module
NOT_LISTED = {
    "psmvae": {"__version__"},
    "psmvae.describe": {"MissingnessReport", "missingness"},
    "psmvae.multiple": {"MultipleImputation"},
    "psmvae.sensitivity": {"compare_assumptions", "tipping_point"},
}


@pytest.fixture(scope="module")
def listed(root):
    """The names of the page by module."""
    names: dict[str, set[str]] = {}
    module, in_summary = "", False
    for line in (root / "docs" / "api.rst").read_text().splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split(":: ")[1]
        elif line.startswith(".. data:: "):
            names.setdefault(module, set()).add(line.split(":: ")[1])
        elif line.startswith(".. autosummary::"):
            in_summary = True
        elif line and not line.startswith(" "):
            in_summary = False
        elif in_summary and re.fullmatch(r"   \w+", line):
            names.setdefault(module, set()).add(line.strip())
    return names


@pytest.mark.parametrize("module", MODULES)
def test_public_names_are_listed(listed, module):
    public = set(importlib.import_module(module).__all__) - NOT_LISTED.get(module, set())
    assert listed[module] == public


def test_page_lists_no_other_modules(listed):
    assert set(listed) == set(MODULES)
