"""A table gives the same values in memory and in batches of any size."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from contract.registry import IMPUTERS, VARIANTS
from psmvae.imputers.batches import BatchImputer
from psmvae.imputers.blocks import BLOCK_ROWS, BlockSeed, blocks

BLOCK = 32
# Settings of PSMVAE that change how draws are made are beside its default of no mechanism.
CASES = {name: make for name, make in VARIANTS.items() if not name.startswith("PSMVAE")} | {
    "PSMVAE": partial(IMPUTERS["PSMVAE"], mask_model="latent"),
    "PSMVAE members": partial(VARIANTS["PSMVAE members"], mask_model="latent", draws="model"),
    "PSMVAE self": partial(VARIANTS["PSMVAE self"], draws="model"),
    "MICE self": partial(IMPUTERS["MICE"], mask_model="self"),
    "PSMVAE own value, model draws": partial(IMPUTERS["PSMVAE"], mask_model="self", draws="model"),
    "bounds": partial(
        IMPUTERS["PSMVAE"], mask_model="none", draws="model", bounds={"z": (-2.8, 2.8)}
    ),
}


@pytest.fixture(scope="module")
def table():
    """100 rows with columns of several kinds, that is three whole blocks and a part of one."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    frame = pd.DataFrame(
        {
            "x": x,
            "y": x + 0.3 * rng.normal(size=100),
            "n": rng.poisson(np.exp(x / 2), 100).astype(float),
            "c": pd.Categorical(np.where(x > 0, "high", rng.choice(["low", "mid"], 100))),
            "z": rng.normal(size=100),
        }
    )
    missing = rng.random(frame.shape) < 0.25
    missing[:, 1] |= x > 1.2
    return frame.mask(missing)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setitem(BLOCK_ROWS, "cpu", BLOCK)


def in_batches(imputer, table, size, n=None, start=0):
    engine = BatchImputer(imputer, n, seed=imputer._draw_seed(None), start=start)
    parts = [table.iloc[at : at + size] for at in range(0, len(table), size)]
    found = [tables for _, tables in engine((k, part) for k, part in enumerate(parts))]
    assert [len(tables[0]) for tables in found] == [len(part) for part in parts]
    return [pd.concat(tables) for tables in zip(*found, strict=True)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "name",
    # it takes longer than any other of them
    [pytest.param(name, marks=pytest.mark.slow if name == "MICE self" else ()) for name in CASES],
)
def test_batches_give_the_values_of_the_whole_table(name, table):
    imputer = CASES[name]().fit(table)
    single, draws = imputer.transform(table), imputer.sample(table, n=3)
    assert not any(one.isna().any(axis=None) for one in (single, *draws))
    for size in (7, 100):
        pd.testing.assert_frame_equal(in_batches(imputer, table, size)[0], single, check_exact=True)
        for own, drawn in zip(in_batches(imputer, table, size, n=3), draws, strict=True):
            pd.testing.assert_frame_equal(own, drawn, check_exact=True)
    # a part that begins with a block needs no rows before it
    rest = table.iloc[2 * BLOCK :]
    for own, drawn in zip(in_batches(imputer, rest, 20, n=3, start=2 * BLOCK), draws, strict=True):
        pd.testing.assert_frame_equal(own, drawn.iloc[2 * BLOCK :], check_exact=True)


def test_blocks_have_different_noise(table):
    """The same rows in two blocks have different draws."""
    imputer = IMPUTERS["Mean"]().fit(table)
    twice = pd.concat([table.iloc[:BLOCK]] * 2)
    drawn = imputer.sample(twice, n=1)[0]["x"].to_numpy()
    missing = twice["x"].isna().to_numpy()[:BLOCK]
    assert (drawn[:BLOCK][missing] != drawn[BLOCK:][missing]).all()


def test_parameters_are_drawn_once_for_a_table():
    """The means of blocks share the drawn mean of their table: draws vary more than blocks."""
    x = np.random.default_rng(0).normal(size=(10, 1))
    imputer = IMPUTERS["Mean"]().fit(np.column_stack([x, x]))
    rows = np.column_stack([np.full(40 * BLOCK, np.nan), np.zeros(40 * BLOCK)])
    drawn = np.stack([one[:, 0] for one in imputer.sample(rows, n=100)])
    # Var of the mean of a table: (1/10) E[σ²] of the drawn mean, and little from 1,280 cells
    sd = x.std() * np.sqrt(10 / 7)
    assert drawn.mean(1).std() == pytest.approx(sd / np.sqrt(10), rel=0.25)


def test_a_block_has_its_own_seed():
    seeds = {BlockSeed(3, block).cells for block in range(1000)}
    assert len(seeds) == 1000
    assert BlockSeed(3).cells == 3
    assert BlockSeed(3, 1).again().cells != BlockSeed(3, 1).cells
    assert [(k, rows.start, rows.stop) for k, rows in blocks(5, 2)] == [
        (0, 0, 2),
        (1, 2, 4),
        (2, 4, 5),
    ]


def test_a_stream_must_begin_with_a_block(table):
    imputer = IMPUTERS["Mean"]().fit(table)
    with pytest.raises(ValueError, match=f"multiple of {BLOCK}, got 5"):
        BatchImputer(imputer, start=5)
