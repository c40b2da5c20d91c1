"""Groups of options that several commands share, declared once as a dataclass."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter of a command that is a dataclass by the fields of that dataclass.

    typer makes an option of each parameter in the signature, here of each field. The command is
    called with the dataclasses.
    """
    groups: dict[str, type[Any]] = {}
    shown: list[inspect.Parameter] = []
    for parameter in _typed(command):
        kind = parameter.annotation
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            groups[parameter.name] = kind
            shown += _typed(kind)
        else:
            shown.append(parameter)

    @functools.wraps(command)
    def run(**values: Any) -> None:
        made = {
            name: kind(**{field.name: values.pop(field.name) for field in dataclasses.fields(kind)})
            for name, kind in groups.items()
        }
        command(**made, **values)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    run.__signature__ = inspect.Signature(shown, return_annotation=None)  # type: ignore[attr-defined]
    return run


def _typed(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function or the fields of a dataclass, by keyword."""
    hints = get_type_hints(function, include_extras=True)
    return [
        parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(function).parameters.values()
    ]
