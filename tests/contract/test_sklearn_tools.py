"""Imputers with clone, Pipeline, ColumnTransformer, GridSearchCV and set_output."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from contract.registry import CLASSES, DEEP, FAMILIES, IMPUTERS
from psmvae import LogisticMask, Network


class TestParameters:
    @pytest.mark.parametrize("name", IMPUTERS)
    def test_a_clone_has_the_same_parameters(self, name):
        settings = {"kinds": {"x0": "real"}}
        if name in DEEP:
            settings["network"] = Network(width=16)
        if name in ("PSMVAE", "GMVAE", "NotMIWAE"):
            settings["mask_model"] = LogisticMask(["x1"])
        imputer = IMPUTERS[name](**settings)
        twin = clone(imputer)
        assert twin is not imputer
        assert repr(twin) == repr(imputer)
        assert twin.get_params() == imputer.get_params()

    @pytest.mark.parametrize("name", FAMILIES)
    def test_a_clone_gives_the_same_result(self, fitted, numbers, name):
        twin = clone(fitted(name)).fit(numbers)
        assert twin.transform(numbers).tobytes() == fitted(name).transform(numbers).tobytes()

    @pytest.mark.parametrize("name", FAMILIES)
    def test_a_clone_is_not_fitted(self, fitted, name):
        assert not [each for each in vars(clone(fitted(name))) if each.endswith("_")]

    @pytest.mark.parametrize("name", CLASSES)
    def test_every_parameter_can_be_read_and_set(self, name):
        imputer = CLASSES[name]()
        for parameter, value in CLASSES[name].paper().get_params().items():
            assert imputer.set_params(**{parameter: value}) is imputer
            assert imputer.get_params()[parameter] == value
        with pytest.raises(ValueError, match="n_set "):
            imputer.set_params(**{"n_set ": 3})

    def test_fit_does_not_change_parameters(self, family, numbers):
        state = np.random.RandomState(3)
        imputer = family(random_state=state)
        before = imputer.get_params()
        imputer.fit(numbers)
        assert imputer.get_params() == before
        assert imputer.random_state is state

    @pytest.mark.parametrize("name", FAMILIES)
    def test_fit_transform_is_fit_then_transform(self, fitted, numbers, name):
        expected = fitted(name).transform(numbers)
        assert IMPUTERS[name]().fit_transform(numbers).tobytes() == expected.tobytes()
        assert IMPUTERS[name]().fit_transform(numbers, None).tobytes() == expected.tobytes()


class TestComposition:
    def test_pipeline(self, family, numbers):
        target = np.arange(len(numbers), dtype=float)
        pipeline = Pipeline(
            [("scale", StandardScaler()), ("impute", family()), ("model", LinearRegression())]
        )
        predicted = pipeline.fit(numbers, target).predict(numbers)
        assert np.isfinite(predicted).all()
        assert clone(pipeline).fit(numbers, target).predict(numbers).tolist() == predicted.tolist()

    def test_pipeline_that_ends_with_an_imputer(self, family, numbers):
        pipeline = make_pipeline(StandardScaler(), family()).fit(numbers)
        assert np.isfinite(pipeline.transform(numbers)).all()
        if hasattr(family(), "score_samples"):
            assert np.isfinite(pipeline.score(numbers))
            assert pipeline.score_samples(numbers).shape == (len(numbers),)
        else:
            assert not hasattr(pipeline, "score")
        names = pipeline.get_feature_names_out(["a", "b", "c", "d"])
        assert names.tolist() == ["a", "b", "c", "d"]

    @pytest.mark.parametrize("container", ["default", "pandas"])
    def test_column_transformer(self, family, mixed, container):
        frame = pd.DataFrame(mixed)
        frame["smoker"] = frame["smoker"].astype("boolean")
        frame["id"] = [f"row {i}" for i in range(len(frame))]
        parts = [
            ("numbers", family(), make_column_selector(dtype_include=np.number)),
            ("words", make_pipeline(family(), OneHotEncoder(sparse_output=False)), ["arm"]),
        ]
        split = ColumnTransformer(parts, remainder="drop").set_output(transform=container)
        out = split.fit_transform(frame)
        assert split.get_feature_names_out().tolist() == [
            "numbers__weight",
            "numbers__visits",
            "words__arm_high",
            "words__arm_low",
            "words__arm_mid",
        ]
        assert out.shape == (len(frame), 5)
        assert not pd.isna(np.asarray(out)).any()
        assert isinstance(out, pd.DataFrame) == (container == "pandas")
        assert split.transform(frame.iloc[3:4]).shape == (1, 5)

    @pytest.mark.parametrize("name", ["VAE"])
    def test_grid_search_over_the_dimension_of_z(self, numbers, name):
        search = GridSearchCV(IMPUTERS[name](), {"n_latent": [1, 2]}, cv=2, error_score="raise")
        search.fit(numbers)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.score(numbers) == search.best_estimator_.score(numbers)

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_grid_search_over_frames(self, quick, mixed, library):
        if library == "pyarrow" and tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7):
            pytest.skip("this scikit-learn cannot split pyarrow tables")
        frames = {
            "pandas": pd.DataFrame(mixed),
            "polars": pl.DataFrame(mixed),
            "pyarrow": pa.table(mixed),
        }
        search = GridSearchCV(
            quick(validation_fraction=0.0), {"n_sets": [1, 2]}, cv=2, error_score="raise"
        )
        search.fit(frames[library])
        assert search.best_params_["n_sets"] in (1, 2)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.transform(frames[library]) is not None
        assert search.score(frames[library]) == search.best_estimator_.score(frames[library])


CONTAINERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.fixture(scope="module", params=["numpy", "objects", "pandas", "polars", "pyarrow"])
def table(request, mixed, numbers):
    """A table in each container."""
    if request.param == "numpy":
        return numbers
    if request.param == "objects":
        return np.array(list(zip(*mixed.values(), strict=True)), dtype=object)
    if request.param == "pandas":
        frame = pd.DataFrame(mixed, index=range(100, 124))
        return frame.astype({"arm": "category", "visits": "Int64", "smoker": "boolean"})
    if request.param == "polars":
        return pl.DataFrame(mixed).with_columns(pl.col("arm").cast(pl.Categorical))
    return pa.table(mixed)


@pytest.fixture(scope="module")
def of_table(table):
    """An imputer fitted to that table; every test sets the output container."""
    return IMPUTERS["Mean"]().fit(table)


def rows(table):
    """The cells as a list of tuples."""
    if isinstance(table, np.ndarray):
        return [tuple(row) for row in table.tolist()]
    if isinstance(table, pa.Table):
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    if isinstance(table, pd.DataFrame):
        return list(zip(*(table[name].tolist() for name in table), strict=True))
    return table.rows()


class TestSetOutput:
    def test_every_family_gives_the_requested_container(self, family, mixed):
        frame = pd.DataFrame(mixed, index=range(100, 124)).astype({"visits": "Int64"})
        imputer = family().fit(frame)
        expected = imputer.transform(frame)
        out = imputer.set_output(transform="polars").transform(frame)
        assert type(out) is pl.DataFrame
        assert list(out.columns) == imputer.get_feature_names_out().tolist() == list(mixed)
        assert rows(out) == rows(expected)
        out = imputer.set_output(transform="pandas").transform(frame)
        pd.testing.assert_frame_equal(out, expected)
        # draws have the container of the input
        assert type(imputer.set_output(transform="polars").sample(frame, n=1)[0]) is pd.DataFrame

    @pytest.mark.parametrize("container", ["default", "pandas", "polars"])
    def test_the_requested_container_has_the_same_cells(self, of_table, table, container):
        wrapped = of_table.set_output(transform="default")
        expected = wrapped.transform(table)
        out = wrapped.set_output(transform=container).transform(table)
        if container == "default":
            assert type(out) is type(table)
            assert rows(out) == rows(expected)
            return
        assert type(out) is CONTAINERS[container]
        assert list(out.columns) == wrapped.get_feature_names_out().tolist()
        assert rows(out) == rows(expected)
        # no column becomes an object column
        objects = [name for name in out.columns if str(out[name].dtype).lower() == "object"]
        # except strings, which pandas 2 stores as objects
        assert all(isinstance(out[name].tolist()[0], str) for name in objects)
        if isinstance(table, pd.DataFrame) and container == "pandas":
            assert out.dtypes.to_dict() == table.dtypes.to_dict()
            assert out.index.equals(table.index)
        assert type(wrapped.set_output(transform="default").transform(table)) is type(table)

    def test_columns_in_another_order(self, mixed):
        names = list(mixed)[::-1]
        reordered = {name: mixed[name] for name in names}
        for make in (pd.DataFrame, pl.DataFrame, pa.table):
            imputer = IMPUTERS["Mean"]().fit(make(mixed))
            for container in CONTAINERS:
                imputer.set_output(transform=container)
                one, other = imputer.transform(make(mixed)), imputer.transform(make(reordered))
                assert list(one.columns) == list(other.columns) == list(mixed)
                assert rows(one) == rows(other)

    def test_the_global_setting(self, fitted, numbers):
        imputer = fitted("Mean")
        with config_context(transform_output="polars"):
            assert isinstance(imputer.transform(numbers), pl.DataFrame)
        assert isinstance(imputer.transform(numbers), np.ndarray)

    def test_an_unknown_container_is_refused(self):
        with pytest.raises(ValueError, match="output config must be in"):
            IMPUTERS["Mean"]().set_output(transform="excel").fit_transform(
                np.array([[1.0], [np.nan]])
            )


class TestNames:
    def test_output_names_are_input_names(self, family, mixed):
        imputer = family().fit(pl.DataFrame(mixed))
        assert imputer.feature_names_in_.tolist() == list(mixed)
        assert imputer.get_feature_names_out().tolist() == list(mixed)
        assert imputer.n_features_in_ == len(mixed)

    @pytest.mark.parametrize("name", FAMILIES)
    def test_an_array_has_numbered_names(self, fitted, name):
        imputer = fitted(name)
        assert not hasattr(imputer, "feature_names_in_")
        assert imputer.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]

    def test_fitted_on_a_frame_and_given_an_array(self, family, numbers):
        frame = pd.DataFrame(numbers, columns=list("abcd"))
        imputer = family().fit(frame)
        with pytest.warns(UserWarning, match="X does not have valid feature names") as caught:
            out = imputer.transform(numbers)
        assert len(caught) == 1
        assert out.tobytes() == imputer.transform(frame).to_numpy().tobytes()

    @pytest.mark.parametrize("name", FAMILIES)
    def test_fitted_on_an_array_and_given_a_frame(self, fitted, numbers, name):
        frame = pd.DataFrame(numbers, columns=list("abcd"))
        imputer = fitted(name)
        with pytest.warns(UserWarning, match="X has feature names, but") as caught:
            out = imputer.transform(frame)
        assert len(caught) == 1
        assert list(out.columns) == list("abcd")
        assert out.to_numpy().tobytes() == imputer.transform(numbers).tobytes()
        with pytest.warns(UserWarning, match="X has feature names, but"):
            assert len(imputer.sample(frame, n=2)) == 2

    def test_integer_labels_are_not_feature_names(self, fitted, numbers):
        frame = pd.DataFrame(numbers)
        expected = fitted("Mean").transform(numbers)
        of_frame = IMPUTERS["Mean"]().fit(frame)
        assert of_frame.transform(frame).to_numpy().tobytes() == expected.tobytes()
        assert of_frame.transform(numbers).tobytes() == expected.tobytes()
        assert fitted("Mean").transform(frame).to_numpy().tobytes() == expected.tobytes()
