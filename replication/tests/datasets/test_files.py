"""The paper's tables themselves, where the folder PSMVAE_DATA_HOME has them."""

import os

import numpy as np
import pytest

pytest.importorskip("pandas")

from psmvae import MeanImputer
from psmvae_paper.datasets import load
from psmvae_paper.datasets.home import VARIABLE

HOME = os.environ.get(VARIABLE)

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not HOME, reason=f"{VARIABLE} is not set"),
]


# the pixels at the edges of mnist are black in all images
@pytest.mark.filterwarnings("ignore:columns with one distinct observed value")
@pytest.mark.parametrize(
    ("name", "shape", "n_missing"),
    [
        ("adult", (32_561, 12), 2 * 1843),
        ("breast", (569, 30), 0),
        ("credit", (30_000, 23), 0),
        ("letter", (20_000, 16), 0),
        ("spam", (4_601, 57), 0),
        ("wine", (6_497, 13), 0),
        ("mnist", (10_000, 784), 0),
    ],
)
def test_published_table_has_expected_shape_and_kinds(monkeypatch, name, shape, n_missing):
    monkeypatch.setenv(VARIABLE, HOME)
    data = load(name)
    assert data.X.shape == shape
    assert int(data.X.isna().sum().sum()) == n_missing
    assert set(map(str, data.X.dtypes)) == {"float64"}
    # the kinds fit the columns, or the imputer would refuse them
    filled = MeanImputer(kinds=data.kinds).fit_transform(data.X)
    assert not filled.isna().any(axis=None)


def test_categories_of_adult_are_numbered_from_one():
    data = load("adult", HOME)
    levels = {"workclass": 7, "marital_status": 7, "occupation": 14, "relationship": 6}
    levels |= {"race": 5, "sex": 2}
    for name, n_levels in levels.items():
        assert sorted(data.X[name].dropna().unique()) == list(range(1, n_levels + 1))
    assert data.X["workclass"].isna().sum() == data.X["occupation"].isna().sum() == 1843


def test_wine_has_white_wines_first():
    colour = load("wine", HOME).X["colour"].to_numpy()
    np.testing.assert_array_equal(colour, np.repeat([2, 1], [4898, 1599]))


def test_breast_equals_table_of_scikit_learn(tmp_path):
    data, shipped = load("breast", HOME), load("breast", tmp_path)
    np.testing.assert_allclose(data.X.to_numpy(), shipped.X.to_numpy())
    np.testing.assert_array_equal(data.y, shipped.y)


def test_mnist_digit_counts():
    data = load("mnist", HOME)
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    np.testing.assert_array_equal(np.bincount(data.y), counts)
    assert (data.X.to_numpy().min(), data.X.to_numpy().max()) == (0, 255)
