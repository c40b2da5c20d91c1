"""Pattern sets of the imputers with more than one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from psmvae.imputers import checks
from psmvae.imputers.ambient import independent
from psmvae.imputers.base import Bools, Floats
from psmvae.imputers.set_summary import SetSummary
from psmvae.models.config import LatentConfig
from psmvae.table.codec import Encoded

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.training.progress import Progress

# The memory of a model grows with the square of the number of sets, and a model file has a limit.
MAX_SETS = 1000


@dataclass(kw_only=True, repr=False, eq=False)
class SetsMixin:
    """Pattern sets r, for models that have more than one.

    Parameters
    ----------
    n_sets : int, default=4
        Number of pattern sets, the values of r, at most 1,000.

    Attributes
    ----------
    n_sets_ : int
        Number of pattern sets.
    set_sizes_ : ndarray of shape (n_sets_,)
        Fraction of the training rows in each set, in descending order.
    set_order_ : ndarray of shape (n_members, n_components)
        Component of each member that corresponds to each value of r.
    set_summary_ : SetSummary
        Missing rates and mean differences of the sets, for `describe_sets`.
    """

    n_sets: int | Literal["auto"] = 4

    @independent
    def predict_set_proba(self: Any, X: Any) -> Floats:
        """Compute the probability of each pattern set.

        This is q(r | x_obs, m), averaged over matched members. Where the values of columns were
        found to explain their masks, sets are rows at risk of the same columns. Set 0 is the
        largest of the training table.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            The same columns as in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_sets_)
            Probabilities that sum to one in each row.
        """
        proba: Floats = self._set_proba(*self._encode(X))
        return proba

    def _set_proba(self: Any, x: Floats, m: Bools) -> Floats:
        """Return the probabilities of the sets of encoded rows."""
        import torch

        with torch.no_grad():
            each = self._posterior(0).set_probabilities(*self._tensors(x, m)).double()
            order = torch.as_tensor(self.set_order_, device=each.device)[:, None, :]
            mean = each.gather(2, order.expand(each.shape)).mean(0)
        proba: Floats = (mean / mean.sum(1, keepdim=True)).cpu().numpy()
        return proba

    def predict_set(self, X: Any) -> NDArray[np.int64]:
        """Return the most probable pattern set of each row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            The same columns as in `fit`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Numbers from 0 to ``n_sets_ - 1``.
        """
        best: NDArray[np.int64] = self.predict_set_proba(X).argmax(1)
        return best

    def describe_sets(
        self: Any, *, backend: Literal["pandas", "polars", "pyarrow"] = "pandas"
    ) -> Any:
        """Describe the pattern sets of the training table.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Library of the frame.

        Returns
        -------
        frame
            One row for each set: ``size`` (fraction of the rows), ``mechanism`` (in words),
            ``missing`` (the highest missing rates) and ``differs_in`` (the columns whose observed
            means differ most from those of the other rows, in standard deviations).
        """
        self._check_fitted()
        names = [column.name for column in self.schema_.modelled]
        return self.set_summary_.frame(names, self.set_sizes_, self._set_words(), backend)

    def _set_words(self: Any) -> list[str]:
        return ["rows with similar masks"] * int(self.n_sets_)

    def _fit_draws(self: Any, encoded: Encoded, held_out: Tensor | None, began: float) -> None:
        super()._fit_draws(encoded, held_out, began)  # type: ignore[misc]
        self._fit_sets(encoded)
        proba = self._set_proba(encoded.x, encoded.m)
        self.set_summary_ = SetSummary.of(proba, encoded.x, encoded.m)

    def _fit_sets(self, encoded: Encoded) -> None:
        """Set attributes of the sets that follow from what draws need."""

    def _check_parameters(self) -> None:
        self._check_sets()
        super()._check_parameters()  # type: ignore[misc]

    def _check_sets(self) -> None:
        checks.whole_number("n_sets", self.n_sets, low=1, high=MAX_SETS)

    def _finish_fit(self: Any, history: list[Progress], x: Tensor, m: Tensor) -> None:
        import torch

        super()._finish_fit(history, x, m)  # type: ignore[misc]
        with torch.no_grad():
            each = self._posterior(0).set_probabilities(x, m).double().cpu().numpy()
        self.n_sets_ = each.shape[-1]
        self.set_order_, self.set_sizes_ = align_sets(each)

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = super()._facts()  # type: ignore[misc]
        sizes: NDArray[Any] = self.set_sizes_
        return facts | {"set_sizes": [round(float(size), 4) for size in sizes]}

    def _state(self: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, plain = super()._state()  # type: ignore[misc]
        own = {
            "set_order": self.set_order_,
            "set_sizes": self.set_sizes_,
            "set_missing_rate": self.set_summary_.missing_rate,
            "set_difference": self.set_summary_.difference,
        }
        return {**arrays, **own}, plain

    def _set_state(self: Any, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        config: LatentConfig = plain["config"]
        self.set_order_ = arrays.pop("set_order").numpy()
        self.set_sizes_ = arrays.pop("set_sizes").numpy()
        summary = arrays.pop("set_missing_rate").numpy(), arrays.pop("set_difference").numpy()
        self.set_summary_ = SetSummary(*summary)
        self.n_sets_ = len(self.set_sizes_)
        checks.shape("set_order", self.set_order_, (config.n_members, config.n_sets))
        for part in summary:
            checks.shape("the set summary", part, (self.n_sets_, len(self.schema_.modelled)))
        if (np.sort(self.set_order_, 1) != np.arange(config.n_sets)).any():
            raise ValueError("set_order must be a permutation of the sets for each member.")
        super()._set_state(arrays, plain)  # type: ignore[misc]


def align_sets(q_r: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Match the sets of all members and order them by size, the largest first.

    Mixture components are exchangeable: set 0 of one member may be set 3 of another. The sets of
    each member are matched to those of the first by the number of shared rows. ``q_r`` is
    ``(member, row, set)``; returns the component of each ``(member, set)``, and the sizes.
    """
    n_members, _, n_sets = q_r.shape
    order = np.tile(np.arange(n_sets), (n_members, 1))
    for member in range(1, n_members):
        order[member] = linear_sum_assignment(-q_r[0].T @ q_r[member])[1]
    aligned = np.take_along_axis(q_r, order[:, None, :], axis=2).mean((0, 1))
    by_size = np.argsort(-aligned, kind="stable")
    return order[:, by_size], aligned[by_size]
