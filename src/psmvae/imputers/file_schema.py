"""Limits of the fields of a model file, checked before anything is built from them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from psmvae.imputers import checks
from psmvae.nn.architecture import Network
from psmvae.table.fields import check_fields
from psmvae.training.progress import Progress

if TYPE_CHECKING:
    import torch

    from psmvae.models.config import Config

MAX_DOCUMENT = 2**26
"""Characters of the JSON document of a file at most; a table of 20,000 columns needs a quarter."""
MAX_DEPTH = 4
"""How deep objects with settings can be nested in each other."""
# While a model is built it has at most so many times the numbers of its tensors in the file, and so
# many more (64 MiB): networks keep a one-hot code of each set, which is not part of the file.
MAX_RATIO, MAX_EXTRA = 4, 2**24
# Entries of the document with their types; "facts" is for other programs and not read.
ENTRIES: dict[str, type[Any]] = {
    "class": str,
    "parameters": dict,
    "schema": dict,
    "seed": int,
    "n_rows": int,
    "feature_names": list,
    "ignored_columns": list,
    "plain": dict,
}
# Columns that are complete or have no observed cell have NaN here.
MAY_HAVE_NAN = ("chain.fill", "chains.trace_mean", "chains.trace_deviation")
# Smallest value of whole numbers in a configuration, and ranges of numbers.
_LOWEST = {
    **dict.fromkeys(("n_members", "max_epochs", "batch_size", "patience", "n_sets"), 1),
    **dict.fromkeys(("n_latent", "n_train_draws", "pretrain_batch_size"), 1),
    **dict.fromkeys(("pretrain_steps", "post_pretrain_steps", "validation_rows"), 0),
    **dict.fromkeys(("factor_analysis_rows", "factor_analysis_steps"), 0),
}
_RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("validation_fraction", "input_mask_rate", "weight_average"), (0.0, 1.0)),
    **dict.fromkeys(("pretrain_time_fraction", "hint_rate", "pi"), (0.0, 1.0)),
    **dict.fromkeys(("learning_rate", "max_time", "scale", "beta", "alpha"), (0.0, 1e30)),
}


def parse(text: str) -> dict[str, Any]:
    """Return the document of a model file with the types of its entries checked."""
    if len(text) > MAX_DOCUMENT:
        raise ValueError(f"its document has {len(text):,} characters, at most {MAX_DOCUMENT:,}")
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("its document is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("its document is no object")
    for name, kind in ENTRIES.items():
        # a bool is an int
        if name in document and type(document[name]) is not kind:
            raise ValueError(f"{name} must be of type {kind.__name__}")
    for name in ("feature_names", "ignored_columns"):
        if not all(isinstance(one, str) for one in document.get(name, [])):
            raise ValueError(f"{name} must be a list of strings")
    return document


def check_config(config: Config) -> None:
    """Raise ValueError or TypeError if a field of a configuration is out of its range."""
    from psmvae.kinds.base import Scale

    check_fields(config, {"Scale": Scale})
    for field in dataclasses.fields(config):
        name, value = field.name, getattr(config, field.name)
        if isinstance(value, Network):
            for size in ("width", "depth"):
                checks.whole_number(f"{name}.{size}", getattr(value, size), low=1)
        if value is None or isinstance(value, str | bool):
            continue
        if name in _LOWEST:
            checks.whole_number(name, value, low=_LOWEST[name])
        elif name in _RANGES:
            checks.number(name, value, *_RANGES[name])


def check_sizes(config: Config, tensors: Mapping[str, torch.Tensor]) -> int:
    """Raise ValueError if there are more layers, members or sets than the tensors can have.

    Returns the largest number of numbers in the tensors of a model with this configuration, those
    that are not part of the file included.
    """
    n_parameters = sum(tensor.numel() for tensor in tensors.values())
    if config.n_members * getattr(config, "n_sets", 1) > n_parameters:
        raise ValueError("n_members and n_sets are not those of the tensors")
    for field in dataclasses.fields(config):
        network = getattr(config, field.name)
        if isinstance(network, Network) and network.depth > len(tensors):
            raise ValueError(f"{field.name} has depth {network.depth}: not that of the tensors")
    return MAX_RATIO * n_parameters + MAX_EXTRA


def check_tensors(expected: Mapping[str, torch.Tensor], found: Mapping[str, torch.Tensor]) -> None:
    """Raise ValueError if tensors are not those of a model in name, shape or type."""
    if expected.keys() != found.keys():
        names = sorted(expected.keys() ^ found.keys())
        raise ValueError(f"the tensors are not those of the model: {', '.join(names[:5])}")
    for name, tensor in expected.items():
        checks.shape(name, found[name], tuple(tensor.shape))
        if found[name].dtype != tensor.dtype:
            raise ValueError(f"{name} must be of type {tensor.dtype}, got {found[name].dtype}")


def check_no_nan(tensors: Mapping[str, torch.Tensor]) -> None:
    """Raise ValueError if a tensor has NaN that no fitted imputer has there."""
    for name, tensor in tensors.items():
        if name in MAY_HAVE_NAN or not tensor.is_floating_point():
            continue
        if bool(tensor.isnan().any()):
            raise ValueError(f"{name} must not have NaN")


def progress(values: Any) -> Progress:
    """Return the last report of a training."""
    made = Progress(**values)
    check_fields(made)
    return made
