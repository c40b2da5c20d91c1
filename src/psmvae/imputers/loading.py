"""Reading of fitted imputers from model files."""

# ruff: noqa: SLF001 (restores the private state of imputers)

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae._quiet import TORCH, load_libraries
from psmvae.imputers import checks
from psmvae.imputers.ambient import independent
from psmvae.imputers.autoencoders import DLGMImputer, GMVAEImputer, VAEImputer
from psmvae.imputers.base import Imputer
from psmvae.imputers.classical import MeanImputer, MissForestImputer
from psmvae.imputers.deep import DeepImputer
from psmvae.imputers.donors import check_donors
from psmvae.imputers.file_schema import check_config, check_no_nan
from psmvae.imputers.gain import GAINImputer
from psmvae.imputers.mice import MICEImputer
from psmvae.imputers.miwae import MIWAEImputer, NotMIWAEImputer
from psmvae.imputers.model_file import from_json, read
from psmvae.imputers.psmvae import PSMVAEImputer
from psmvae.imputers.reference import Reference
from psmvae.table.fields import check_fields
from psmvae.table.schema import Schema

if TYPE_CHECKING:
    import torch

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
# Errors that damaged contents may raise.
DAMAGE = (LookupError, TypeError, ValueError, ArithmeticError, RuntimeError, AttributeError)


@independent
def load(path: str | os.PathLike[str], *, device: str = "auto") -> Any:
    """Read an imputer that was saved with its ``save`` method.

    Parameters
    ----------
    path : path
        The model file.
    device : str, default="auto"
        Device of the model: "auto", "cpu", "cuda" or "cuda:N".

    Returns
    -------
    imputer
        A fitted imputer. Its results are bit-identical on the same type of device.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a model file, is damaged, or was written by another version.

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
    load_libraries(TORCH)
    path = Path(path)
    document, tensors = read(path)
    try:
        imputer = _restore(document, tensors)
    except DAMAGE as error:
        message = f"{str(path)!r} is a psmvae model with inconsistent contents: {error}."
        raise ValueError(message) from error
    where = checks.torch_device(device)
    if isinstance(imputer, DeepImputer):
        imputer.device = device
        imputer.model_.to(where)
    return imputer


def _restore(document: dict[str, Any], state: dict[str, torch.Tensor]) -> Imputer:
    if document["class"] not in IMPUTERS:
        raise ValueError(f"unknown imputer class {document['class']!r}")
    load_libraries(IMPUTERS[document["class"]]._libraries)
    parameters = {name: from_json(value) for name, value in document["parameters"].items()}
    plain = {name: from_json(value) for name, value in document["plain"].items()}
    imputer = IMPUTERS[document["class"]](**parameters)
    check_fields(imputer)
    imputer._check_parameters()
    if isinstance(imputer, DeepImputer):
        check_config(plain["config"])
    imputer.schema_ = Schema.from_json(document["schema"])
    imputer.seed_ = checks.whole_number("seed", document["seed"], low=0)
    imputer.n_features_in_ = len(imputer.schema_.columns)
    if document["feature_names"]:
        imputer.feature_names_in_ = np.array(document["feature_names"], dtype=object)
    if document.get("ignored_columns"):
        # passed through by the command line, which removed them before the fit
        imputer.ignored_columns_ = [str(name) for name in document["ignored_columns"]]
    imputer.n_rows_ = checks.whole_number("n_rows", document["n_rows"], low=1, high=2**53)
    check_no_nan(state)
    imputer.missing_rate_ = state.pop("missing_rate").numpy()
    checks.shape("missing_rate", imputer.missing_rate_, (len(imputer.schema_.modelled),))
    checks.rates("missing_rate", imputer.missing_rate_)
    names = [name for name in state if name.startswith("donors.")]
    imputer.donors_ = {int(name.removeprefix("donors.")): state.pop(name).numpy() for name in names}
    check_donors(imputer.donors_, imputer.schema_.modelled)
    parts = [state.pop(f"reference.{name}").numpy() for name in ("edges", "shares", "sizes")]
    imputer.reference_ = Reference.from_arrays(len(imputer.schema_.modelled), *parts)
    imputer._set_state(state, plain)
    return imputer
