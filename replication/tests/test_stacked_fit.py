"""Imputers that are fitted in one stack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray

import psmvae
from psmvae import (
    DLGMImputer,
    GAINImputer,
    GMVAEImputer,
    MIWAEImputer,
    NotMIWAEImputer,
    PSMVAEImputer,
    VAEImputer,
)
from psmvae.imputers.deep import DeepImputer
from psmvae_paper.stacked_fit import fit_stacked

FAST: dict[str, Any] = {"max_epochs": 25, "batch_size": 50, "learning_rate": 1e-2}
STILL = {"learning_rate": 1e-12}
# without the regressions of proper draws, which single imputations do not need
LATENT: dict[str, Any] = FAST | {"draws": "model"}
MAKERS = {
    "psmvae": lambda **more: PSMVAEImputer(**(LATENT | more)),
    "psmvae-self": lambda **more: PSMVAEImputer("logistic-ceiling", **(LATENT | more)),
    "paper-a": lambda **more: PSMVAEImputer.paper("a", n_draws=50, **(FAST | more)),
    "paper-b-rate": lambda **more: PSMVAEImputer.paper("b", n_draws=50, pi="rate", **(FAST | more)),
    "gmvae": lambda **more: GMVAEImputer("latent", **(LATENT | more)),
    "dlgm": lambda **more: DLGMImputer.paper(**(FAST | more)),
    "vae": lambda **more: VAEImputer(**(LATENT | more)),
    "miwae": lambda **more: MIWAEImputer.paper(n_draws=50, n_train_draws=5, **(FAST | more)),
    "not-miwae": lambda **more: NotMIWAEImputer.paper(n_draws=50, n_train_draws=5, **(FAST | more)),
    "gain": lambda **more: GAINImputer(**(FAST | more)),
}


def tables(n: int = 2, n_rows: int = 120) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Tables that differ in slope, units and missing rate, complete and with missing cells."""
    rng = np.random.default_rng(5)
    factor = rng.normal(size=(n, n_rows, 1))
    slope = np.array([[1.0, 1.0, 1.0, 1.0], [-1.0, 1.0, -2.0, 1.0], [3.0, -1.0, 1.0, 0.0]])[:n]
    complete = factor * slope[:, None] + 0.2 * rng.normal(size=(n, n_rows, 4)) + 10.0
    rate = np.array([0.2, 0.5, 0.3])[:n, None, None]
    return complete, np.where(rng.random(complete.shape) < rate, np.nan, complete)


def rmse(imputer: DeepImputer, complete: Any, incomplete: Any) -> float:
    missing = np.isnan(incomplete)
    filled = imputer.transform(incomplete)
    return float(np.sqrt(np.mean((filled - complete)[missing] ** 2)))


@pytest.mark.parametrize("name", MAKERS)
def test_each_imputer_learns_its_own_table(name: str) -> None:
    complete, incomplete = tables()
    both = fit_stacked([MAKERS[name](random_state=k) for k in (0, 1)], list(incomplete))
    for imputer, truth, table in zip(both, complete, incomplete, strict=True):
        by_the_mean = (truth - np.nanmean(table, axis=0))[np.isnan(table)]
        # the slopes have different signs: weights learned from the other table would be worse
        assert rmse(imputer, truth, table) < 0.9 * np.sqrt(np.mean(by_the_mean**2))
        assert imputer.n_epochs_ > 0


def test_proper_draws_are_those_of_each_table() -> None:
    complete, incomplete = tables()
    both = fit_stacked([VAEImputer(random_state=k, **FAST) for k in (0, 1)], list(incomplete))
    for imputer, truth, table in zip(both, complete, incomplete, strict=True):
        missing = np.isnan(table)
        drawn = np.stack(imputer.sample(table, 10, random_state=0))
        by_the_mean = (truth - np.nanmean(table, axis=0))[missing]
        error = (drawn.mean(0) - truth)[missing]
        # regressions fitted to the other table would have slopes of the wrong sign
        assert np.sqrt(np.mean(error**2)) < 0.5 * np.sqrt(np.mean(by_the_mean**2))
        assert (drawn.std(0)[missing] > 0).all()


