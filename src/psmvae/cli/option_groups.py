"""Groups of options that several commands share, declared once as a dataclass."""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter of a command that is a dataclass by the fields of that dataclass.

    typer makes an option of each parameter in the signature, here of each field. The command is
    called with the dataclasses.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {}
    shown: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            groups[name] = kind
            shown += _fields(kind)
        else:
            shown.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
    signature = inspect.Signature(shown, return_annotation=None)

    def run(**given: Any) -> None:
        arguments = signature.bind(**given)
        arguments.apply_defaults()
        values = dict(arguments.arguments)
        made = {
            name: kind(**{field.name: values.pop(field.name) for field in dataclasses.fields(kind)})
            for name, kind in groups.items()
        }
        command(**made, **values)

    run.__name__, run.__doc__, run.__module__ = (
        command.__name__,
        command.__doc__,
        command.__module__,
    )
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    run.__signature__ = signature  # type: ignore[attr-defined]
    return run


def _fields(kind: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[field.name],
            default=inspect.Parameter.empty
            if field.default is dataclasses.MISSING
            else field.default,
        )
        for field in dataclasses.fields(kind)
    ]
