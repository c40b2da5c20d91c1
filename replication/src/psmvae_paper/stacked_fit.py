"""Fit several imputers at once, as members of one stacked model.

On a GPU a training step of a small network takes as long for thirty stacked members as for three,
so an experiment trains all its seeds and mechanisms together.

All uses of private methods of the library's imputers are in this module.
"""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from sklearn.base import clone
from torch import Tensor, nn

from psmvae.imputers import checks
from psmvae.imputers.base import Callback
from psmvae.imputers.deep import DeepImputer
from psmvae.kinds import KINDS
from psmvae.nn.matmul_backend import use_blas
from psmvae.nn.noise import Noise
from psmvae.table.codec import Encoded
from psmvae.training.loop import train
from psmvae_paper.compiled import compile_long_trainings

# Likelihoods whose only setting is the number of levels of a column.
STACKABLE = ("normal", "softmax")


# training needs gradients, also inside torch.inference_mode of the caller
@torch.inference_mode(mode=False)
def fit_stacked(
    imputers: Sequence[DeepImputer], tables: Sequence[Any], *, callback: Callback | None = None
) -> list[DeepImputer]:
    """Fit each imputer to its own table, all in one stacked model.

    Each imputer ends as `fit` would leave it: with the initial weights of its own seed, its own
    standardisation and its own early stopping. The random numbers of the steps are drawn for the
    whole stack, so a result is reproducible for the same list of imputers only. With
    "auto", imputers with the same number of pattern sets and the same regression form a stack; the
    stacks are trained one after the other within the same `max_time`.

    Parameters
    ----------
    imputers : list of deep imputers
        Imputers of one class, with one member each and equal parameters except `random_state`.
    tables : list of tables
        One for each imputer, of the same shape and with columns of the same kinds.
    callback : callable, optional
        Called with a `Progress` after every epoch of a stack.

    Returns
    -------
    list
        The same imputers, fitted. If an error is raised they are left unchanged.

    Raises
    ------
    ValueError
        If the imputers or their tables cannot be stacked.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import VAEImputer
    >>> from psmvae_paper.stacked_fit import fit_stacked
    >>> rng = np.random.default_rng(0)
    >>> tables = rng.normal(size=(2, 50, 1)) + 0.1 * rng.normal(size=(2, 50, 3))
    >>> tables[rng.random(tables.shape) < 0.2] = np.nan
    >>> both = fit_stacked([VAEImputer(max_epochs=2, random_state=k) for k in (0, 1)], tables)
    >>> [imputer.transform(table).shape for imputer, table in zip(both, tables)]
    [(50, 3), (50, 3)]
    """
    began = time.perf_counter()
    _check(imputers, tables)
    if len(imputers) == 1:
        return [imputers[0].fit(tables[0], callback=callback)]
    fitted = [clone(imputer) for imputer in imputers]
    cells = []
    for imputer, table in zip(fitted, tables, strict=True):
        imputer._check_parameters()
        encoded = imputer._read(table)
        imputer._build()
        cells.append((encoded.x, encoded.m))
    if len({_shape(imputer) for imputer in fitted}) > 1:
        raise ValueError("tables must have columns of the same kinds and levels to be stacked.")
    if len({imputer.n_rows_ for imputer in fitted}) > 1:
        raise ValueError(
            f"tables must have the same number of rows, got {[i.n_rows_ for i in fitted]}."
        )
    for group in _groups_by_config(fitted):
        _train([fitted[k] for k in group], [cells[k] for k in group], callback, began)
    for imputer, done in zip(imputers, fitted, strict=True):
        imputer.__dict__.update(done.__dict__)
    return list(imputers)


