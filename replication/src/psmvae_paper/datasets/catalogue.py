"""The catalogue of data sets: columns, shapes, kinds and sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from psmvae_paper.datasets.sources import (
    read_adult,
    read_credit,
    read_letter,
    read_mnist,
    read_spam,
    read_wine,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    Read = tuple[NDArray[np.float64], NDArray[Any] | None]

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
_UCI_LICENCE = "UCI Machine Learning Repository, CC BY 4.0."


class Source(NamedTuple):
    """A published file: its address, and its name in the data folder."""

    url: str
    file: str


@dataclass(frozen=True)
class Entry:
    """A data set of the catalogue.

    Parameters
    ----------
    name, description : str
        As for `Dataset`.
    n_rows : int
        The number of rows.
    kinds : dict of str to str
        The kind of each column, in the order of the columns.
    read : callable
        Reads the files of `sources` and returns values and target.
    sources : tuple of Source
        The published files; empty for a table of scikit-learn.
    n_missing : int
        The number of natively missing cells.

    Examples
    --------
    >>> CATALOGUE["wine"].shape
    (6497, 13)
    """

    name: str
    description: str
    n_rows: int
    kinds: dict[str, str]
    read: Callable[[Sequence[Path]], Read]
    sources: tuple[Source, ...] = ()
    n_missing: int = 0

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.kinds)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_rows, len(self.kinds)


def _all(kind: str, names: Sequence[str]) -> dict[str, str]:
    return dict.fromkeys(names, kind)


def _numbered(prefix: str, numbers: Sequence[int]) -> list[str]:
    return [f"{prefix}{number}" for number in numbers]


def _pixels(side: int) -> list[str]:
    return [f"pixel_{row}_{column}" for row in range(side) for column in range(side)]


def _breast(_: Sequence[Path]) -> Read:
    from sklearn.datasets import load_breast_cancer

    values, target = load_breast_cancer(return_X_y=True)
    return values, target


def _digits(_: Sequence[Path]) -> Read:
    from sklearn.datasets import load_digits

    values, target = load_digits(return_X_y=True)
    return values, target


_ADULT = {
    "age": "integer",
    "workclass": "categorical",
    "fnlwgt": "integer",
    "education_num": "ordinal",
    "marital_status": "categorical",
    "occupation": "categorical",
    "relationship": "categorical",
    "race": "categorical",
    "sex": "binary",
    "capital_gain": "integer",
    "capital_loss": "integer",
    "hours_per_week": "integer",
}

_LETTER = [
    "x_box",
    "y_box",
    "width",
    "high",
    "onpix",
    "x_bar",
    "y_bar",
    "x2bar",
    "y2bar",
    "xybar",
    "x2ybr",
    "xy2br",
    "x_ege",
    "xegvy",
    "y_ege",
    "yegvx",
]

_WINE = [
    "fixed_acidity",
    "volatile_acidity",
    "citric_acid",
    "residual_sugar",
    "chlorides",
    "free_sulfur_dioxide",
    "total_sulfur_dioxide",
    "density",
    "pH",
    "sulphates",
    "alcohol",
]

_CELL = [
    "radius",
    "texture",
    "perimeter",
    "area",
    "smoothness",
    "compactness",
    "concavity",
    "concave_points",
    "symmetry",
    "fractal_dimension",
]

_CREDIT = {
    "limit_bal": "integer",
    "sex": "binary",
    "education": "categorical",
    "marriage": "categorical",
    "age": "integer",
    **_all("integer", _numbered("pay_", [0, *range(2, 7)])),
    **_all("integer", _numbered("bill_amt", range(1, 7))),
    **_all("integer", _numbered("pay_amt", range(1, 7))),
}

_SPAM = {
    **_all("real", _numbered("word_freq_", range(48))),
    **_all("real", _numbered("char_freq_", range(6))),
    "capital_run_average": "real",
    "capital_run_longest": "integer",
    "capital_run_total": "integer",
}

_ENTRIES = (
    Entry(
        name="adult",
        description=(
            'People of the US census of 1994, the training part of "Adult"; categories are '
            "numbers from 1. 1,843 cells each of workclass and occupation are natively missing; "
            f"the target is the income. {_UCI_LICENCE}"
        ),
        n_rows=32_561,
        kinds=_ADULT,
        sources=(Source(f"{_UCI}/adult/adult.data", "adult.data"),),
        read=read_adult,
        n_missing=2 * 1_843,
    ),
    Entry(
        name="breast",
        description=(
            'Cell nuclei in images of breast masses, "Breast Cancer Wisconsin (Diagnostic)"; the '
            f"target is 0 where the mass is malignant and 1 where it is benign. {_UCI_LICENCE}"
        ),
        n_rows=569,
        kinds=_all("real", [f"{what}_{of}" for what in ("mean", "se", "worst") for of in _CELL]),
        read=_breast,
    ),
    Entry(
        name="credit",
        description=(
            'Holders of credit cards in Taiwan, "Default of Credit Card Clients"; the target is '
            f"1 for those who defaulted in the month after. {_UCI_LICENCE}"
        ),
        n_rows=30_000,
        kinds=_CREDIT,
        sources=(
            Source(
                "https://archive.ics.uci.edu/static/public/350/data.csv",
                "default-of-credit-card-clients.csv",
            ),
        ),
        read=read_credit,
    ),
    Entry(
        name="letter",
        description=(
            "Features of distorted images of printed letters, whole numbers from 0 to 15, "
            f'"Letter Recognition"; the target is the letter. {_UCI_LICENCE}'
        ),
        n_rows=20_000,
        kinds=_all("integer", _LETTER),
        sources=(
            Source(f"{_UCI}/letter-recognition/letter-recognition.data", "letter-recognition.data"),
        ),
        read=read_letter,
    ),
    Entry(
        name="spam",
        description=(
            'How often words and signs occur in e-mails, "Spambase"; the target is 1 for spam. '
            f"{_UCI_LICENCE}"
        ),
        n_rows=4_601,
        kinds=_SPAM,
        sources=(Source(f"{_UCI}/spambase/spambase.data", "spambase.data"),),
        read=read_spam,
    ),
    Entry(
        name="wine",
        description=(
            'Portuguese wines, 4,898 white and then 1,599 red ones, "Wine Quality"; colour is 1 '
            "for red and 2 for white, and quality is a column, so there is no target. "
            f"{_UCI_LICENCE}"
        ),
        n_rows=6_497,
        kinds=_all("real", _WINE) | {"quality": "ordinal", "colour": "binary"},
        sources=(
            Source(f"{_UCI}/wine-quality/winequality-red.csv", "winequality-red.csv"),
            Source(f"{_UCI}/wine-quality/winequality-white.csv", "winequality-white.csv"),
        ),
        read=read_wine,
    ),
    Entry(
        name="mnist",
        description=(
            "The 10,000 test images of handwritten digits of MNIST, 28 x 28 pixels from 0 to 255, "
            "line by line; the target is the digit. LeCun, Cortes, Burges."
        ),
        n_rows=10_000,
        kinds=_all("integer", _pixels(28)),
        sources=tuple(
            Source(f"{_MNIST}/t10k-{part}-ubyte.gz", f"mnist-t10k-{part}-ubyte.gz")
            for part in ("images-idx3", "labels-idx1")
        ),
        read=read_mnist,
    ),
    Entry(
        name="digits",
        description=(
            "Images of handwritten digits, 8 x 8 pixels from 0 to 16, line by line, as they ship "
            f"with scikit-learn; the target is the digit. {_UCI_LICENCE}"
        ),
        n_rows=1_797,
        kinds=_all("integer", _pixels(8)),
        read=_digits,
    ),
)

CATALOGUE = {entry.name: entry for entry in _ENTRIES}
