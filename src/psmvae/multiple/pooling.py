"""Analyses of the completed tables of a multiple imputation, and their pooled results."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from psmvae.multiple import rubin
from psmvae.multiple.estimates import Estimates, read_estimates

Floats = NDArray[np.float64]
ScaleName = Literal["identity", "log", "logit", "fisher_z"]
Backend = Literal["pandas", "polars", "pyarrow"]


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


@dataclass(frozen=True)
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
    """

    terms: tuple[str, ...]
    m: int
    dfcom: float
    pooled: rubin.Pooled
    scale: ScaleName = "identity"
    backend: Backend = "pandas"

    def summary(self, *, exponentiate: bool = False, conf_level: float = 0.95) -> Any:
        """Return a frame with one row for each term, with the columns of R's mice.

        Parameters
        ----------
        exponentiate : bool, default=False
            Exponentiate estimates and interval limits, but not ``std_error``.
        conf_level : float, default=0.95
            Level of the confidence intervals.

        Returns
        -------
        DataFrame
            Columns term, m, estimate, std_error, statistic, df, p_value, conf_low, conf_high, riv,
            lambda, fmi, ubar, b, t and dfcom. Terms without a within-imputation variance have the
            pooled mean and ``b`` only.
        """
        if not 0 < conf_level < 1:
            raise ValueError(f"conf_level must be between 0 and 1, got {conf_level!r}.")
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
            "p_value": 2 * stats.t.sf(np.abs(statistic), p.df),
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


class Analyses(Sequence[Any]):
    """Results of one analysis of every completed table; made by `MultipleImputation.analyse`.

    Parameters
    ----------
    results : sequence of objects
        One result for each imputation; see `read_estimates` for what can be pooled.
    backend : str, default="pandas"
        Library of the frames that are returned.

    Examples
    --------
    >>> from psmvae.multiple import Analyses
    >>> Analyses([{"mean": (1.0, 0.5)}, {"mean": (3.0, 0.5)}]).pool().pooled.estimate
    array([2.])
    """

    def __init__(self, results: Sequence[Any], *, backend: Backend = "pandas") -> None:
        self.results = list(results)
        self.backend = backend

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: Any) -> Any:
        return self.results[index]

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
        """
        if scale not in SCALES:
            raise ValueError(f"scale must be one of {sorted(SCALES)}, got {scale!r}.")
        each = self._estimates()
        raw = np.stack([one.estimate for one in each])
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate, slope = SCALES[scale].forward(raw), SCALES[scale].derivative(raw)
        if not np.isfinite(estimate[np.isfinite(raw)]).all():
            raise ValueError(f"estimates are outside the domain of scale={scale!r}.")
        variance = np.stack([one.variance for one in each]) * slope**2
        freedom = self._dfcom(each, dfcom)
        pooled = rubin.pool_scalars(estimate, variance, freedom, df=df)
        return PooledResults(each[0].terms, len(each), freedom, pooled, scale, self.backend)

    def test(
        self, hypothesis: str, *, method: Literal["D1", "D2"] = "D1", dfcom: float | None = None
    ) -> rubin.WaldTest:
        """Test linear hypotheses about several terms at once.

        Parameters
        ----------
        hypothesis : str
            Terms and their values under the null hypothesis, such as ``"age = 0, chl = 0"``.
        method : {"D1", "D2"}, default="D1"
            D1 pools estimates and covariances and has more power, D2 pools the Wald statistics.
        dfcom : float, optional
            Degrees of freedom of the analysis of complete data. By default those of the results.

        Returns
        -------
        WaldTest
            F statistic, degrees of freedom, p-value and relative increase in variance.
        """
        each = self._estimates()
        names, values = _parse(hypothesis, each[0].terms)
        at = [each[0].terms.index(name) for name in names]
        covariances = [one.covariance for one in each if one.covariance is not None]
        if len(covariances) < len(each):
            raise ValueError("a test needs the covariance matrix of the estimates.")
        estimate = np.stack([one.estimate[at] for one in each]) - values
        covariance = np.stack(covariances)[:, at][:, :, at]
        if method == "D1":
            return rubin.wald_d1(estimate, covariance, self._dfcom(each, dfcom))
        if method == "D2":
            solved = np.linalg.solve(covariance, estimate[..., None])[..., 0]
            return rubin.pool_d2((estimate * solved).sum(1), len(at))
        raise ValueError(f"method must be 'D1' or 'D2', got {method!r}.")

    def _estimates(self) -> list[Estimates]:
        each = [read_estimates(result) for result in self.results]
        if len(each) < 2:
            raise ValueError(f"Rubin's rules need at least 2 imputations, got {len(each)}.")
        first = each[0].terms
        for k, one in enumerate(each):
            if one.terms != first:
                differing = sorted({*first} ^ {*one.terms}) or list(one.terms)
                raise ValueError(
                    f"imputations 0 and {k} have different terms: {differing}. Every analysis must "
                    "estimate the same terms in the same order."
                )
        return each

    def _dfcom(self, each: list[Estimates], given: float | None) -> float:
        if given is not None:
            return float(given)
        known = [one.dfcom for one in each if one.dfcom is not None]
        return min(known) if len(known) == len(each) else float("inf")


def _parse(hypothesis: str, terms: Sequence[str]) -> tuple[list[str], Floats]:
    """Read ``"a = 0, b = 1"``; a term may be of any characters but "=" and a comma."""
    names, values = [], []
    for part in hypothesis.split(","):
        match = re.fullmatch(r"\s*(.+?)\s*=\s*([-+.\deE]+)\s*", part)
        if match is None:
            raise ValueError(f"a hypothesis must have the form 'a = 0, b = 0', got {hypothesis!r}.")
        if match[1] not in terms:
            raise ValueError(f"unknown term {match[1]!r}; the analysis has {list(terms)}.")
        names.append(match[1])
        values.append(float(match[2]))
    return names, np.array(values)
