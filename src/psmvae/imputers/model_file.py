"""The format of model files: safetensors with JSON metadata. Nothing is ever unpickled."""

# ruff: noqa: SLF001 (reads and restores the private state of imputers)

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open

from psmvae._version import __version__
from psmvae.imputers import checks, file_schema
from psmvae.imputers.ambient import independent
from psmvae.imputers.options import Advanced
from psmvae.imputers.tensor_file import write_tensors
from psmvae.mechanism.settings import SelfMask
from psmvae.models.config import GAINConfig, LatentConfig
from psmvae.nn.architecture import Network
from psmvae.nn.settings import JointMask, LatentMask, LogisticMask, NoMask
from psmvae.table.paths import atomic_path

if TYPE_CHECKING:
    import torch

    from psmvae.imputers.base import Imputer

FORMAT = "psmvae-model"
FORMAT_VERSION = 20
MASKS = (SelfMask, LogisticMask, JointMask, LatentMask, NoMask)
# Objects that a file can hold, by name.
PARTS: dict[str, type[Any]] = {
    cls.__name__: cls for cls in (*MASKS, Network, Advanced, LatentConfig, GAINConfig)
}
# Parameters that map names of columns to plain values.
BY_COLUMN = ("kinds", "bounds", "derived", "predictors")
# What `describe` says of a column, with its missing rate.
COLUMN_FACTS = ("name", "kind", "reason", "dtype", "n_levels", "low", "high")


@independent
def save(imputer: Imputer, path: str | os.PathLike[str], *, replace: bool = True) -> None:
    """Write a fitted imputer. An existing file is replaced when the new one is complete.

    Raises
    ------
    OSError
        If the file cannot be written; FileExistsError if there is one and `replace` is False.
    """
    imputer._check_parameters()
    facts = describe(imputer)
    parameters = imputer.get_params(deep=False)
    del parameters["random_state"]
    parameters.pop("device", None)
    arrays, plain = imputer._state()
    document = {
        "class": type(imputer).__name__,
        "parameters": {name: to_json(name, value) for name, value in parameters.items()},
        "schema": imputer.schema_.to_json(),
        "seed": imputer.seed_,
        "n_rows": imputer.n_rows_,
        "feature_names": list(getattr(imputer, "feature_names_in_", [])),
        "ignored_columns": list(getattr(imputer, "ignored_columns_", [])),
        "plain": {name: to_json(name, value) for name, value in plain.items()},
        "facts": facts,
    }
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "psmvae": __version__,
        "document": json.dumps(document),
    }
    donors = {f"donors.{j}": values for j, values in imputer.donors_.items()}
    state = {
        **arrays, **donors, **imputer.reference_.arrays(), "missing_rate": imputer.missing_rate_
    }  # fmt: skip
    with atomic_path(path, replace=replace) as temporary:
        write_tensors(temporary, state, metadata)


def read(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return the JSON document and the tensors of a model file."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")
    try:
        with safe_open(str(path), framework="pt") as file:
            document = _document(path, file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        message = f"{str(path)!r} is not a psmvae model, or is truncated: {error}."
        raise ValueError(message) from error
    return document, tensors


def describe(imputer: Imputer) -> dict[str, Any]:
    """Describe a fitted imputer by plain values; see `Imputer.describe`."""
    imputer._check_fitted()
    ignored = list(getattr(imputer, "ignored_columns_", []))
    modelled = [column.name for column in imputer.schema_.modelled]
    rates = dict(zip(modelled, imputer.missing_rate_, strict=True))
    return {
        "psmvae": __version__,
        "model": type(imputer).__name__,
        "n_rows": imputer.n_rows_,
        "columns": [
            {name: getattr(column, name) for name in COLUMN_FACTS}
            | {"missing": float(rates.get(column.name, 1.0))}
            for column in imputer.schema_.columns
        ],
        **({"ignored_columns": ignored} if ignored else {}),
        **imputer._facts(),
    }


def _document(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{str(path)!r} is a safetensors file but not a psmvae model.")
    version = metadata.get("format_version", "")
    # str.isdigit also accepts digits that int() refuses, such as ², and numbers that are too long
    is_number = re.fullmatch("[0-9]{1,9}", version) is not None
    if not is_number or int(version) > FORMAT_VERSION:
        raise ValueError(
            f"{str(path)!r} has model format {version[:20]!r}, written by psmvae "
            f"{metadata.get('psmvae')}; this is psmvae {__version__}, which reads format "
            f"{FORMAT_VERSION}. A newer psmvae will read it."
        )
    if int(version) < FORMAT_VERSION:
        raise ValueError(
            f"{str(path)!r} has model format {version}, written by psmvae "
            f"{metadata.get('psmvae')}, whose model format differs; psmvae {__version__} reads "
            f"format {FORMAT_VERSION}. Fit the model again."
        )
    try:
        return file_schema.parse(metadata["document"])
    except (KeyError, ValueError) as error:
        raise ValueError(f"{str(path)!r} is a damaged psmvae model: {error}.") from error


def to_json(name: str, value: Any) -> Any:
    """Convert a parameter or a configuration to values that JSON can hold."""
    if type(value) in PARTS.values():
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"part": type(value).__name__} | {
            name: to_json(name, inner) for name, inner in fields.items()
        }
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return list(value)
    if name == "predictors" and value is not None:
        value = checks.predictors(value)
    if name in BY_COLUMN and isinstance(value, Mapping):
        return {"part": name, "columns": {str(key): to_plain(one) for key, one in value.items()}}
    if value is None or isinstance(value, str | int | float | bool | dict):
        return value
    raise TypeError(
        f"An imputer with {name}={value!r} cannot be saved: a model file holds data, not code. "
        f"Of objects, only {sorted(PARTS)} can be written."
    )


def from_json(value: Any, depth: int = 0) -> Any:
    """Restore a value from `to_json`."""
    if not isinstance(value, dict):
        return value
    if "part" not in value:
        return value
    if depth > file_schema.MAX_DEPTH:
        raise ValueError("objects are nested too deeply")
    fields = dict(value)
    part = fields.pop("part")
    if part == "predictors":
        return dict(fields["columns"])
    if part in BY_COLUMN:
        return {key: to_tuple(one) for key, one in fields["columns"].items()}
    return PARTS[part](**{name: from_json(inner, depth + 1) for name, inner in fields.items()})


def to_plain(value: Any) -> Any:
    """Convert a kind, a pair of bounds or a formula to values that JSON can hold."""
    if isinstance(value, tuple | list | np.ndarray):
        return [to_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    # JSON has no infinity; None is no bound too
    return None if isinstance(value, float) and math.isinf(value) else value


def to_tuple(value: Any) -> Any:
    """Restore a kind, a pair of bounds or a formula from `to_plain`."""
    return tuple(value) if isinstance(value, list) else value
