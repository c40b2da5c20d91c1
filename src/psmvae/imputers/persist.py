"""Model files: safetensors with JSON metadata. Nothing is ever unpickled."""

# ruff: noqa: SLF001 (this is the half of an imputer that deals with files)

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open

from psmvae._version import __version__
from psmvae.imputers import checks
from psmvae.imputers.autoencoders import DLGMImputer, GMVAEImputer, VAEImputer
from psmvae.imputers.classical import MeanImputer, MICEImputer, MissForestImputer
from psmvae.imputers.gain import GAINImputer
from psmvae.imputers.miwae import MIWAEImputer, NotMIWAEImputer
from psmvae.imputers.psmvae import PSMVAEImputer
from psmvae.imputers.options import Advanced
from psmvae.models.config import GAINConfig, LatentConfig
from psmvae.nn.settings import JointMask, LatentMask, Network, NoMask, SelfMask
from psmvae.table.paths import atomic_path
from psmvae.table.schema import Schema

if TYPE_CHECKING:
    import torch

    from psmvae.imputers.base import Imputer

FORMAT = "psmvae-model"
FORMAT_VERSION = 10
IMPUTERS: dict[str, type[Imputer]] = {
    cls.__name__: cls
    for cls in (
        PSMVAEImputer,
        VAEImputer,
        GMVAEImputer,
        DLGMImputer,
        MIWAEImputer,
        NotMIWAEImputer,
        GAINImputer,
        MICEImputer,
        MissForestImputer,
        MeanImputer,
    )
}
# Settings that are objects, by the name they have in a file.
PARTS: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        SelfMask,
        JointMask,
        LatentMask,
        NoMask,
        Network,
        Advanced,
        LatentConfig,
        GAINConfig,
    )
}


def save(imputer: Imputer, path: str | os.PathLike[str]) -> None:
    """Write a fitted imputer; an existing file is replaced only when the new one is complete."""
    import torch
    from safetensors.torch import save_file

    imputer._check_parameters()
    facts = describe(imputer)
    parameters = {
        name: _to_json(name, value)
        for name, value in imputer.get_params(deep=False).items()
        if name not in ("random_state", "device")
    }
    arrays, plain = imputer._state()
    document = {
        "class": type(imputer).__name__,
        "parameters": parameters,
        "schema": imputer.schema_.to_json(),
        "seed": imputer.seed_,
        "n_rows": imputer.n_rows_,
        "feature_names": list(getattr(imputer, "feature_names_in_", [])),
        "ignored_columns": list(getattr(imputer, "ignored_columns_", [])),
        "plain": {name: _to_json(name, value) for name, value in plain.items()},
        "facts": facts,
    }
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "psmvae": __version__,
        "document": json.dumps(document),
    }
    state = {**arrays, "missing_rate": imputer.missing_rate_}
    # parts of a model may share what they know of the columns; a file has it once for each
    own = {"memory_format": torch.contiguous_format}
    tensors = {name: torch.as_tensor(value).cpu().clone(**own) for name, value in state.items()}
    with atomic_path(path) as temporary:
        save_file(tensors, str(temporary), metadata=metadata)


