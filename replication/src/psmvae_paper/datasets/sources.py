"""Readers of the published files: each returns the table as numbers and, if any, a target."""

from __future__ import annotations

import gzip
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    Read = tuple[NDArray[np.float64], NDArray[Any] | None]

# The columns of adult.data in order. "education" repeats "education_num" as text; it and the
# country are not columns of the table.
_ADULT = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)
_ADULT_LEFT_OUT = ("education", "native_country", "income")
# The number of a category is its position here, from 1.
_ADULT_LEVELS = {
    "workclass": (
        "Private",
        "Self-emp-not-inc",
        "Self-emp-inc",
        "Federal-gov",
        "Local-gov",
        "State-gov",
        "Without-pay",
    ),
    "marital_status": (
        "Married-civ-spouse",
        "Divorced",
        "Never-married",
        "Separated",
        "Widowed",
        "Married-spouse-absent",
        "Married-AF-spouse",
    ),
    "occupation": (
        "Tech-support",
        "Craft-repair",
        "Other-service",
        "Sales",
        "Exec-managerial",
        "Prof-specialty",
        "Handlers-cleaners",
        "Machine-op-inspct",
        "Adm-clerical",
        "Farming-fishing",
        "Transport-moving",
        "Priv-house-serv",
        "Protective-serv",
        "Armed-Forces",
    ),
    "relationship": (
        "Wife",
        "Own-child",
        "Husband",
        "Not-in-family",
        "Other-relative",
        "Unmarried",
    ),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "sex": ("Male", "Female"),
}
# For the seven people who never worked both workclass and occupation are missing.
_ADULT_MISSING = ("?", "Never-worked")

_IDX_BYTES = 0x08


def read_adult(paths: Sequence[Path]) -> Read:
    """Read adult.data; the target is the income, "<=50K" or ">50K"."""
    table = _read_csv(
        paths[0],
        len(_ADULT),
        header=None,
        skipinitialspace=True,
        na_values=list(_ADULT_MISSING),
        keep_default_na=False,
    )
    table.columns = list(_ADULT)
    for name, levels in _ADULT_LEVELS.items():
        unknown = set(table[name].dropna()) - set(levels)
        if unknown:
            message = f"column {name!r} has unknown categories {sorted(map(str, unknown))}"
            raise ValueError(message)
        table[name] = table[name].map({level: code for code, level in enumerate(levels, start=1)})
    return _floats(table.drop(columns=list(_ADULT_LEFT_OUT))), table["income"].to_numpy(object)


def read_letter(paths: Sequence[Path]) -> Read:
    """Read letter-recognition.data; the target is the letter, the first column."""
    table = _read_csv(paths[0], 17, header=None)
    return _floats(table.iloc[:, 1:]), table.iloc[:, 0].to_numpy(object)


def read_wine(paths: Sequence[Path]) -> Read:
    """Read the red and the white wines, white ones first; quality and colour are columns."""
    import pandas as pd

    red, white = (_read_csv(path, 12, sep=";") for path in paths)
    red["colour"], white["colour"] = 1, 2
    return _floats(pd.concat([white, red], ignore_index=True)), None


def read_credit(paths: Sequence[Path]) -> Read:
    """Read UCI's CSV: a running number, 23 columns, and whether the client defaulted."""
    table = _read_csv(paths[0], 25)
    return _floats(table.iloc[:, 1:-1]), table.iloc[:, -1].to_numpy(np.int64)


def read_spam(paths: Sequence[Path]) -> Read:
    """Read spambase.data; the target, whether a message is spam, is the last column."""
    table = _read_csv(paths[0], 58, header=None)
    return _floats(table.iloc[:, :-1]), table.iloc[:, -1].to_numpy(np.int64)


def read_mnist(paths: Sequence[Path]) -> Read:
    """Read images and labels in IDX format; a row is an image, its pixels line by line."""
    images, labels = (_read_idx(path) for path in paths)
    if images.ndim != 3 or labels.ndim != 1:
        message = (
            f"expected images and labels, found arrays of shape {images.shape}, {labels.shape}"
        )
        raise ValueError(message)
    return images.reshape(len(images), -1).astype(np.float64), labels.astype(np.int64)


def _read_csv(path: Path, width: int, **options: Any) -> pd.DataFrame:
    import pandas as pd

    table: pd.DataFrame = pd.read_csv(path, **options)
    # a download may be an error page
    if table.shape[1] != width:
        message = f"expected {width} columns in the file, found {table.shape[1]}"
        raise ValueError(message)
    return table


def _floats(table: pd.DataFrame) -> NDArray[np.float64]:
    return table.to_numpy(dtype=np.float64, na_value=np.nan)


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an IDX file: two zeros, type, number of axes, four bytes for each size, content."""
    content = gzip.decompress(path.read_bytes())
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _IDX_BYTES:
        message = f"{path.name} does not begin like an IDX file of bytes"
        raise ValueError(message)
    start = 4 + 4 * content[3]
    shape = tuple(np.frombuffer(content[4:start], dtype=">u4").tolist())
    if len(content) - start != math.prod(shape):
        message = f"{path.name} holds {len(content) - start} bytes where its shape is {shape}"
        raise ValueError(message)
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
