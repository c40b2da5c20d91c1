"""Modules that are executed when they are first used."""

from __future__ import annotations

import sys
import threading
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any


class LazyModule(ModuleType):
    """A module that is executed when an attribute that it does not have yet is read.

    `importlib.util.LazyLoader` executes a module at its second import already, since that reads
    ``__spec__``.
    """

    def __getattr__(self, name: str) -> Any:
        """Execute the module and return its attribute."""
        spec, lock = self.__spec__, object.__getattribute__(self, "_lock")
        with lock:
            # False for attributes that are read while the module is being executed
            if vars(self).pop("_unexecuted", False) and spec is not None and spec.loader:
                spec.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
        return ModuleType.__getattribute__(self, name)


def import_lazily(name: str) -> None:
    """Make ``import name`` cheap: the module is executed when it is first used."""
    spec: ModuleSpec | None = None if name in sys.modules else find_spec(name)
    if spec is None:
        return
    module = module_from_spec(spec)
    vars(module).update(_unexecuted=True, _lock=threading.RLock())
    module.__class__ = LazyModule
    sys.modules[name] = module