def test_stack_of_one_equals_fit() -> None:
    _, incomplete = tables(1)
    [stacked] = fit_stacked([VAEImputer(random_state=3, **LATENT)], list(incomplete))
    alone = VAEImputer(random_state=3, **LATENT).fit(incomplete[0])
    np.testing.assert_allclose(
        stacked.transform(incomplete[0]), alone.transform(incomplete[0]), rtol=1e-4
    )


def test_table_statistics_stay_with_their_imputer() -> None:
    """Missing rates, π', standardisation and initial weights are those of each imputer."""
    _, incomplete = tables(3)
    made = [MAKERS["paper-b-rate"](random_state=k, **STILL) for k in range(3)]
    for k, imputer in enumerate(fit_stacked(made, list(incomplete))):
        alone = MAKERS["paper-b-rate"](random_state=k, **STILL).fit(incomplete[k])
        np.testing.assert_array_equal(imputer.missing_rate_, alone.missing_rate_)
        torch.testing.assert_close(imputer.model_.pi, alone.model_.pi)
        torch.testing.assert_close(imputer.model_.weight_observed, alone.model_.weight_observed)
        torch.testing.assert_close(imputer.model_.state_dict(), alone.model_.state_dict())
        np.testing.assert_allclose(
            imputer.transform(incomplete[k]), alone.transform(incomplete[k]), rtol=1e-4
        )


def test_stacked_imputer_can_be_saved_and_loaded(tmp_path: Any) -> None:
    _, incomplete = tables()
    first, _ = fit_stacked(
        [PSMVAEImputer(random_state=k, **FAST) for k in (0, 1)], list(incomplete)
    )
    first.save(tmp_path / "one.psmvae")
    again = psmvae.load(tmp_path / "one.psmvae")
    np.testing.assert_array_equal(again.transform(incomplete[0]), first.transform(incomplete[0]))


def test_same_list_gives_same_result() -> None:
    _, incomplete = tables()
    runs = [
        fit_stacked([VAEImputer(random_state=k, **LATENT) for k in (0, 1)], list(incomplete))[1]
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*(imputer.transform(incomplete[1]) for imputer in runs))


@pytest.mark.parametrize(
    ("imputers", "shapes", "message"),
    [
        ([], [], "one table for each imputer"),
        ([VAEImputer()], [(20, 3), (20, 3)], "one table for each imputer"),
        ([VAEImputer(), VAEImputer(input_mask_rate=0.5)], [(20, 3)] * 2, "equal parameters"),
        ([VAEImputer(), GMVAEImputer()], [(20, 3)] * 2, "one class"),
        ([VAEImputer(n_members=2)], [(20, 3)], "n_members must be 1"),
        ([VAEImputer(), VAEImputer()], [(20, 3), (21, 3)], "same number of rows"),
        ([VAEImputer(), VAEImputer()], [(20, 3), (20, 4)], "same kinds"),
    ],
)
def test_invalid_stacks_are_rejected(imputers: Any, shapes: Any, message: str) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=message):
        fit_stacked(imputers, [rng.normal(size=shape) for shape in shapes])
    assert not any(hasattr(imputer, "schema_") for imputer in imputers)


def test_likelihood_with_table_constants_is_rejected() -> None:
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame({"n": rng.poisson(3, 40), "x": rng.normal(size=40)}) for _ in range(2)]
    imputers = [VAEImputer(kinds={"n": "count"}) for _ in range(2)]
    with pytest.raises(ValueError, match="column 'n' cannot be stacked"):
        fit_stacked(imputers, frames)


@pytest.mark.parametrize("switched_off", [torch.no_grad, torch.inference_mode])
def test_fit_works_inside_no_grad(switched_off: Any) -> None:
    _, incomplete = tables()
    both = [MAKERS["vae"](random_state=k) for k in range(2)]
    with switched_off():
        inside = fit_stacked([MAKERS["vae"](random_state=k) for k in range(2)], incomplete)
    for one, other, table in zip(fit_stacked(both, incomplete), inside, incomplete, strict=True):
        np.testing.assert_array_equal(one.transform(table), other.transform(table))
