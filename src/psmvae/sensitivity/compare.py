"""One analysis under several assumptions about why values are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from psmvae.multiple import MultipleImputation, read_estimates
from psmvae.multiple.complete_cases import complete_rows
from psmvae.multiple.estimates import noting
from psmvae.multiple.pooling import Backend
from psmvae.multiple.shift import check_shift
from psmvae.sensitivity import wording
from psmvae.sensitivity.inference import (
    INTERCEPTS,
    Inference,
    check_alpha,
    check_result,
    choose_term,
    pooled_inference,
    single_inference,
)
from psmvae.table.numbers import p_value
from psmvae.table.sections import Section, as_html, as_text, shortened
from psmvae.table.wording import quoted, repeated

COMPLETE_CASES, MAR = "complete cases", "mar"


@dataclass(frozen=True, eq=False, repr=False)
class AssumptionComparison:
    """Estimates under several assumptions; made by `psmvae.compare_assumptions`.

    Parameters
    ----------
    assumptions : tuple of str
        The assumptions, as labels.
    terms : tuple of str
        The estimated quantities.
    results : tuple of mapping of str to Inference
        For each assumption the results of the terms.
    imputations : tuple of MultipleImputation or None
        For each assumption the completed tables; None for complete cases.
    reference : int
        Position of the assumption that changes are relative to: missing at random if it is one of
        them, otherwise the first.
    null : float
        Value of the terms under the null hypothesis.
    alpha : float
        Significance level; intervals have the level 1 - alpha.
    backend : str
        Library of the frame that `summary` returns.
    phrases : tuple of str
        The assumptions as a sentence has them, such as "if missing at random". By default, the
        labels.
    """

    assumptions: tuple[str, ...]
    terms: tuple[str, ...]
    results: tuple[Mapping[str, Inference], ...]
    imputations: tuple[MultipleImputation | None, ...]
    reference: int
    null: float
    alpha: float
    backend: Backend = "pandas"
    phrases: tuple[str, ...] = ()

    def summary(self) -> Any:
        """Return a frame with one row for each assumption and term.

        Returns
        -------
        DataFrame
            Columns assumption, term, estimate, std_error, conf_low, conf_high, p_value and change,
            the difference of the estimate from that of the reference.
        """
        columns: dict[str, list[Any]] = {
            name: [] for name in ("assumption", "term", *Inference._fields, "change")
        }
        for assumption, result in zip(self.assumptions, self.results, strict=True):
            for term in self.terms:
                change = result[term].estimate - self.results[self.reference][term].estimate
                row = (assumption, term, *result[term], change)
                for values, value in zip(columns.values(), row, strict=True):
                    values.append(value)
        return nw.from_dict(columns, backend=self.backend).to_native()

    def sentence(self, term: str | None = None, *, estimand: str | None = None) -> str:
        """Return the result in one sentence, as ICH E9(R1) asks to report it.

        Parameters
        ----------
        term : str, optional
            The quantity of interest. By default the only one beside an intercept.
        estimand : str, optional
            What is estimated, in words. By default the name of the term.

        Returns
        -------
        str
            Estimand, assumptions, how far the estimate moves, and whether the conclusion is the
            same under all of them.
        """
        chosen = choose_term(self.terms, term)
        rows = [result[chosen] for result in self.results]
        phrases = self.phrases or tuple(f"under {name!r}" for name in self.assumptions)
        reference = rows[self.reference]
        error = reference.std_error
        each = ", ".join(
            f"{wording.estimate(row, self.alpha, error)} {phrase}"
            for phrase, row in zip(phrases, rows, strict=True)
        )
        move = max(abs(row.estimate - reference.estimate) for row in rows)
        moves = f"moves by at most {wording.size(move, error)}" if move else "does not move"
        found = wording.conclusion(reference, self.null, self.alpha)
        other = [
            phrase
            for phrase, row in zip(phrases, rows, strict=True)
            if wording.conclusion(row, self.null, self.alpha) != found
        ]
        end = f"does not hold {' or '.join(other)}" if other else "holds under all assumptions"
        return (
            f"With the same estimand and analysis, {estimand or wording.quantity(chosen)} is "
            f"{each}; it {moves} from that {phrases[self.reference]}; the conclusion there, "
            f"{found}, {end}."
        )

    def _sections(self) -> list[Section]:
        rows = [
            ["assumption", "term", "estimate", f"{wording.percent(1 - self.alpha)} CI", "p-value"]
        ]
        for assumption, result in zip(self.assumptions, self.results, strict=True):
            for term in self.terms:
                one, error = result[term], self.results[self.reference][term].std_error
                value, low, high = (
                    wording.rounded(each, error)
                    for each in (one.estimate, one.conf_low, one.conf_high)
                )
                rows.append([assumption, term, value, f"{low} to {high}", p_value(one.p_value)])
        terms = [term for term in self.terms if term not in INTERCEPTS]
        texts = [self.sentence(terms[0])] if len(terms) == 1 else []
        return [shortened(Section("Estimates under several assumptions", rows, texts))]

    def __repr__(self) -> str:
        return as_text(self._sections())

    def _repr_html_(self) -> str:
        return as_html(self._sections())

    def plot(self, ax: Any = None) -> Any:
        """Draw a forest plot, with a panel for each term.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, optional
            Where to draw, one for each term. By default a new figure of pyplot.

        Returns
        -------
        ndarray of matplotlib Axes
            The axes, one for each term.
        """
        from psmvae.graphics.axes import new_axes
        from psmvae.sensitivity.plots import draw_forest

        n = len(self.terms)
        if ax is None:
            labels = 0.09 * max(map(len, self.assumptions))
            size = (labels + 3.5 * n, 1.2 + 0.4 * len(self.results))
            ax = new_axes(ncols=n, figsize=size)
        axes = np.atleast_1d(ax)
        if axes.size != n:
            raise ValueError(f"there are {n} terms and so {n} panels, got {axes.size} axes.")
        draw_forest(self, axes)
        return axes


def compare_assumptions(
    X: Any,
    analyse: Callable[[Any], Any],
    assumptions: Sequence[Any] = (COMPLETE_CASES, MAR, "latent", "self"),
    *,
    imputer: Any = None,
    m: int = 20,
    term: str | None = None,
    complete_on: str | Sequence[str] | None = None,
    null: float = 0.0,
    alpha: float = 0.05,
    dfcom: float | None = None,
    bootstrap: int | None = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
) -> AssumptionComparison:
    """Repeat an analysis under several assumptions about why values are missing.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    analyse : callable
        The analysis of a completed table, as in `MultipleImputation.analyse`.
    assumptions : sequence
        Each of these:

        - ``"complete cases"``: rows with missing cells are left out;
        - ``"mar"``, or ``"none"``: missing at random, ``mask_model="none"`` of the imputer;
        - ``"latent"``, ``"self"`` or another `mask_model` of the imputer, as a name or an object
          such as ``SelfMask(columns=["income"])``;
        - ``{"shift": {"outcome": 5}}``: missing at random, and then the imputed cells are shifted
          (`MultipleImputation.shift`). ``"base"`` is another assumption to shift from;
        - ``{"base": ..., "label": "a name"}``, also with a shift: a name for the row of the table.
    imputer : imputer, optional
        Any imputer; it needs a parameter `mask_model` for other assumptions than "mar". By default
        ``PSMVAEImputer()``. It is cloned and fitted once for each mask model.
    m : int, default=20
        Number of imputations.
    term : str, optional
        The quantity of interest. By default all terms are reported.
    complete_on : str or sequence of str, optional
        The columns that must be observed in a complete case. By default all. Without any, every
        row is one.
    null : float, default=0
        Value of the terms under the null hypothesis.
    alpha : float, default=0.05
        Significance level of the conclusion; intervals have the level 1 - alpha.
    dfcom : float, optional
        Degrees of freedom of complete data. By default those of the analyses, or infinity.
    bootstrap : int, optional
        Number of bootstrap samples, for analyses without standard errors.
    random_state : int, optional
        Seed of the imputers, of bootstrap samples and of levels that are re-drawn. By default that
        of the imputer.
    n_jobs : int, optional
        Number of processes of the analyses, as in joblib. None runs in this process.

    Returns
    -------
    AssumptionComparison
        With ``.summary()``, ``.sentence()`` and ``.plot()``.

    Raises
    ------
    ValueError
        If an assumption is unknown, if the imputer cannot make it, or if the analysis does not give
        an estimate and its standard error under each.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from psmvae import MICEImputer, compare_assumptions
    >>> rng = np.random.default_rng(0)
    >>> df = pd.DataFrame({"x": rng.normal(size=100)})
    >>> df["y"] = df["x"] + rng.normal(size=100)
    >>> df["y"] = df["y"].mask(df["x"] > 0.5)
    >>> result = compare_assumptions(
    ...     df,
    ...     lambda table: {"mean of y": (table["y"].mean(), table["y"].var() / len(table))},
    ...     ["complete cases", "mar", {"shift": {"y": 1}}],
    ...     imputer=MICEImputer(),
    ...     m=5,
    ...     random_state=0,
    ... )
    >>> result.summary()["assumption"].tolist()
    ['complete cases', 'mar', "mar, shift {'y': 1}"]
    >>> bool(result.summary()["estimate"].is_monotonic_increasing)
    True
    """
    check_alpha(alpha)
    if isinstance(assumptions, str) or not assumptions:
        raise TypeError(f"assumptions must be a sequence of assumptions, got {assumptions!r}.")
    read = [_Assumption.read(one) for one in assumptions]
    labels = [one.label for one in read]
    if twice := repeated(labels):
        raise ValueError(f"these assumptions occur more than once: {quoted(twice)}.")
    at_random = [k for k, one in enumerate(read) if one.base == MAR and one.shift is None]
    reference = at_random[0] if at_random else 0
    if imputer is None:
        from psmvae.imputers import PSMVAEImputer

        imputer = PSMVAEImputer()
    seed = _seed(imputer, random_state)
    fits = _Imputations(X, imputer, m, seed)
    for one in read:
        fits.check(one)
    complete = None
    if any(one.base == COMPLETE_CASES for one in read):
        complete = _complete_cases(X, complete_on)
    options = {"bootstrap": bootstrap, "random_state": seed, "n_jobs": n_jobs}
    pool = {"alpha": alpha, "null": null, "dfcom": dfcom}
    results: dict[str, Mapping[str, Inference]] = {}
    imputations: dict[str, MultipleImputation | None] = {}
    # complete cases first: they need no fit, and show whether the analysis has the term
    for one in sorted(read, key=lambda one: one.base != COMPLETE_CASES):
        if one.base == COMPLETE_CASES and complete is not None:
            mi = None
            fitted = complete.analyse(analyse, **options)  # type: ignore[arg-type]
            found = single_inference(read_estimates(fitted[0]), **pool)  # type: ignore[arg-type]
        else:
            mi = fits.of(one)
            # one warning is enough, for the assumption that others are compared with
            warn = one.label == labels[reference]
            with noting(f"under {one.label!r}"):
                fitted = mi.analyse(analyse, **options)  # type: ignore[arg-type]
                found = pooled_inference(fitted, warn=warn, **pool)  # type: ignore[arg-type]
        results[one.label], imputations[one.label] = found, mi
        label, terms = next((label, list(each)) for label, each in results.items())
        if list(found) != terms:
            raise ValueError(
                f"the analysis has the terms {terms} under {label!r} and {list(found)} under "
                f"{one.label!r}; it must estimate the same terms under every assumption."
            )
        kept = terms if term is None else [choose_term(terms, term)]
        for each in kept:
            check_result(each, found[each], f"under {one.label!r}")
    return AssumptionComparison(
        tuple(labels), tuple(kept), tuple(results[label] for label in labels),
        tuple(imputations[label] for label in labels), reference, null, alpha, fitted.backend,
        tuple(one.phrase for one in read),
    )  # fmt: skip


@dataclass(frozen=True)
class _Assumption:
    """An assumption: how cells are imputed, and how they are shifted then."""

    label: str
    base: Any
    shift: Mapping[str, Any] | None = None
    is_named: bool = False

    @property
    def phrase(self) -> str:
        """How a sentence names the assumption."""
        if self.is_named:
            return f"under {self.label!r}"
        return wording.assumption(self.base, self.shift)

    @classmethod
    def read(cls, given: Any) -> _Assumption:
        if not isinstance(given, Mapping):
            return cls(_label(given), _same_base(given))
        if set(given) - {"shift", "base", "label"} or not set(given) & {"shift", "base"}:
            raise ValueError(
                "an assumption as a mapping has 'shift' or 'base', and possibly 'label', got "
                f"{dict(given)!r}."
            )
        base, shift = given.get("base", MAR), given.get("shift")
        if "shift" in given and not (isinstance(shift, Mapping) and shift):
            raise TypeError(
                "the 'shift' of an assumption must map names of columns to their shifts, such as "
                f"{{'score': 5}}, got {shift!r}."
            )
        if base == COMPLETE_CASES and shift is not None:
            raise ValueError("complete cases have no imputed cells, so nothing can be shifted.")
        made = _label(base) if shift is None else f"{_label(base)}, shift {dict(shift)}"
        return cls(str(given.get("label", made)), _same_base(base), shift, "label" in given)


def _same_base(base: Any) -> Any:
    """Return one name for the imputation at random, which is also that of a mask model."""
    return MAR if isinstance(base, str) and base == "none" else base


def _label(base: Any) -> str:
    """Return the name of an assumption; of an object, with its parameters that are not defaults."""
    if isinstance(base, str) or not is_dataclass(base):
        return base if isinstance(base, str) else repr(base)
    values = [(one.name, getattr(base, one.name), one.default) for one in fields(base)]
    given = ", ".join(f"{name}={value!r}" for name, value, default in values if value != default)
    return f"{type(base).__name__}({given})"


def _seed(imputer: Any, random_state: int | None) -> int | None:
    """Return the seed, by default that of the imputer."""
    if random_state is not None:
        return random_state
    own: Any = imputer.get_params().get("random_state")
    # a copy, so that the state of the imputer is not advanced
    return int(deepcopy(own).randint(2**31)) if isinstance(own, np.random.RandomState) else own


class _Imputations:
    """Multiple imputations of one table, fitted once for each mask model."""

    def __init__(self, X: Any, imputer: Any, m: int, random_state: int | None) -> None:
        self._X, self._imputer, self._m, self._seed = X, imputer, m, random_state
        self._made: dict[str, MultipleImputation] = {}

    def check(self, assumption: _Assumption) -> None:
        """Raise for an assumption that the imputer cannot make, before any time is spent."""
        base = assumption.base
        if base == COMPLETE_CASES:
            return
        if assumption.shift is not None:
            check_shift(self._X, assumption.shift)
        self._with(MAR)._check_parameters()  # noqa: SLF001 (what `fit` checks first)
        if base == MAR:
            return
        known = f"{assumption.label!r} is not {COMPLETE_CASES!r} or {MAR!r}"
        if "mask_model" not in self._imputer.get_params():
            raise ValueError(
                f"{known}, and {type(self._imputer).__name__} has no mask_model and imputes as if "
                "missing at random: use an imputer with one, such as PSMVAEImputer."
            )
        try:
            self._with(base)._check_parameters()  # noqa: SLF001
        except (TypeError, ValueError) as error:
            message = f"{known}, and no mask model of {type(self._imputer).__name__}: {error}"
            raise ValueError(message) from error

    def of(self, assumption: _Assumption) -> MultipleImputation:
        """Return the completed tables under an assumption."""
        base = repr(assumption.base)
        if base not in self._made:
            self._made[base] = self._impute(assumption.base)
        mi = self._made[base]
        if assumption.shift is None:
            return mi
        return mi.shift(assumption.shift, random_state=self._seed or 0)

    def _impute(self, base: Any) -> MultipleImputation:
        mi: MultipleImputation = self._with(base).fit(self._X).impute_multiple(self._X, m=self._m)
        return mi

    def _with(self, base: Any) -> Any:
        """Return the imputer with the mask model of an assumption."""
        from sklearn.base import clone

        imputer = clone(self._imputer)
        changes: dict[str, Any] = {}
        if "mask_model" in imputer.get_params():
            changes["mask_model"] = "none" if base == MAR else base
        if self._seed is not None:
            changes["random_state"] = self._seed
        return imputer.set_params(**changes)


def _complete_cases(X: Any, complete_on: str | Sequence[str] | None) -> MultipleImputation:
    """Return the complete rows, as a table that needs no imputation."""
    rows = complete_rows(X, complete_on)
    return MultipleImputation(rows, (rows,), np.zeros(rows.shape, bool))