def _train(
    fitted: Sequence[DeepImputer],
    cells: Sequence[tuple[Any, Any]],
    callback: Callback | None,
    began: float,
) -> None:
    """Train imputers whose models are built, as one stack, each on its own cells."""
    lead, alone = fitted[0], len(fitted) == 1
    device = checks.torch_device(lead.device)
    stack = lead.model_.to(device) if alone else _stacked(fitted).to(device)
    for imputer in fitted:
        imputer.model_.to(device)
    tensors = [i._tensors(x, m) for i, (x, m) in zip(fitted, cells, strict=True)]
    trainer = copy.copy(lead)
    trainer.model_ = stack
    with use_blas():
        result = train(
            trainer._recipe(),
            torch.stack([x for x, _ in tensors]),
            torch.stack([m for _, m in tensors]),
            dataclasses.replace(lead.config_, n_members=len(fitted)),
            Noise(lead._seed(3), device),
            callback,
            began,
            wrap_loss=compile_long_trainings(device, lead.max_time),
        )
    if result.interrupted:
        raise KeyboardInterrupt
    for k, (imputer, (x, m)) in enumerate(zip(fitted, tensors, strict=True)):
        if not alone:
            with torch.no_grad():
                for whole, part in _member_tensors(stack, imputer.model_):
                    part.copy_(whole[k : k + 1])
        history = list(result.history)
        if result.best:
            history[-1] = dataclasses.replace(history[-1], best_validation_error=result.best[k])
        imputer._finish_fit(history, x, m)
        mask = result.validation_mask
        own = None if mask is None else mask[k : k + 1]
        imputer._fit_draws(Encoded(*cells[k]), own, began)


def _groups_by_config(imputers: Sequence[DeepImputer]) -> list[list[int]]:
    """Positions of the imputers, grouped by what "auto" became for their tables."""
    groups: dict[Any, list[int]] = {}
    for k, imputer in enumerate(imputers):
        groups.setdefault(imputer.config_, []).append(k)
    return list(groups.values())


def _check(imputers: Sequence[DeepImputer], tables: Sequence[Any]) -> None:
    if len(imputers) != len(tables) or not imputers:
        raise ValueError(
            f"there must be one table for each imputer, got {len(imputers)} imputers and "
            f"{len(tables)} tables."
        )
    first = imputers[0]

    def shared(imputer: DeepImputer) -> dict[str, Any]:
        return {k: v for k, v in imputer.get_params().items() if k != "random_state"}

    for imputer in imputers:
        if type(imputer) is not type(first) or shared(imputer) != shared(first):
            raise ValueError(
                "imputers must be of one class with equal parameters except random_state, got "
                f"{first!r} and {imputer!r}."
            )
        if imputer.n_members != 1:
            raise ValueError(f"n_members must be 1 to be stacked, got {imputer.n_members!r}.")


def _shape(imputer: DeepImputer) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """The likelihood and the levels of each column: what the shape of a network depends on."""
    columns = imputer._layout().columns
    for column in columns:
        if KINDS[column.kind].likelihood not in STACKABLE:
            raise ValueError(
                f"column {column.name!r} cannot be stacked: the likelihood of kind {column.kind!r} "
                "has constants computed from its own table."
            )
    return tuple((KINDS[column.kind].likelihood, column.levels) for column in columns)


def _stacked(imputers: Sequence[DeepImputer]) -> nn.Module:
    """One model with a member for each imputer, at the initial weights of that imputer."""
    lead = copy.copy(imputers[0])
    lead.config_ = dataclasses.replace(lead.config_, n_members=len(imputers))
    lead._build()
    stack: nn.Module = lead.model_
    with torch.no_grad():
        for k, imputer in enumerate(imputers):
            for whole, part in _member_tensors(stack, imputer.model_):
                whole[k : k + 1].copy_(part)
    for name in getattr(stack, "per_table", ()):
        parts = [getattr(imputer.model_, name) for imputer in imputers]
        setattr(stack, name, torch.cat(parts))
    return stack


def _member_tensors(stack: nn.Module, single: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of tensors with a member axis: of the stack, and of a model of one member."""
    parts = single.state_dict(keep_vars=True)
    for name, whole in stack.state_dict(keep_vars=True).items():
        part = parts[name]
        if whole.shape[:1] != part.shape[:1]:
            yield whole, part
