"""Complete class docstrings, composed from the classes that declare each parameter."""

from __future__ import annotations

import inspect
import re
from typing import TypeVar

Class = TypeVar("Class", bound=type)
SECTIONS = ("Parameters", "Attributes")


def complete(cls: Class) -> Class:
    """Add the inherited entries to the sections "Parameters" and "Attributes" of a class.

    A parameter is documented once, in the class that declares it. ``help`` of a subclass shows it
    all the same: the subclass's own entries come first, then those of its base classes. Only
    parameters of the constructor are added.
    """
    accepted = set(inspect.signature(cls).parameters)
    doc = inspect.cleandoc(cls.__doc__ or "")
    for section in SECTIONS:
        entries: dict[str, str] = {}
        for base in cls.__mro__:
            for name, text in _entries(inspect.cleandoc(vars(base).get("__doc__") or ""), section):
                if section == "Attributes" or name in accepted:
                    entries.setdefault(name, text)
        if entries:
            doc = _with_section(doc, section, "\n".join(entries.values()))
    cls.__doc__ = doc
    return cls


def _pattern(section: str) -> re.Pattern[str]:
    return re.compile(rf"(?ms)^{section}\n-+\n(.*?)(?=\n\n\S[^\n]*\n-+\n|\Z)")


def _entries(doc: str, section: str) -> list[tuple[str, str]]:
    """Return the name and text of every entry of a section; ``a, b : int`` counts as ``a``."""
    match = _pattern(section).search(doc)
    texts = re.split(r"\n(?=\S)", match[1].strip("\n")) if match else []
    return [(re.split(r"[ ,:]", text, maxsplit=1)[0], text) for text in texts]


def _with_section(doc: str, section: str, body: str) -> str:
    """Replace a section, or insert it before the sections that follow it in numpydoc's order."""
    whole = f"{section}\n{'-' * len(section)}\n{body}"
    if _pattern(section).search(doc):
        return _pattern(section).sub(lambda _: whole, doc, count=1)
    later = re.search(r"^(Notes|References|Examples)\n-+\n", doc, re.MULTILINE)
    if later is None:
        return f"{doc}\n\n{whole}"
    return f"{doc[: later.start()]}{whole}\n\n{doc[later.start() :]}"
