"""Several imputers trained as stacked members of one program: seeds of an experiment, say."""

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
from psmvae.training.loop import train

# Likelihoods that know nothing of a column but its number of levels.
STACKABLE = ("normal", "softmax")


# gradients are needed here, also where the caller has switched them off
@torch.inference_mode(mode=False)
def fit_stacked(
    imputers: Sequence[DeepImputer], tables: Sequence[Any], *, callback: Callback | None = None
) -> list[DeepImputer]:
    """Fit each imputer to its own table, all in one stacked program.

    On a GPU, where a step of a small network takes as long for thirty members as for three, this is
    many times faster than one after the other. Each imputer ends as `fit` would leave it: with
    first weights of its own seed, its own standardisation and its own stop; the random numbers of
    the steps are drawn together, so a result is the same only for the same list. Tables that bear
    out different numbers of pattern sets (`n_sets="auto"`) make a stack for each number, one after
    the other within the same `max_time`.

    Parameters
    ----------
    imputers : list of deep imputers
        Of one class, with one member each and equal parameters, save `random_state`.
    tables : list of tables
        One for each, of the same shape, whose columns are of the same kinds.
    callback : callable, optional
        Called with a `Progress` after every epoch.

    Returns
    -------
    list
        The same imputers, fitted. Where an error is raised they are left as they were.

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
        raise ValueError(f"tables must have as many rows: {[i.n_rows_ for i in fitted]}.")
    for group in _alike(fitted):
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
    """Train imputers that have been built, as one stack, to the cells of each."""
    lead, alone = fitted[0], len(fitted) == 1
    device = checks.torch_device(lead.device)
    stack = lead.model_.to(device) if alone else _stacked(fitted).to(device)
    for imputer in fitted:
        imputer.model_.to(device)
    tensors = [i._tensors(x, m) for i, (x, m) in zip(fitted, cells, strict=True)]
    training = lead._training(lead.n_rows_)
    trainer = copy.copy(lead)
    trainer.model_ = stack
    with use_blas():
        result = train(
            trainer._recipe(training),
            torch.stack([x for x, _ in tensors]),
            torch.stack([m for _, m in tensors]),
            len(fitted),
            training,
            Noise(lead._seed(3), device),
            callback,
            began,
        )
    if result.interrupted:
        raise KeyboardInterrupt
    for k, (imputer, (x, m)) in enumerate(zip(fitted, tensors, strict=True)):
        if not alone:
            with torch.no_grad():
                for whole, part in _numbers(stack, imputer.model_):
                    part.copy_(whole[k : k + 1])
        history = list(result.history)
        if result.best:
            history[-1] = dataclasses.replace(history[-1], best_validation_error=result.best[k])
        imputer._take(history, x, m)


def _alike(imputers: Sequence[DeepImputer]) -> list[list[int]]:
    """Positions of those whose tables bear out the same number of pattern sets."""
    groups: dict[int, list[int]] = {}
    for k, imputer in enumerate(imputers):
        groups.setdefault(getattr(imputer, "n_sets_", 1), []).append(k)
    return list(groups.values())


def _check(imputers: Sequence[DeepImputer], tables: Sequence[Any]) -> None:
    if len(imputers) != len(tables) or not imputers:
        raise ValueError(
            f"there must be a table for each imputer: got {len(imputers)} imputers and "
            f"{len(tables)} tables."
        )
    first = imputers[0]

    def shared(imputer: DeepImputer) -> dict[str, Any]:
        return {k: v for k, v in imputer.get_params().items() if k != "random_state"}

    for imputer in imputers:
        if type(imputer) is not type(first) or shared(imputer) != shared(first):
            raise ValueError(
                "imputers must be of one class with equal parameters, save random_state: got "
                f"{first!r} and {imputer!r}."
            )
        if imputer.n_members != 1:
            raise ValueError(f"n_members must be 1 to be stacked, got {imputer.n_members!r}.")


def _shape(imputer: DeepImputer) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """What the networks know of a table: likelihoods and levels."""
    columns = imputer._layout().columns
    for column in columns:
        if KINDS[column.kind].likelihood not in STACKABLE:
            raise ValueError(
                f"column {column.name!r} cannot be stacked: the likelihood of kind {column.kind!r} "
                "holds figures of its own table."
            )
    return tuple((KINDS[column.kind].likelihood, column.levels) for column in columns)


def _stacked(imputers: Sequence[DeepImputer]) -> nn.Module:
    """One model of as many members, at the first weights of each."""
    lead = copy.copy(imputers[0])
    lead.n_members = len(imputers)
    lead._build()
    stack: nn.Module = lead.model_
    with torch.no_grad():
        for k, imputer in enumerate(imputers):
            for whole, part in _numbers(stack, imputer.model_):
                whole[k : k + 1].copy_(part)
    for name in getattr(stack, "per_table", ()):
        parts = [getattr(imputer.model_, name) for imputer in imputers]
        setattr(stack, name, torch.cat(parts))
    return stack


def _numbers(stack: nn.Module, single: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    """What a stack and a model of one member both hold for each member: weights and buffers."""
    parts = single.state_dict(keep_vars=True)
    for name, whole in stack.state_dict(keep_vars=True).items():
        part = parts[name]
        if whole.shape[:1] != part.shape[:1]:
            yield whole, part
