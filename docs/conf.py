"""Configuration of the documentation site, built by `make docs`."""

from __future__ import annotations

import inspect
import re
import shutil
from pathlib import Path
from typing import Any

import psmvae

project = "psmvae"
project_copyright = "the psmvae developers"
version = release = psmvae.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "examples"]
templates_path = ["_templates"]

# Every reference must resolve. A name in single backticks in a docstring is a link if the site
# documents an object of that name, and code otherwise, so those references may stay unresolved.
nitpicky = True
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", r".*")]

# The types of parameters are in the text of the docstrings.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_imported_members = False
numpydoc_show_class_members = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "show_memory": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"psmvae {release}"
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "navigation_depth": 2,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 6,
}
html_sidebars = {"index": [], "changelog": []}
html_show_sourcelink = False


def skip_foreign_members(
    app: object, what: str, name: str, obj: Any, skip: bool, options: object
) -> bool | None:
    """Leave out methods that scikit-learn or PyTorch defines: their own sites document them."""
    del app, what, name, options
    target = inspect.unwrap(obj.fget) if isinstance(obj, property) and obj.fget else obj
    module = getattr(target, "__module__", None) or ""
    return True if module.startswith(("sklearn.", "torch.")) else skip


def escape_fitted_sizes(
    app: object, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Escape sizes such as ``n_sets_`` in types: reStructuredText reads them as link targets."""
    del app, what, name, obj, options
    for i, line in enumerate(lines):
        if "of shape (" in line:
            lines[i] = re.sub(r"(?<=\w)_(?=[,)])", r"\\_", line)


def setup(app: Any) -> None:
    """Register the hooks of this file."""
    # autosummary writes a page for each public name and keeps the pages of names that are gone
    shutil.rmtree(Path(__file__).parent / "generated", ignore_errors=True)
    app.connect("autodoc-process-docstring", escape_fitted_sizes, priority=900)
    app.connect("autodoc-skip-member", skip_foreign_members)
