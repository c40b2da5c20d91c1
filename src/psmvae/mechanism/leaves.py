"""A random forest whose leaves hold the distribution of a column over its bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from psmvae.chained.trees import Trees

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

N_TREES, MIN_LEAF, FEATURE_FRACTION = 60, 5, 0.4
# Rows that the forest is grown on at most.
MAX_ROWS = 8000


@dataclass(frozen=True, eq=False)
class Leaves:
    """Trees whose leaf values are numbers of rows of ``share`` ``(leaf, bin)``."""

    trees: Trees
    share: NDArray[np.float32]

    @classmethod
    def fit(
        cls,
        features: Floats,
        at: NDArray[np.intp],
        observed: Bools,
        n_bins: int,
        seed: int,
        n_jobs: int | None,
    ) -> tuple[Self, Floats]:
        """Grow a forest on the observed rows, whose bins are ``at``.

        Returns it with the distributions of all rows: out of bag for those it was grown on.
        """
        from sklearn.ensemble import RandomForestClassifier

        rows = np.flatnonzero(observed)
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.permutation(len(rows))[:MAX_ROWS])
        forest = RandomForestClassifier(
            N_TREES,
            min_samples_leaf=MIN_LEAF,
            max_features=FEATURE_FRACTION,
            oob_score=True,
            n_jobs=n_jobs,
            random_state=seed,
        )
        forest.fit(features[rows[chosen]], at[chosen])
        levels = forest.classes_.astype(np.intp)
        share = []
        for estimator in forest.estimators_:
            tree = estimator.tree_
            leaf = tree.children_left < 0
            of_tree = np.zeros((int(leaf.sum()), n_bins), dtype=np.float32)
            of_tree[:, levels] = tree.value[leaf, 0]
            share.append(of_tree)
        made = cls(Trees.of(forest.estimators_, leaf_numbers=True), np.concatenate(share))
        grown = np.zeros(len(features), dtype=bool)
        grown[rows[chosen]] = True
        found = np.zeros((len(features), n_bins))
        out_of_bag = np.full((len(chosen), n_bins), 0.0)
        out_of_bag[:, levels] = forest.oob_decision_function_
        marginal = np.bincount(at[chosen], minlength=n_bins) / len(chosen)
        found[rows[chosen]] = np.where(np.isnan(out_of_bag), marginal, out_of_bag)
        if not grown.all():
            found[~grown] = made.predict(features[~grown])
        return made, found

    def predict(self, features: Floats) -> Floats:
        """Return the distributions ``(row, bin)`` of other rows."""
        total = np.zeros((len(features), self.share.shape[1]))
        for leaf in self.trees.leaf_values(features):
            total += self.share[leaf.astype(np.intp)]
        return total / len(self.trees.root)
