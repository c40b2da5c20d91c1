"""Tables by name and from files, with nothing downloaded."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

pd = pytest.importorskip("pandas")

from psmvae import MeanImputer  # noqa: E402
from psmvae.kinds import KINDS  # noqa: E402
from psmvae.simulate import simulated_trial  # noqa: E402
from psmvae.table import TableError  # noqa: E402
from psmvae_paper.datasets import Dataset, load, names  # noqa: E402
from psmvae_paper.datasets.catalogue import CATALOGUE  # noqa: E402
from psmvae_paper.datasets.home import VARIABLE, data_folder  # noqa: E402
from psmvae_paper.datasets.loading import load_entry  # noqa: E402

SHIPPED = {"breast": load_breast_cancer, "digits": load_digits}
# rows and columns, as their publishers give them
SHAPES = {
    "adult": (32_561, 12),
    "breast": (569, 30),
    "credit": (30_000, 23),
    "letter": (20_000, 16),
    "spam": (4_601, 57),
    "wine": (6_497, 13),
    "mnist": (10_000, 784),
    "digits": (1_797, 64),
}


class TestCatalogue:
    def test_names(self):
        assert names() == (*SHAPES, "trial")

    @pytest.mark.parametrize("name", SHAPES)
    def test_entry_has_expected_shape_and_valid_kinds(self, name):
        entry = CATALOGUE[name]
        assert entry.shape == SHAPES[name]
        assert set(entry.kinds.values()) <= set(KINDS)
        assert entry.description.endswith(".")
        assert bool(entry.sources) == (name not in SHIPPED)
        assert all(source.url.startswith("https://") for source in entry.sources)

    @pytest.mark.parametrize("name", ["iris", "", "Adult", "breast.xlsx"])
    def test_unknown_name_error_lists_known_names(self, name):
        with pytest.raises(ValueError, match="unknown data set") as caught:
            load(name)
        assert all(repr(known) in str(caught.value) for known in names())


class TestNothingToDownload:
    @pytest.mark.parametrize("name", SHIPPED)
    def test_tables_of_scikit_learn_need_no_file(self, name):
        data, peer = load(name), SHIPPED[name]()
        np.testing.assert_array_equal(data.X.to_numpy(), peer.data)
        np.testing.assert_array_equal(data.y, peer.target)
        assert list(data.kinds) == list(data.X.columns)
        assert repr(data) == f"Dataset(name={name!r}, shape={peer.data.shape})"

    def test_column_order_of_breast_matches_scikit_learn(self):
        said = [
            f"se {name.removesuffix(' error')}" if name.endswith(" error") else name
            for name in load_breast_cancer().feature_names
        ]
        assert [name.replace("_", " ") for name in load("breast").X.columns] == said

    def test_trial_is_simulated(self):
        data, trial = load("trial"), simulated_trial(1000, rng=np.random.default_rng(0))
        np.testing.assert_array_equal(data.X.notna(), trial.m)
        for name, truth in trial.complete.items():
            seen = trial.observed(name)
            assert data.X[name][seen].tolist() == truth[seen].tolist()
        assert data.y is None

    # some pixels of digits are constant
    @pytest.mark.filterwarnings("ignore:columns with one distinct observed value")
    @pytest.mark.parametrize("name", [*SHIPPED, "trial"])
    def test_imputer_accepts_table_and_kinds(self, name):
        data = load(name)
        incomplete = data.X.mask(np.random.default_rng(0).random(data.X.shape) < 0.1)
        filled = MeanImputer(kinds=data.kinds).fit_transform(incomplete)
        assert not filled.isna().any(axis=None)
        assert filled.shape == data.X.shape


class TestFolder:
    def test_data_folder_precedence(self, monkeypatch):
        assert data_folder().name == "psmvae"
        assert "user" in data_folder().parts
        monkeypatch.setenv(VARIABLE, "")
        assert data_folder().name == "psmvae"
        monkeypatch.setenv(VARIABLE, "named")
        assert data_folder() == Path("named")
        assert data_folder("given") == Path("given")
        assert data_folder("~/given") == Path.home() / "given"

    @pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="another cache there")
    def test_default_data_folder_is_in_cache(self, monkeypatch):
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert data_folder() == Path.home() / ".cache" / "psmvae"

    @pytest.mark.parametrize("ending", ["csv", "csv.gz"])
    def test_prepared_file_is_read_with_missing_cells(self, monkeypatch, tmp_path, ending):
        entry = replace(CATALOGUE["wine"], n_rows=3, n_missing=1)
        table = pd.DataFrame(np.arange(39.0).reshape(3, 13), columns=entry.columns)
        table.iloc[1, 2] = np.nan
        path = tmp_path / f"wine.{ending}"
        table.to_csv(path, index=False)
        data = load_entry(entry, tmp_path)
        pd.testing.assert_frame_equal(data.X, table)
        assert data.y is None
        assert data.kinds["quality"] == "ordinal"
        for value, message in ((np.nan, "expected 1 missing cells, found 2"), (np.inf, "infinity")):
            table.iloc[2, 12] = value
            table.to_csv(path, index=False)
            with pytest.raises(ValueError, match=message):
                load_entry(entry, tmp_path)

    def test_missing_file_error_says_how_to_get_it(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="download=True") as caught:
            load("letter", tmp_path)
        text = str(caught.value)
        assert "letter.csv.gz" in text
        assert VARIABLE in text
        assert CATALOGUE["letter"].sources[0].url in text
        assert str(tmp_path / "letter-recognition.data") in text

    def test_wrong_shape_is_an_error(self, tmp_path):
        columns = ",".join(CATALOGUE["letter"].columns)
        (tmp_path / "letter.csv").write_text(f"{columns}\n{'1,' * 15}1\n")
        with pytest.raises(
            ValueError, match="expected 20000 rows and 16 columns, found 1 rows and 16 columns in"
        ):
            load("letter", tmp_path)

    def test_wrong_column_is_an_error(self, tmp_path):
        entry = replace(CATALOGUE["letter"], n_rows=1)
        columns = ",".join(["x_box", "height", *entry.columns[2:]])
        (tmp_path / "letter.csv").write_text(f"{columns}\n{'1,' * 15}1\n")
        with pytest.raises(ValueError, match="'y_box', found 'height'"):
            load_entry(entry, tmp_path)

    @pytest.mark.parametrize("content", [b"", b"a,b\n1,x\n", b"\x1f\x8bnothing"])
    @pytest.mark.parametrize("ending", ["csv", "csv.gz"])
    def test_non_numeric_file_is_an_error(self, tmp_path, content, ending):
        path = tmp_path / f"letter.{ending}"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"letter.{ending}: not a table of numbers"):
            load("letter", tmp_path)

    def test_prepared_file_of_shipped_table_keeps_target_for_same_rows(self, tmp_path):
        shipped = load("breast")
        shipped.X.to_csv(tmp_path / "breast.csv.gz", index=False)
        np.testing.assert_array_equal(load("breast", tmp_path).y, shipped.y)
        shipped.X[::-1].to_csv(tmp_path / "breast.csv.gz", index=False)
        assert load("breast", tmp_path).y is None


class TestOwnFile:
    @pytest.mark.parametrize("kind", [str, Path])
    def test_load_csv_file(self, tmp_path, kind):
        pytest.importorskip("pyarrow")
        path = tmp_path / "my.people.csv"
        path.write_text("age,sex\n31,f\n,NA\n")
        data = load(kind(path))
        assert isinstance(data, Dataset)
        assert (data.name, data.y, data.kinds) == ("my.people", None, {})
        assert data.X["age"].isna().tolist() == data.X["sex"].isna().tolist() == [False, True]
        assert data.X["age"][0] == 31

    def test_load_parquet_file(self, tmp_path):
        pytest.importorskip("pyarrow")
        table = pd.DataFrame({"a": [1.5, np.nan], "b": ["x", "y"]})
        table.to_parquet(tmp_path / "t.parquet")
        pd.testing.assert_frame_equal(load(tmp_path / "t.parquet").X, table)

    def test_path_object_is_not_a_name(self, tmp_path):
        for path in (tmp_path / "adult", str(tmp_path / "adult.csv")):
            with pytest.raises(TableError, match="there is no such file"):
                load(path)


class TestImports:
    def test_datasets_import_does_not_load_pandas(self, python):
        heavy = ["torch", "sklearn", "pandas", "polars", "pyarrow"]
        code = f"import json, sys, psmvae_paper.datasets as d; d.names()\nfound = {heavy}\n"
        code += "print(json.dumps([name for name in found if name in sys.modules]))"
        assert json.loads(python(code)) == []

    def test_missing_pandas_error_says_what_to_install(self, python):
        code = (
            "import sys; sys.modules['pandas'] = None\n"
            "from psmvae_paper.datasets import load\n"
            "try: load('digits')\n"
            "except ImportError as error: print(error)"
        )
        assert "pip install 'psmvae[pandas]'" in python(code)
