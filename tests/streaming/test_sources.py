"""Fitting to and imputing sources that need not fit into memory."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from psmvae import MeanImputer
from psmvae.imputers.reference import DriftWarning
from psmvae.sources import is_source, open_source
from psmvae.sources.sample import keys, sample_rows
from streaming.conftest import split


def sources(table, folder):
    """The table as each kind of source, with the function that joins its batches."""
    frame = pl.from_arrow(table)
    join = pa.concat_tables
    return {
        "folder": (str(folder), join),
        "paths": ([folder / f"part-{k}.parquet" for k in (2, 0, 1)], join),
        "pattern": (folder / "*.parquet", join),
        "dataset": (ds.dataset(folder), join),
        "dataset of paths": (
            ds.dataset([str(folder / f"part-{k}.parquet") for k in (2, 1, 0)]),
            join,
        ),
        "dataset in memory": (ds.dataset(table), join),
        "lazy": (frame.lazy(), pl.concat),
        "pandas": (iter([part.to_pandas() for part in split(table)]), pd.concat),
        "polars": ((frame.slice(k, 9) for k in range(0, 300, 9)), pl.concat),
        "list of frames": (split(table), join),
    }


NAMES = [
    "folder", "paths", "pattern", "dataset", "dataset of paths", "dataset in memory", "lazy",
    "pandas", "polars", "list of frames",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_each_source_gives_the_fit_and_the_values_in_memory(name, table, folder):
    (source, _), again = sources(table, folder)[name], sources(table, folder)[name]
    assert is_source(source)
    imputer = MeanImputer(random_state=0).fit(source)
    expected = MeanImputer(random_state=0).fit(table)
    assert imputer.n_rows_ == 300
    np.testing.assert_array_equal(imputer.mean_, expected.mean_)
    batches, join = list(imputer.transform_batches(again[0])), again[1]
    found = join(batches)
    if not isinstance(found, pa.Table):
        found = found.to_arrow() if isinstance(found, pl.DataFrame) else pa.table(found)
    for name in table.column_names:
        assert found[name].to_pylist() == expected.transform(table)[name].to_pylist()


def test_draws_in_batches_are_those_in_memory(mice, table, folder):
    expected = mice.sample(table, n=3, random_state=4)
    found = list(mice.sample_batches(folder, n=3, random_state=4))
    for k in range(3):
        assert pa.concat_tables([batch[k] for batch in found]).equals(expected[k])


def test_tables_in_memory_are_no_sources(table):
    for X in (table, table.to_pandas(), pl.from_arrow(table), np.zeros((2, 2)), [[1.0, 2.0]]):
        assert not is_source(X)
    assert len(list(open_source(table).frames())) == 1


def test_transform_needs_a_table_in_memory(mean, table):
    with pytest.raises(TypeError, match="transform_batches"):
        mean.transform(pl.from_arrow(table).lazy())


def test_files_of_one_table_and_arrow_streams(tmp_path, table):
    with (
        pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table, max_chunksize=37)
    found = pa.concat_tables([frame for frame, _ in open_source(tmp_path).frames()])
    assert found.equals(table)


class TestSample:
    def test_it_does_not_depend_on_batches_or_the_order_of_files(self, table, folder):
        whole = sample_rows(open_source(table), 40, seed=3)
        for size in (1, 17, 300):
            parts = [table.slice(at, size) for at in range(0, 300, size)]
            assert sample_rows(open_source(parts), 40, seed=3).equals(whole)
        files = [folder / f"part-{k}.parquet" for k in (1, 2, 0)]
        assert sample_rows(open_source(files), 40, seed=3).equals(whole)
        assert not sample_rows(open_source(table), 40, seed=4).equals(whole)

    def test_it_is_uniform(self):
        """Each of 50 rows is in about a fifth of 2,000 samples of 10 rows."""
        position = np.arange(50)
        counts = np.zeros(50)
        for seed in range(2000):
            counts[np.argsort(keys(position, seed))[:10]] += 1
        # χ² with 49 degrees of freedom, scaled since rows are drawn without replacement
        statistic = ((counts - 400) ** 2).sum() / (2000 * 0.2 * 0.8) * 49 / 50
        assert 22 < statistic < 86

    def test_rows_stay_in_order_and_rare_levels_and_ranges_are_kept(self):
        n = 5000
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {
                "row": np.arange(n) / 2,
                "x": rng.normal(size=n),
                "level": np.where(np.arange(n) == 4321, "rare", "usual"),
                "code": np.where(np.arange(n) == 77, 3, np.arange(n) % 3),
            }
        )
        parts = [frame.iloc[at : at + 700] for at in range(0, n, 700)]
        sampled = sample_rows(open_source(iter(parts)), 200, seed=0)
        assert (sampled["row"].diff().iloc[1:] > 0).all()
        assert 200 <= len(sampled) <= 210
        assert set(sampled["level"]) == {"rare", "usual"}
        assert set(sampled["code"]) == {0, 1, 2, 3}
        for name in ("row", "x"):
            assert sampled[name].min() == frame[name].min()
            assert sampled[name].max() == frame[name].max()
        # and no more rows than needed
        again = sample_rows(open_source(iter(parts)), n, seed=0)
        pd.testing.assert_frame_equal(again, frame)

    def test_declared_levels_of_numbers_are_kept(self):
        frame = pd.DataFrame({"code": np.arange(3000) % 500, "x": np.arange(3000) / 7})
        sampled = sample_rows(open_source(iter([frame])), 100, seed=0, levels=["code"])
        assert sampled["code"].nunique() == 500

    def test_a_fit_to_a_sample(self, table, folder):
        imputer = MeanImputer(random_state=0).fit(folder, sample_rows=100)
        assert 100 <= imputer.n_rows_ < 110
        again = MeanImputer(random_state=0).fit(iter(split(table)), sample_rows=100)
        np.testing.assert_array_equal(imputer.mean_, again.mean_)
        assert imputer.schema_.columns[3].levels == ("high", "low", "mid")

    def test_other_columns_and_categories(self, table):
        frames = [part.to_pandas() for part in split(table)]
        frames[1] = frames[1].rename(columns={"x": "y"})
        with pytest.raises(ValueError, match=r"frame 2 has other columns .* absent 'x'"):
            MeanImputer().fit(iter(frames))
        one = pd.DataFrame({"c": pd.Categorical(["a", "b"])})
        other = pd.DataFrame({"c": pd.Categorical(["a", "c"])})
        with pytest.raises(ValueError, match="frame 2: column 'c' has the categories 'a', 'c'"):
            MeanImputer().fit(iter([one, other]))

    @pytest.mark.parametrize("make", [pl.DataFrame, pa.table, pd.DataFrame])
    def test_integers_in_one_frame_and_floats_in_another(self, make):
        frames = [{"x": [1, 2, 3]}, {"x": [0.5, None, 2.5]}, {"x": [None, None, None]}]
        for order in (frames, frames[::-1]):
            imputer = MeanImputer().fit(iter([make(one) for one in order]))
            column = imputer.schema_.columns[0]
            assert (column.kind, column.dtype, column.n_observed) == ("real", "Float64", 5)

    @pytest.mark.parametrize("make", [pl.DataFrame, pa.table, pd.DataFrame])
    def test_numbers_in_one_frame_and_strings_in_another(self, make):
        frames = [make({"x": [1, 2]}), make({"x": [3, 4]}), make({"x": ["a", "b"]})]
        with pytest.raises(ValueError, match="frame 3: column 'x' holds strings, but numbers in f"):
            MeanImputer().fit(iter(frames))

    def test_types_that_no_type_holds(self):
        frames = [pa.table({"x": [1, 2]}), pa.table({"x": [True, False]})]
        with pytest.raises(ValueError, match="frame 2: the types of columns differ"):
            MeanImputer().fit(iter(frames))

    def test_no_rows(self):
        with pytest.raises(ValueError, match="0 sample"):
            MeanImputer().fit(iter([]))
        with pytest.raises(ValueError, match="sample_rows"):
            MeanImputer().fit(iter([]), sample_rows=0)


class TestDrift:
    def test_columns_that_differ_are_reported(self, mean, table):
        rng = np.random.default_rng(1)
        frame = table.to_pandas()
        moved = frame.assign(
            x=frame["x"] + 2, label=np.where(rng.random(300) < 0.9, "mid", "low"), flag=None
        )
        moved["flag"] = moved["flag"].astype("boolean")
        with pytest.warns(DriftWarning, match="x: population stability index") as caught:
            list(mean.transform_batches(iter([moved])))
        found = {one.column: one for one in caught[0].message.found}
        assert set(found) == {"x", "label", "flag"}
        assert found["flag"].missing_rate == 1.0
        assert 0.15 < found["flag"].training_missing_rate < 0.25

    def test_samples_of_the_same_distribution_are_not(self, mean, table):
        for at in range(3):
            list(mean.transform_batches(iter([table.take(list(range(at, 300, 3)))])))

    def test_the_index_is_that_of_its_definition(self):
        from psmvae.imputers.reference import psi

        assert psi(np.array([0.5, 0.5]), np.array([0.2, 0.8])) == pytest.approx(
            0.3 * np.log(2.5) - 0.3 * np.log(0.625)
        )


def test_the_place_of_an_error(mean, table, folder):
    labels = split(table)[2]["label"].to_pylist()
    labels[100] = "new"
    pq.write_table(
        split(table)[2].set_column(3, "label", pa.array(labels)), folder / "part-2.parquet"
    )
    with pytest.raises(ValueError, match="'new'") as caught:
        list(mean.transform_batches(folder))
    assert "part-2.parquet, row group 0" in caught.value.__notes__[0]