def load(path: str | os.PathLike[str], *, device: str = "auto") -> Any:
    """Read an imputer that was saved with its ``save`` method.

    Parameters
    ----------
    path : path
        The model file.
    device : str
        Where the model shall work.

    Returns
    -------
    imputer
        A fitted imputer that gives the same results, bit for bit on the same kind of device.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a model file, is damaged, or was written by a newer version.

    Examples
    --------
    >>> import numpy as np, tempfile, psmvae
    >>> table = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 5.0], [np.nan, 4.0]])
    >>> imputer = psmvae.PSMVAEImputer(max_epochs=2, random_state=0).fit(table)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     imputer.save(f"{folder}/model.safetensors")
    ...     again = psmvae.load(f"{folder}/model.safetensors")
    >>> bool((again.transform(table) == imputer.transform(table)).all())
    True
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            document = _document(path, metadata)
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(
            f"{str(path)!r} is not a psmvae model, or is cut short: {error}."
        ) from error
    try:
        imputer = _restore(document, state)
    except (
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        RuntimeError,
        AttributeError,
    ) as error:
        raise ValueError(
            f"{str(path)!r} is a psmvae model whose contents do not fit together: {error}."
        ) from error
    where = checks.torch_device(device)
    if hasattr(imputer, "model_"):
        imputer.device = device
        imputer.model_.to(where)
    return imputer


def describe(imputer: Imputer) -> dict[str, Any]:
    """Facts about a fitted imputer, ready for JSON."""
    imputer._check_fitted()
    ignored = list(getattr(imputer, "ignored_columns_", []))
    rates = dict(
        zip((c.name for c in imputer.schema_.modelled), imputer.missing_rate_, strict=True)
    )
    return {
        "psmvae": __version__,
        "model": type(imputer).__name__,
        "n_rows": imputer.n_rows_,
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "dtype": column.dtype,
                "n_levels": column.n_levels,
                "missing": float(rates.get(column.name, 1.0)),
            }
            for column in imputer.schema_.columns
        ],
        **({"ignored_columns": ignored} if ignored else {}),
        **imputer._facts(),
    }


def _document(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{str(path)!r} is a safetensors file but not a psmvae model.")
    version = metadata.get("format_version", "")
    if not version.isdigit() or int(version) > FORMAT_VERSION:
        raise ValueError(
            f"{str(path)!r} has model format {version!r}, written by psmvae "
            f"{metadata.get('psmvae')}; this is psmvae {__version__}, which reads format "
            f"{FORMAT_VERSION}. A newer psmvae will read it."
        )
    if int(version) < FORMAT_VERSION:
        raise ValueError(
            f"{str(path)!r} has model format {version}, written by psmvae "
            f"{metadata.get('psmvae')}, whose models had other parts; psmvae {__version__} reads "
            f"format {FORMAT_VERSION}. Fit the model again."
        )
    try:
        document = json.loads(metadata["document"])
    except (KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"{str(path)!r} is a damaged psmvae model: {error}.") from error
    if not isinstance(document, dict):
        raise ValueError(f"{str(path)!r} is a damaged psmvae model: its document is no object.")
    return document


def _restore(document: dict[str, Any], state: dict[str, torch.Tensor]) -> Imputer:
    if document["class"] not in IMPUTERS:
        raise ValueError(f"no imputer is called {document['class']!r}")
    parameters = {name: _from_json(value) for name, value in document["parameters"].items()}
    imputer = IMPUTERS[document["class"]](**parameters)
    imputer._check_parameters()
    imputer.schema_ = Schema.from_json(document["schema"])
    imputer.seed_ = checks.whole_number("seed", document["seed"], low=0)
    imputer.n_features_in_ = len(imputer.schema_.columns)
    if document["feature_names"]:
        imputer.feature_names_in_ = np.array(document["feature_names"], dtype=object)
    if document.get("ignored_columns"):
        # set aside by the command line, before the imputer saw the table
        imputer.ignored_columns_ = [str(name) for name in document["ignored_columns"]]
    imputer.n_rows_ = checks.whole_number("n_rows", document["n_rows"], low=1)
    imputer.missing_rate_ = state.pop("missing_rate").numpy()
    checks.shape("missing_rate", imputer.missing_rate_, (len(imputer.schema_.modelled),))
    plain = {name: _from_json(value) for name, value in document["plain"].items()}
    imputer._set_state(state, plain)
    return imputer


def _to_json(name: str, value: Any) -> Any:
    if type(value) in PARTS.values():
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"part": type(value).__name__} | {
            name: _to_json(name, inner) for name, inner in fields.items()
        }
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, tuple | list):
        return list(value)
    if name == "kinds":
        return {"part": "kinds", "kinds": dict(value)}
    if isinstance(value, dict):
        return value
    raise TypeError(
        f"An imputer with {name}={value!r} cannot be saved: a model file holds data, not code. "
        f"Of objects, only {sorted(PARTS)} can be written."
    )


def _from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    fields = dict(value)
    part = fields.pop("part", None)
    if part is None:
        return value
    if part == "kinds":
        return fields["kinds"]
    return PARTS[part](**{name: _from_json(inner) for name, inner in fields.items()})
