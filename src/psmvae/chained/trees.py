"""Trees grown by scikit-learn, stored as arrays.

Model files are safetensors, which hold data only, and a draw needs one tree for each cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

# Pairs of a row and a tree evaluated at once: bounds the memory for long tables.
BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class Trees:
    """The trees of one forest, evaluated for all rows at once, level by level.

    Only inner nodes are stored, those of all trees in one array, a node before its children.
    A child c >= 0 is a node; a child c < 0 is the leaf with value ``value[~c]``. Most leaves of
    a fully grown tree hold one training cell, so the trees share the array of values.

    Node n splits on column ``feature[n]``: values up to ``threshold[n]`` go to ``child[n, 0]``,
    others to ``child[n, 1]``. ``root`` has one node for each tree; ``value`` is ascending.
    """

    feature: Ints
    threshold: NDArray[np.float32]
    child: Ints
    root: Ints
    value: Floats

    @classmethod
    def of(cls, estimators: Sequence[Any], *, leaf_numbers: bool = False) -> Self:
        """Copy fitted trees of scikit-learn with one output, such as those of a forest.

        With ``leaf_numbers`` the values are the numbers of the leaves, counted over all trees.
        """
        feature, threshold, child, root, value = [], [], [], [], []
        n_nodes = n_leaves = 0
        for estimator in estimators:
            tree = estimator.tree_
            inner = tree.children_left >= 0
            leaf = ~inner
            code = np.where(inner, n_nodes + inner.cumsum() - 1, -n_leaves - leaf.cumsum())
            feature.append(tree.feature[inner])
            threshold.append(tree.threshold[inner])
            both = tree.children_left[inner], tree.children_right[inner]
            child.append(code[np.stack(both, axis=1)])
            root.append(code[0])
            n_own = int(leaf.sum())
            numbers = np.arange(n_leaves, n_leaves + n_own, dtype=np.float64)
            value.append(numbers if leaf_numbers else tree.value[leaf, 0, 0])
            n_nodes += int(inner.sum())
            n_leaves += n_own
        values, which = np.unique(np.concatenate(value), return_inverse=True)

        def shared(code: Ints) -> Ints:
            return np.where(code < 0, ~which[~np.minimum(code, -1)], code).astype(np.int32)

        # one byte suffices for most tables, and there are many nodes
        small = np.uint8 if estimators[0].n_features_in_ <= 256 else np.int32
        return cls(
            np.concatenate(feature).astype(small),
            rounded_down(np.concatenate(threshold)),
            shared(np.concatenate(child)),
            shared(np.array(root)),
            values,
        )

    def predict(self, x: Floats) -> Floats:
        """Return the mean over the trees, bit-identical to scikit-learn's with ``n_jobs=1``."""
        total = np.zeros(len(x))
        # summed in the order of the trees, so that a row does not depend on the block size
        for value in self.leaf_values(x):
            total += value
        return total / len(self.root)

    def leaf_values(self, x: Floats) -> Iterator[Floats]:
        """Return the leaf value of every row, one tree after another."""
        n_estimators, rows = len(self.root), max(1, BLOCK // len(self.root))
        found = np.empty((n_estimators, len(x)))
        for start in range(0, len(x), rows):
            part = x[start : start + rows]
            row = np.tile(np.arange(len(part)), n_estimators)
            leaf = self._leaves(part, row, np.repeat(self.root, len(part)))
            found[:, start : start + rows] = self.value[leaf].reshape(n_estimators, len(part))
        yield from found

    def draw(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Return the prediction of one random tree for each row."""
        return self.value[self._leaves(x, np.arange(len(x)), rng.choice(self.root, len(x)))]

    @staticmethod
    def pack(forests: Sequence[Trees]) -> dict[str, NDArray[Any]]:
        """Concatenate forests with the same number of trees; `unpack` is the inverse."""
        names = ("feature", "threshold", "child", "value")
        return {
            **{name: np.concatenate([getattr(f, name) for f in forests]) for name in names},
            "root": np.stack([trees.root for trees in forests]),
            "n_nodes": np.array([len(trees.feature) for trees in forests]),
            "n_values": np.array([len(trees.value) for trees in forests]),
        }

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], n_features: Sequence[int]) -> list[Self]:
        """Return packed forests as views; raise ValueError if they are inconsistent.

        ``n_features`` is the number of columns of each forest.
        """
        counts = {len(arrays[name]) for name in ("n_nodes", "n_values", "root")}
        if counts != {len(n_features)}:
            raise ValueError("The forests of the file are inconsistent.")
        nodes, values = (np.cumsum(arrays[name])[:-1] for name in ("n_nodes", "n_values"))
        split = [np.split(arrays[name], nodes) for name in ("feature", "threshold", "child")]
        parts = (*split, arrays["root"], np.split(arrays["value"], values))
        forests = [cls(*each) for each in zip(*parts, strict=True)]
        for trees, n in zip(forests, n_features, strict=True):
            trees.check(n)
        return forests

    def check(self, n_features: int) -> None:
        """Raise ValueError if the arrays are not trees over ``n_features`` columns."""
        n = len(self.feature)
        codes = np.append(self.child, self.root)
        fits = (
            self.threshold.shape == (n,)
            and self.child.shape == (n, 2)
            and self.root.ndim == self.value.ndim == 1
            and len(self.root) > 0
            and codes.dtype.kind == "i"
            and self.feature.dtype.kind in "iu"
            and bool((codes >= -len(self.value)).all() and (codes < n).all())
            and bool((self.feature < n_features).all() and (self.feature >= 0).all())
        )
        # a child comes after its parent, so every path ends
        onward = fits and (self.child < 0) | (self.child > np.arange(n)[:, None])
        if not np.all(onward):
            raise ValueError("The nodes of a tree are inconsistent.")

    def _leaves(self, x: Floats, row: Ints, node: Ints) -> NDArray[np.intp]:
        """Return the leaf that each row reaches from its start node."""
        # scikit-learn compares in float32; a value beyond its range exceeds every threshold
        with np.errstate(over="ignore"):
            cell = x.astype(np.float32).ravel()
        child = self.child.ravel()
        code = node.astype(np.intp)
        walking = np.flatnonzero(code >= 0)
        at, start = code[walking], row[walking] * x.shape[1]
        while walking.size:
            right = cell.take(start + self.feature.take(at)) > self.threshold.take(at)
            at = child.take(2 * at + right)
            arrived = at < 0
            if arrived.any():
                code[walking[arrived]] = at[arrived]
                still = np.flatnonzero(~arrived)
                walking, at, start = walking[still], at[still], start[still]
        return ~code


def rounded_down(threshold: Floats) -> NDArray[np.float32]:
    """Round to the next lower float32, which gives the same comparisons with float32 values."""
    near = threshold.astype(np.float32)
    return np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)


class TreesRegressor(BaseEstimator):  # type: ignore[misc]
    """Extremely randomised trees that keep only their arrays, for `IterativeImputer`.

    scikit-learn's forest needs several times the memory, and with several jobs the last bit of its
    mean depends on their order.
    """

    def __init__(self, n_estimators: int, seed: int, n_jobs: int | None) -> None:
        self.n_estimators, self.seed, self.n_jobs = n_estimators, seed, n_jobs

    def fit(self, X: Floats, y: Floats) -> Self:
        """Fit the trees."""
        from sklearn.ensemble import ExtraTreesRegressor

        forest = ExtraTreesRegressor(self.n_estimators, random_state=self.seed, n_jobs=self.n_jobs)
        self.trees_ = Trees.of(forest.fit(X, y).estimators_)
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the mean over the trees for each row."""
        return self.trees_.predict(X)
