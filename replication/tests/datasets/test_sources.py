"""Readers of the published files, on small made-up files."""

import gzip
import struct
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pandas")

from psmvae_paper.datasets.catalogue import CATALOGUE
from psmvae_paper.datasets.loading import load_entry

ADULT = """\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, \
2174, 0, 40, United-States, <=50K
54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male, \
0, 0, 60, South, >50K
18, Never-worked, 206359, 10th, 6, Never-married, ?, Own-child, White, Female, 0, 0, 40, ?, <=50K

"""
WINE = "fixed acidity;volatile acidity;c;d;e;f;g;h;i;j;k;quality\n"


@pytest.fixture
def read(tmp_path):
    """Load a table of the catalogue, of other size, from the contents of its publisher's files."""

    def load(name, *contents, **changes):
        entry = replace(CATALOGUE[name], **changes)
        for source, content in zip(entry.sources, contents, strict=True):
            data = content if isinstance(content, bytes) else content.encode()
            (tmp_path / source.file).write_bytes(data)
        return load_entry(entry, tmp_path)

    return load


def idx(array):
    """An array of bytes in IDX format, compressed."""
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return gzip.compress(head + array.tobytes())


def test_read_adult(read):
    data = read("adult", ADULT, n_rows=3, n_missing=4)
    nan = np.nan
    # the first row is that of the table as it is usually given, with its categories as numbers
    expected = [
        [39, 6, 77516, 13, 3, 9, 4, 1, 1, 2174, 0, 40],
        [54, nan, 180211, 10, 1, nan, 3, 2, 1, 0, 0, 60],
        [18, nan, 206359, 6, 3, nan, 2, 1, 2, 0, 0, 40],
    ]
    np.testing.assert_array_equal(data.X.to_numpy(), expected)
    assert data.y.tolist() == ["<=50K", ">50K", "<=50K"]


def test_adult_with_unknown_category_is_an_error(read):
    with pytest.raises(ValueError, match=r"adult.data cannot be read.*'race'.*'Green'"):
        read("adult", ADULT.replace("White", "Green"), n_rows=3)


def test_read_letter(read):
    values = np.arange(32).reshape(2, 16) % 16
    lines = [
        f"{letter},{','.join(map(str, row))}" for letter, row in zip("TI", values, strict=True)
    ]
    data = read("letter", "\n".join(lines), n_rows=2)
    np.testing.assert_array_equal(data.X.to_numpy(), values)
    assert data.X.columns[0] == "x_box"
    assert data.y.tolist() == ["T", "I"]


def test_read_wine(read):
    red, white = "7.4;" + "1;" * 10 + "5\n", "7;" + "2;" * 10 + "6\n8;" + "3;" * 10 + "9\n"
    data = read("wine", WINE + red, WINE + white, n_rows=3)
    assert data.X["fixed_acidity"].tolist() == [7, 8, 7.4]
    assert data.X["quality"].tolist() == [6, 9, 5]
    assert data.y is None
    assert data.X["colour"].tolist() == [2, 2, 1]


def test_read_credit(read):
    head = ",".join(["ID", *(f"X{j}" for j in range(1, 24)), "Y"])
    rows = ["1," + ",".join(map(str, range(23))) + ",1", "2," + ",".join(["-2"] * 23) + ",0"]
    data = read("credit", "\n".join([head, *rows]), n_rows=2)
    np.testing.assert_array_equal(data.X.to_numpy(), [np.arange(23.0), np.full(23, -2.0)])
    assert data.X.columns[[0, 5, 6, -1]].tolist() == ["limit_bal", "pay_0", "pay_2", "pay_amt6"]
    assert data.y.tolist() == [1, 0]


def test_read_spam(read):
    data = read("spam", ",".join(map(str, range(57))) + ",1\n", n_rows=1)
    np.testing.assert_array_equal(data.X.to_numpy(), [np.arange(57.0)])
    assert data.y.tolist() == [1]


def test_read_mnist(read):
    images = np.random.default_rng(0).integers(0, 256, (3, 28, 28), dtype=np.uint8)
    data = read("mnist", idx(images), idx(np.array([7, 2, 1], np.uint8)), n_rows=3)
    np.testing.assert_array_equal(data.X["pixel_3_5"], images[:, 3, 5])
    assert data.y.tolist() == [7, 2, 1]


def test_mnist_with_too_few_labels_is_an_error(read):
    images = np.zeros((3, 28, 28), np.uint8)
    with pytest.raises(ValueError, match="expected 3 targets, found 2 in mnist-t10k-images"):
        read("mnist", idx(images), idx(np.zeros(2, np.uint8)), n_rows=3)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no gzip", "cannot be read"),
        (idx(np.zeros((3, 28, 28), np.uint8))[:-12], "cannot be read"),
        (gzip.compress(b"<html>"), "does not begin like an IDX file"),
        (gzip.compress(b"\0\0\x08\x01\0\0\0\x09abc"), "holds 3 bytes where its shape is"),
        (idx(np.zeros(3, np.uint8)), "expected images and labels"),
    ],
    # the bytes would name the second at which they were compressed
    ids=["plain", "cut", "page", "short", "labels"],
)
def test_broken_idx_file_is_an_error(read, content, reason):
    with pytest.raises(ValueError, match=reason):
        read("mnist", content, idx(np.zeros(3, np.uint8)), n_rows=3)


@pytest.mark.parametrize("name", ["adult", "letter", "wine", "credit", "spam"])
@pytest.mark.parametrize("content", ["", "<html>\n<p>moved</p>\n</html>\n", "1,2\n3,4\n"])
def test_wrong_file_is_an_error(read, name, content):
    with pytest.raises(ValueError, match="cannot be read"):
        read(name, *[content] * len(CATALOGUE[name].sources))


def test_truncated_file_is_an_error(read):
    with pytest.raises(ValueError, match=r"expected 4601 rows .* found 1 rows .* in spambase.data"):
        read("spam", ",".join(map(str, range(57))) + ",1\n")
