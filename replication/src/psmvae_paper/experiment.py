"""An experiment: a grid of cells."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Self, TypeVar

from psmvae_paper.cell import Cell, Masks, Measure, Settings
from psmvae_paper.methods import METHODS, check_methods

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

# The small version of an experiment: few rows, few epochs and few draws.
QUICK_SEEDS = (0, 1)
QUICK_EPOCHS = 5
QUICK_ROWS = 150
QUICK_COLUMNS = 8
QUICK_DRAWS = 20


@dataclass(frozen=True)
class Experiment:
    """Every combination of data sets, shapes, rates, mechanisms, settings, methods and seeds.

    Parameters
    ----------
    name : str
        The name on the command line.
    title : str
        The title of its table or figure.
    source : str
        The table or figure of the paper that it reproduces.
    datasets, mechanisms, methods : tuple of str
        Names.
    rates : tuple of float
        Missing rates.
    seeds : tuple of int, default=(0, 1, 2, 3, 4)
        Seeds of masks, splits and methods.
    measure, masks : str, default="impute" and "own"
        As for `Cell`.
    n_rows, n_columns : tuple of int or None, default=(None,)
        Sizes of random parts of the data sets; None is the whole.
    epochs : int, optional
        Epochs of the deep methods; by default those of each method.
    sweep : tuple of settings, default=((),)
        Every cell is run with each of these settings.
    own : tuple of (method, settings), default=()
        Further settings of single methods.
    max_draws : int, optional
        Upper limit of the number of importance draws K.
    axis : str, optional
        The x axis of its figure: "rate", "n_rows", "n_columns", "pi" or "steps".

    Examples
    --------
    >>> mine = Experiment(
    ...     name="mine",
    ...     title="two methods on one table",
    ...     source="",
    ...     datasets=("breast",),
    ...     mechanisms=("mcar",),
    ...     rates=(0.2,),
    ...     methods=("mean", "mice"),
    ...     seeds=(0, 1),
    ... )
    >>> [(cell.method, cell.seed) for cell in mine.cells()]
    [('mean', 0), ('mean', 1), ('mice', 0), ('mice', 1)]
    """

    name: str
    title: str
    source: str
    datasets: tuple[str, ...]
    mechanisms: tuple[str, ...]
    rates: tuple[float, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    measure: Measure = "impute"
    masks: Masks = "own"
    n_rows: tuple[int | None, ...] = (None,)
    n_columns: tuple[int | None, ...] = (None,)
    epochs: int | None = None
    sweep: tuple[Settings, ...] = ((),)
    own: tuple[tuple[str, Settings], ...] = ()
    max_draws: int | None = None
    axis: str | None = None

    def cells(self) -> list[Cell]:
        """Return all cells; seeds vary fastest.

        Returns
        -------
        list of Cell
            The cells.

        Raises
        ------
        ValueError
            If a method is unknown.
        """
        check_methods(self.methods)
        shapes = product(self.n_rows, self.n_columns)
        places = product(self.datasets, shapes, self.rates, self.mechanisms, self.sweep)
        return [
            Cell(
                dataset=dataset,
                mechanism=mechanism,
                rate=rate,
                seed=seed,
                method=method,
                measure=self.measure,
                n_rows=n_rows,
                n_columns=n_columns,
                epochs=self.epochs if METHODS[method].deep else None,
                settings=self._settings(method, shared),
                masks=self.masks,
            )
            for dataset, (n_rows, n_columns), rate, mechanism, shared in places
            for method in self.methods
            for seed in self.seeds
        ]

    def only(
        self,
        seeds: Sequence[int] | None = None,
        datasets: Sequence[str] | None = None,
        methods: Sequence[str] | None = None,
        mechanisms: Sequence[str] | None = None,
    ) -> Self:
        """Return the experiment with other seeds, data sets, methods or mechanisms.

        Parameters
        ----------
        seeds, datasets, methods, mechanisms : sequence, optional
            The values. None keeps those of the experiment.

        Raises
        ------
        ValueError
            If a list is empty or names something twice, or a method is unknown.
        TypeError
            If an argument is not a list.

        Examples
        --------
        >>> from psmvae_paper import EXPERIMENTS
        >>> len(EXPERIMENTS["rmse20"].only(seeds=[0], datasets=["wine"], methods=["mean"]).cells())
        2
        """
        given: dict[str, Any] = {
            "seeds": seeds,
            "datasets": datasets,
            "methods": methods,
            "mechanisms": mechanisms,
        }
        for name, values in given.items():
            # a string would be split into its letters
            if isinstance(values, str) or not isinstance(values, Iterable | None):
                raise TypeError(f"{name} must be a list, got {values!r}")
        changed: dict[str, Any] = {
            name: tuple(values) for name, values in given.items() if values is not None
        }
        for name, values in changed.items():
            if not values or len(set(values)) < len(values):
                raise ValueError(f"{name} must name at least one, and none twice, got {values!r}")
        check_methods(changed.get("methods", ()))
        return dataclasses.replace(self, **changed)

    def quick(self) -> Self:
        """Return the small version, which takes about a minute, on tables of scikit-learn."""
        images = self.measure == "inpaint"
        rows = tuple(n and QUICK_ROWS + 50 * k for k, n in enumerate(_few(self.n_rows)))
        columns = tuple(n and QUICK_COLUMNS + 3 * k for k, n in enumerate(_few(self.n_columns)))
        return dataclasses.replace(
            self,
            datasets=("digits",) if images else ("breast",),
            seeds=self.seeds[: len(QUICK_SEEDS)],
            n_rows=rows if any(rows) else (QUICK_ROWS,),
            n_columns=columns if any(columns) or images else (QUICK_COLUMNS,),
            rates=_few(self.rates),
            sweep=_few(self.sweep),
            epochs=QUICK_EPOCHS,
            max_draws=QUICK_DRAWS,
        )

    def within(self, n_rows: int, n_columns: int) -> Self:
        """Return the experiment with at most these rows and columns, unless they are its axis.

        Parameters
        ----------
        n_rows, n_columns : int
            The size of a table.

        Examples
        --------
        >>> from psmvae_paper import EXPERIMENTS
        >>> EXPERIMENTS["rmse20"].quick().within(1000, 3).n_columns
        (3,)
        """
        capped: dict[str, Any] = {}
        for name, most in (("n_rows", n_rows), ("n_columns", n_columns)):
            if self.axis != name:
                capped[name] = tuple(n and min(n, most) for n in getattr(self, name))
        return dataclasses.replace(self, **capped)

    def _settings(self, method: str, shared: Settings) -> Settings:
        """The settings of a method: shared ones, its own, and the upper limit of K."""
        settings = dict(shared) | dict(dict(self.own).get(method, ()))
        draws = METHODS[method].n_draws
        if self.max_draws is not None and draws is not None and draws > self.max_draws:
            settings["n_draws"] = self.max_draws
        return tuple(settings.items())


def _few(values: tuple[T, ...]) -> tuple[T, ...]:
    """At most three values: the first, the central and the last."""
    return values if len(values) <= 3 else (values[0], values[len(values) // 2], values[-1])
