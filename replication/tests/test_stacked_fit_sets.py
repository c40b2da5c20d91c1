"""Stacked fits of imputers whose number of pattern sets, or time limit, differs by table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import psmvae
from psmvae import LogisticMask, PSMVAEImputer
from psmvae.training.progress import Progress
from psmvae_paper.stacked_fit import fit_stacked

QUICK: dict[str, Any] = {"max_epochs": 2, "n_draws": 5, "draws": "model"}
# n_sets="auto" finds these numbers of sets in the tables below
N_SETS = [2, 1, 2]


def tables() -> list[NDArray[np.float64]]:
    """Cells that are missing independently; in the first and last, half a row at a time as well."""
    made = []
    for seed, n_sets in enumerate(N_SETS):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, 6))
        missing = rng.random(x.shape) < 0.1
        if n_sets == 2:
            missing[rng.random(300) < 0.4, 3:] = True
        made.append(np.where(missing, np.nan, x))
    return made


class IdentityMask(LogisticMask):
    """A mask model that is equal to itself only."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


@pytest.mark.parametrize("mask_model", ["latent", IdentityMask()], ids=["latent", "own"])
def test_tables_with_other_numbers_of_sets_form_stacks_of_their_own(mask_model: Any) -> None:
    imputers = [PSMVAEImputer(mask_model, random_state=k, **QUICK) for k in range(3)]
    assert fit_stacked(imputers, tables()) == imputers
    assert [imputer.n_sets_ for imputer in imputers] == N_SETS
    for imputer, x in zip(imputers, tables(), strict=True):
        assert not np.isnan(imputer.transform(x)).any()


def test_a_stack_of_one_imputer_is_trained_as_by_fit() -> None:
    settings: dict[str, Any] = {"max_epochs": 40, "learning_rate": 1e-2, "draws": "model"}
    made = [PSMVAEImputer(n_draws=5, random_state=0, **settings) for _ in N_SETS]
    stacked = fit_stacked(made, tables())[1]
    alone = PSMVAEImputer(n_draws=5, random_state=0, **settings).fit(tables()[1])
    assert stacked.n_sets_ == 1
    assert stacked.best_validation_error_ == pytest.approx(alone.best_validation_error_, rel=0.2)


@pytest.mark.filterwarnings("ignore:max_time")
def test_all_stacks_count_their_seconds_from_the_same_start() -> None:
    imputers = [PSMVAEImputer(random_state=k, max_epochs=10**6, max_time=2.0) for k in range(3)]
    seconds: list[float] = []

    def note(progress: Progress) -> None:
        seconds.append(progress.seconds)

    fit_stacked(imputers, tables(), callback=note)
    assert seconds == sorted(seconds)


def test_an_error_leaves_all_imputers_unfitted() -> None:
    def stop(_: Progress) -> None:
        raise RuntimeError("enough")

    imputers = [PSMVAEImputer(random_state=k, **QUICK) for k in range(3)]
    with pytest.raises(RuntimeError, match="enough"):
        fit_stacked(imputers, tables(), callback=stop)
    assert not any(hasattr(imputer, "n_sets_") for imputer in imputers)


def test_tables_of_other_shapes_are_refused_before_training() -> None:
    shorter = tables()
    shorter[1] = shorter[1][:200]
    seen: list[Progress] = []
    with pytest.raises(ValueError, match="same number of rows"):
        fit_stacked([PSMVAEImputer(**QUICK) for _ in shorter], shorter, callback=seen.append)
    assert not seen


@pytest.mark.filterwarnings("ignore:max_time")
def test_a_stack_with_the_fast_preset_is_saved_whatever_max_time_is_later(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 1)) + 0.3 * rng.normal(size=(2000, 4))
    x = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    made = [PSMVAEImputer(max_time=1, device="cpu", random_state=k) for k in (0, 1)]
    imputer = fit_stacked(made, [x, -x])[1]
    assert imputer.fast_preset_
    imputer.set_params(max_time=None).save(tmp_path / "m.safetensors")
    assert psmvae.load(tmp_path / "m.safetensors", device="cpu").fast_preset_
