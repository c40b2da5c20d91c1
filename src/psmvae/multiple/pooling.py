"""Analyses of the completed tables of a multiple imputation, and their pooled results."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Literal, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from psmvae._caller import warn_at_caller
from psmvae.multiple import rubin
from psmvae.multiple.complete_cases import complete_rows
from psmvae.multiple.estimates import (
    Estimates,
    check_number,
    check_numbers,
    check_same_terms,
    noting,
    numbered,
    read_estimates,
)
from psmvae.multiple.likelihood import read_likelihood
from psmvae.table.errors import Reported
from psmvae.table.numbers import interval, number, p_value
from psmvae.table.sections import Section, as_html, as_text, shortened

Floats = NDArray[np.float64]
ScaleName = Literal["identity", "log", "logit", "fisher_z"]
Backend = Literal["pandas", "polars", "pyarrow"]
Test = Literal["D1", "D2", "D3"]
# Above this fraction of missing information, most of what is known of a term was imputed.
HIGH_FMI = 0.5


@dataclass(eq=False, repr=False)
class MissingInformationWarning(Reported, UserWarning):
    """More than half of the information about a term is missing.

    Attributes
    ----------
    fmi : dict of str to float
        Fraction of missing information, by term.
    """

    fmi: dict[str, float]
    _problem = (
        "more than half of the information about {terms} is missing (fmi): the result depends "
        "mostly on the imputation model"
    )
    _remedy = (
        "use more imputations (how_many), add columns that predict the missing values, and compare "
        "other imputation models"
    )

    def _texts(self) -> dict[str, str]:
        return {"terms": ", ".join(f"{term} ({g:.2f})" for term, g in self.fmi.items())}


class Scale(NamedTuple):
    """A transformation under which estimates are closer to Normal, with its derivative."""

    forward: Callable[[Floats], Floats]
    derivative: Callable[[Floats], Floats]
    inverse: Callable[[Floats], Floats]


SCALES: dict[str, Scale] = {
    "identity": Scale(lambda q: q, np.ones_like, lambda g: g),
    "log": Scale(np.log, lambda q: 1 / q, np.exp),
    "logit": Scale(
        lambda q: np.log(q / (1 - q)), lambda q: 1 / (q * (1 - q)), lambda g: 1 / (1 + np.exp(-g))
    ),
    "fisher_z": Scale(np.arctanh, lambda q: 1 / (1 - q**2), np.tanh),
}


@dataclass(frozen=True, repr=False)
class PooledResults:
    """Estimates pooled by Rubin's rules; made by `Analyses.pool`.

    Parameters
    ----------
    terms : tuple of str
        Names of the estimated quantities.
    m : int
        Number of imputations.
    dfcom : float
        Degrees of freedom of the analysis of complete data.
    pooled : Pooled
        Estimates, variances and degrees of freedom, on the scale of pooling.
    scale : {"identity", "log", "logit", "fisher_z"}
        Scale of pooling; `summary` transforms estimates and intervals back.
    backend : str
        Library of the frame that `summary` returns: "pandas", "polars" or "pyarrow".
    covariance : PooledCovariance or None
        Covariance matrices within imputations (``ubar``), between them (``b``) and their total
        (``t``), on the scale of pooling, if every analysis gave a covariance matrix.
    """

    terms: tuple[str, ...]
    m: int
    dfcom: float
    pooled: rubin.Pooled
    scale: ScaleName = "identity"
    backend: Backend = "pandas"
    covariance: rubin.PooledCovariance | None = None

    def summary(self, *, exponentiate: bool = False, conf_level: float = 0.95) -> Any:
        """Return a frame with one row for each term, with the columns of R's mice.

        Parameters
        ----------
        exponentiate : bool, default=False
            Exponentiate estimates and interval limits, but not ``std_error``. Only for estimates
            pooled on their own scale.
        conf_level : float, default=0.95
            Level of the confidence intervals.

        Returns
        -------
        DataFrame
            Columns term, m, estimate, std_error, statistic, df, p_value, conf_low, conf_high, riv,
            lambda, fmi, ubar, b, t and dfcom. Terms without a within-imputation variance have the
            pooled mean and ``b`` only.

        Raises
        ------
        ValueError
            If the level is not between 0 and 1, or `exponentiate` is given for estimates that were
            pooled on a transformed scale.
        """
        if not 0 < conf_level < 1:
            raise ValueError(f"conf_level must be between 0 and 1, got {conf_level!r}.")
        if exponentiate and self.scale != "identity":
            raise ValueError(
                "exponentiate=True is for estimates pooled with scale='identity', such as log odds "
                f"ratios. These were pooled with scale={self.scale!r}, and the summary transforms "
                "them back already: leave exponentiate out."
            )
        p, k = self.pooled, len(self.terms)
        error = np.sqrt(p.t)
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = p.estimate / error
        width = stats.t.ppf(0.5 + conf_level / 2, p.df) * error
        limits = np.stack([p.estimate, p.estimate - width, p.estimate + width])
        estimate, low, high = SCALES[self.scale].inverse(limits)
        if exponentiate:
            estimate, low, high = np.exp([estimate, low, high])
        columns = {
            "term": list(self.terms),
            "m": [self.m] * k,
            "estimate": estimate,
            "std_error": error,
            "statistic": statistic,
            "df": p.df,
            "p_value": rubin.p_value(p),
            "conf_low": low,
            "conf_high": high,
            "riv": p.riv,
            "lambda": p.lambda_,
            "fmi": p.fmi,
            "ubar": p.ubar,
            "b": p.b,
            "t": p.t,
            "dfcom": np.full(k, self.dfcom),
        }
        plain = {name: np.asarray(v).tolist() for name, v in columns.items()}
        return nw.from_dict(plain, backend=self.backend).to_native()

    def cov_params(self) -> Floats:
        """Return the total covariance matrix of the pooled estimates.

        Returns
        -------
        ndarray of shape (term, term)
            In the order of `terms`, on the scale of pooling; its diagonal is ``t`` of the summary.

        Raises
        ------
        ValueError
            If an analysis gave no covariance matrix.

        Examples
        --------
        The difference of two coefficients with its standard error:

        >>> import numpy as np
        >>> from psmvae.multiple import Analyses, Estimates
        >>> each = [np.array([1.0, 0.5]), np.array([1.2, 0.5])]
        >>> u = np.array([[0.2, 0.1], [0.1, 0.2]])
        >>> pooled = Analyses([Estimates(("a", "b"), q, u.diagonal(), u) for q in each]).pool()
        >>> contrast = np.array([1, -1])
        >>> round(float(contrast @ pooled.pooled.estimate), 3)
        0.6
        >>> round(float(contrast @ pooled.cov_params() @ contrast), 3)
        0.23
        """
        if self.covariance is None:
            raise ValueError(
                "the pooled covariance matrix needs that of every analysis; results of statsmodels "
                "and lifelines have one, and analyse(..., bootstrap=200) computes one for others."
            )
        return self.covariance.t

    def __repr__(self) -> str:
        return as_text(_pooled_sections(self))

    def _repr_html_(self) -> str:
        return as_html(_pooled_sections(self))


class Analyses(Sequence[Any]):
    """Results of one analysis of every completed table; made by `MultipleImputation.analyse`.

    Parameters
    ----------
    results : sequence of objects
        One result for each imputation; see `read_estimates` for what can be pooled.
    backend : str, default="pandas"
        Library of the frames that are returned.
    source : (callable, table), optional
        The analysis and the incomplete table, for `complete_cases`. Copies and pickles do not keep
        it, because a callable may not be picklable.

    Examples
    --------
    >>> from psmvae.multiple import Analyses
    >>> Analyses([{"mean": (1.5, 0.5)}, {"mean": (2.5, 2.5)}]).pool().pooled.estimate
    array([2.])
    """

    def __init__(
        self,
        results: Sequence[Any],
        *,
        backend: Backend = "pandas",
        source: tuple[Callable[[Any], Any], Any] | None = None,
    ) -> None:
        self.results = list(results)
        self.backend = backend
        self.source = source

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "source": None}

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: Any) -> Any:
        """Return a result, or for a slice the analyses of these tables."""
        if isinstance(index, slice):
            return Analyses(self.results[index], backend=self.backend, source=self.source)
        return self.results[index]

    def _sections(self) -> list[Section]:
        n = len(self.results)
        kind = type(self.results[0]).__name__ if n else "no class"
        own = Section(f"Analyses of {n:,} completed tables, results of {kind}", [], [])
        try:
            # `pool` warns when it is called
            return [own, *_pooled_sections(self._pool("barnard-rubin", None, "identity"))]
        except (TypeError, ValueError) as error:
            return [replace(own, paragraphs=[f"They cannot be pooled: {error}"])]

    def __repr__(self) -> str:
        return as_text(self._sections())

    def _repr_html_(self) -> str:
        return as_html(self._sections())

    def pool(
        self,
        *,
        df: rubin.DegreesOfFreedom = "barnard-rubin",
        dfcom: float | None = None,
        scale: ScaleName = "identity",
    ) -> PooledResults:
        """Pool the estimates of all terms by Rubin's rules.

        Parameters
        ----------
        df : {"barnard-rubin", "rubin"}, default="barnard-rubin"
            Degrees of freedom of Barnard and Rubin (1999), or the classical ones.
        dfcom : float, optional
            Degrees of freedom of complete data. By default those of the results, or infinity.
        scale : {"identity", "log", "logit", "fisher_z"}, default="identity"
            Pool on a transformed scale, with variances by the delta method: "log" for ratios,
            "logit" for proportions, "fisher_z" for correlations.

        Returns
        -------
        PooledResults
            Use ``.summary()`` for a table.

        Warns
        -----
        MissingInformationWarning
            If the fraction of missing information of a term is above 0.5.
        """
        results = self._pool(df, dfcom, scale)
        warn_of_missing_information(results.terms, results.pooled.fmi)
        return results

    def _pool(
        self, df: rubin.DegreesOfFreedom, dfcom: float | None, scale: ScaleName
    ) -> PooledResults:
        """Pool without a warning."""
        each = self._estimates()
        estimate, variance, slope = _scaled(each, scale)
        freedom = self._dfcom(each, dfcom)
        pooled = rubin.pool_scalars(estimate, variance, freedom, df=df)
        matrices, covariance = _covariances(each), None
        if matrices is not None:
            scaled = slope[:, :, None] * matrices * slope[:, None, :]
            covariance = rubin.pool_covariances(estimate, scaled)
        return PooledResults(
            each[0].terms, len(each), freedom, pooled, scale, self.backend, covariance
        )

    def test(
        self, hypothesis: str, *, method: Test = "D1", dfcom: float | None = None
    ) -> rubin.PooledTest:
        """Test hypotheses about several terms at once.

        Parameters
        ----------
        hypothesis : str
            Terms and their values under the null hypothesis, such as ``"age = 0, chl = 0"``. White
            space and the order of an interaction do not matter: ``"chl:age = 0"``.
        method : {"D1", "D2", "D3"}, default="D1"
            D1 pools estimates and covariances. D2 pools the Wald statistics and has less power. D3
            is the likelihood ratio test of Meng and Rubin (1992), for results of statsmodels: OLS,
            Logit, Probit, Poisson, and GLM of the binomial and Poisson families. The restricted
            model is fitted to each table here.
        dfcom : float, optional
            Degrees of freedom of complete data, for D1. By default those of the results.

        Returns
        -------
        PooledTest
            F statistic, degrees of freedom, p-value and relative increase in variance.

        Raises
        ------
        TypeError
            If `hypothesis` is no text, or `method` is "D3" and the results have no likelihood.

        Notes
        -----
        D1 has the degrees of freedom of Li et al. (1991) without `dfcom`, and those of Reiter
        (2007) with it. Reiter's are not defined for k terms and m imputations with k (m - 1) ≤ 4,
        nor if few degrees of freedom are left by missing data; those of Li et al. are then combined
        with `dfcom` as Barnard and Rubin (1999) do for one term. The test of one term with at most
        five imputations is therefore the t test of `pool`.

        D3 of linear models pools the maximum likelihood estimate of the residual variance with the
        coefficients, as R's mitml does. R's ``mice::D3`` estimates it, and the intercept, again in
        each table, and differs.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> import statsmodels.formula.api as smf
        >>> from psmvae.multiple import Analyses
        >>> rng = np.random.default_rng(0)
        >>> tables = [pd.DataFrame(rng.normal(size=(50, 3)), columns=list("xyz")) for _ in range(5)]
        >>> fits = Analyses([smf.ols("y ~ x + z", table).fit() for table in tables])
        >>> fits.test("x = 0, z = 0", method="D3").p_value > 0.05
        True
        """
        if not isinstance(hypothesis, str):
            raise TypeError(
                "hypothesis must be a text such as 'age = 0, chl = 0', got "
                f"{type(hypothesis).__name__}."
            )
        each = self._estimates()
        names, values = _parse(hypothesis, each[0].terms)
        at = [each[0].terms.index(name) for name in names]
        if method == "D3":
            return self._likelihood_ratio_test(at, values)
        if method not in ("D1", "D2"):
            raise ValueError(f"method must be 'D1', 'D2' or 'D3', got {method!r}.")
        matrices = _covariances(each)
        if matrices is None:
            raise ValueError("a test needs the covariance matrix of the estimates.")
        estimate = np.stack([one.estimate[at] for one in each]) - values
        covariance = matrices[:, at][:, :, at]
        if method == "D1":
            return rubin.wald_d1(estimate, covariance, self._dfcom(each, dfcom))
        solved = np.linalg.solve(covariance, estimate[..., None])[..., 0]
        return rubin.pool_d2((estimate * solved).sum(1), len(at))

    def arrays(
        self, dfcom: float | None = None, scale: ScaleName = "identity"
    ) -> tuple[tuple[str, ...], Floats, Floats, float]:
        """Return the estimates of all imputations as arrays.

        Parameters
        ----------
        dfcom : float, optional
            Degrees of freedom of complete data. By default those of the results, or infinity.
        scale : {"identity", "log", "logit", "fisher_z"}, default="identity"
            Scale of the estimates and variances, as in `pool`.

        Returns
        -------
        terms : tuple of str
            Names of the estimated quantities.
        estimate, variance : ndarray of shape (imputation, term)
            Estimates and their variances.
        dfcom : float
            Degrees of freedom of complete data.
        """
        each = self._estimates()
        estimate, variance, _ = _scaled(each, scale)
        return each[0].terms, estimate, variance, self._dfcom(each, dfcom)

    def complete_cases(self, complete_on: str | Sequence[str] | None = None) -> Estimates:
        """Repeat the analysis on the rows without missing cells.

        Parameters
        ----------
        complete_on : str or sequence of str, optional
            The columns that must not be missing, such as those of the analysis. By default all.

        Returns
        -------
        Estimates
            Of the same terms, to be compared with the pooled ones.

        Raises
        ------
        ValueError
            If the analysis is not known, a column is unknown, there is no complete row, or the
            terms differ.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from psmvae import MICEImputer
        >>> df = pd.DataFrame({"a": [1.0, 2.0, 3.0, np.nan], "b": [1.0, 2.0, 4.0, 5.0]})
        >>> mi = MICEImputer(random_state=0).fit(df).impute_multiple(df, m=5)
        >>> fits = mi.analyse(lambda d: {"mean of b": (d["b"].mean(), d["b"].var() / len(d))})
        >>> fits.complete_cases().estimate.round(3)
        array([2.333])
        """
        if self.source is None:
            raise ValueError(
                "the analysis is not known: these results were read from a pickle, or not made by "
                "MultipleImputation.analyse."
            )
        analysis, original = self.source
        found = read_estimates(analysis(complete_rows(original, complete_on)))
        check_same_terms(
            read_estimates(self[0]), found, ("the first imputation", "the complete rows")
        )
        return found

    def _likelihood_ratio_test(self, at: list[int], values: Floats) -> rubin.PooledTest:
        likelihoods = [read_likelihood(result, at, values) for result in self.results]
        full = np.mean([one.full for one in likelihoods], 0)
        restricted = np.mean([one.restricted for one in likelihoods], 0)
        own = [2 * (one.value(one.full) - one.value(one.restricted)) for one in likelihoods]
        pooled = [2 * (one.value(full) - one.value(restricted)) for one in likelihoods]
        return rubin.pool_d3(np.array(own), np.array(pooled), len(at))

    def _estimates(self) -> list[Estimates]:
        m, each = len(self.results), []
        if m < 2:
            raise ValueError(f"Rubin's rules need at least 2 imputations, got {m}.")
        for k, result in enumerate(self.results):
            with noting(f"result of {numbered(k, m)}"):
                each.append(read_estimates(result))
        for k, one in enumerate(each):
            check_same_terms(each[0], one, (numbered(0, m), numbered(k, m)))
        check_numbers(each)
        return each

    def _dfcom(self, each: list[Estimates], given: float | None) -> float:
        if given is not None:
            check_number("dfcom", given)
            if not given > 0:
                raise ValueError(f"dfcom must be above 0, got {given!r}.")
            return float(given)
        known = [one.dfcom for one in each if one.dfcom is not None]
        return min(known) if len(known) == len(each) else float("inf")


def _scaled(each: list[Estimates], scale: ScaleName) -> tuple[Floats, Floats, Floats]:
    """Return estimates, variances and derivatives of a scale, ``(imputation, term)``."""
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {sorted(SCALES)}, got {scale!r}.")
    raw = np.stack([one.estimate for one in each])
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate, slope = SCALES[scale].forward(raw), SCALES[scale].derivative(raw)
    if not np.isfinite(estimate).all():
        raise ValueError(f"estimates are outside the domain of scale={scale!r}.")
    return estimate, np.stack([one.variance for one in each]) * slope**2, slope


def _covariances(each: list[Estimates]) -> Floats | None:
    """Return the covariances ``(imputation, term, term)``, if every analysis has one."""
    known = [one.covariance for one in each if one.covariance is not None]
    return np.stack(known) if len(known) == len(each) else None


def _pooled_sections(results: PooledResults) -> list[Section]:
    p = results.pooled
    error = np.sqrt(p.t)
    width = stats.t.ppf(0.975, p.df) * error
    limits = np.stack([p.estimate, p.estimate - width, p.estimate + width])
    back = SCALES[results.scale].inverse(limits)
    numbers = np.stack([*back, error, p.df, rubin.p_value(p), p.fmi], axis=1).tolist()
    rows = [["term", "estimate", "95 % CI", "std. error", "df", "p-value", "fmi"]]
    for term, (estimate, low, high, *rest) in zip(results.terms, numbers, strict=True):
        se, df, probability, fmi = rest
        small = [number(se), number(df), p_value(probability), number(fmi, 2)]
        rows.append([term, number(estimate), interval(low, high), *small])
    scale = "" if results.scale == "identity" else f" on the {results.scale} scale"
    title = f"Estimates pooled by Rubin's rules{scale} over {results.m} imputations"
    return [shortened(Section(title, rows, []))]


def warn_of_missing_information(terms: Sequence[str], fmi: Floats) -> None:
    """Warn of the terms with much missing information."""
    high = {term: float(g) for term, g in zip(terms, fmi, strict=True) if g > HIGH_FMI}
    if high:
        warn_at_caller(MissingInformationWarning(high))


_VALUE = r"\s*==?\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?:,|$)"
# All orders of an interaction of more terms would be very many.
_MAX_REORDERED = 4


def _parse(hypothesis: str, terms: Sequence[str]) -> tuple[list[str], Floats]:
    """Read ``"a = 0, b = 1"``; a term may have commas and equals signs of its own.

    White space and the order of an interaction may differ from those of the term.
    """
    # a known term is read whole, also if a part of it looks like an equation: bs(x, df=4, degree=3)
    exact = [(term, re.compile(rf"\s*{re.escape(term)}{_VALUE}")) for term in terms]
    loose = [(term, re.compile(rf"\s*(?:{_spellings(term)}){_VALUE}")) for term in terms]
    unknown = re.compile(rf"\s*(.+?){_VALUE}")
    found: dict[str, float] = {}
    position = 0
    while position < len(hypothesis):
        matches = (
            (term, match)
            for term, equation in (*exact, *loose)
            if (match := equation.match(hypothesis, position))
        )
        name, match = next(matches, (None, unknown.match(hypothesis, position)))
        if match is None:
            raise ValueError(f"a hypothesis must have the form 'a = 0, b = 0', got {hypothesis!r}.")
        if name is None:
            raise ValueError(f"unknown term {match[1]!r}; the analysis has {list(terms)}.")
        if name in found:
            raise ValueError(f"the hypothesis {hypothesis!r} has two values for {name!r}.")
        found[name], position = float(match[1]), match.end()
    if not found:
        raise ValueError("the hypothesis is empty; it must have the form 'a = 0, b = 0'.")
    return list(found), np.array(list(found.values()))


def _spellings(term: str) -> str:
    """Return a pattern for a term with any white space, and its interactions in any order."""
    # colons inside of brackets are not those of an interaction
    pieces = re.findall(r"(?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\]|[^:])+", term)
    parts = [r"\s*".join(map(re.escape, "".join(piece.split()))) for piece in pieces]
    orders = permutations(parts) if len(parts) <= _MAX_REORDERED else [parts]
    return "|".join(r"\s*:\s*".join(order) for order in orders)
