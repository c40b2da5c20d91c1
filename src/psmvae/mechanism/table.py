"""The mechanisms of all columns of a table."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae._blas import one_blas_thread
from psmvae.chained.predictors import Predictors
from psmvae.chained.tilt import LogOdds
from psmvae.kinds import KINDS, Column
from psmvae.mechanism.column import Cells, Finding, Tilt, fit_column
from psmvae.mechanism.dropout import missing_with
from psmvae.mechanism.features import Features
from psmvae.mechanism.gaussian import Gaussian
from psmvae.mechanism.leave_one_out import leave_one_out
from psmvae.mechanism.question import Question, Slope
from psmvae.mechanism.words import at_risk_words, few_observed
from psmvae.table.numbers import number, share
from psmvae.table.sections import Section, as_html, shortened
from psmvae.table.wording import quoted

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Backend = Literal["pandas", "polars", "pyarrow"]
# Kinds whose predictor is a logarithm.
LOGARITHMIC = ("positive", "count")
# Columns that are compared at the same time.
MAX_THREADS = 4
# Explanations whose Bayes factor is below 20, exp of this, are not told apart.
CLEAR = 3.0
# The value explains a mask "nearly as well" as the other columns from this fraction of their nats.
NEARLY = 0.9
UNCLEAR = (
    " The data hardly tell whether its value or another column explains its mask (log Bayes "
    "factor: {:.1f} nats): compare assumptions, or state yours by mask_model."
)
OTHER_IS_BETTER = (
    " One other column explains its mask better (log Bayes factor: {:.1f} nats): compare "
    "assumptions, or state yours by mask_model."
)
BY_VALUE = (
    " Its value is excluded narrowly (log Bayes factors: {:.1f} nats against one other column, "
    "{:.1f} against any), and {} % of the draws impute its cells as missing by their value: "
    "compare assumptions, or state yours by mask_model."
)
NO_RISK = (
    "{}: by the stated assumption, no value goes missing more often than another: the masks "
    "contradict the assumption, or say nothing about it ({}).{}"
)
# How a stated explanation compares with a constant missing rate, by CLEAR.
STATED = {
    "contradicted": "This was stated, and explains its mask worse than a constant missing rate",
    "open": "This was stated; its mask neither supports nor contradicts it",
    "supported": "Its value explains its mask as assumed",
}
FEW = " Most of these values are missing: the data say little about how they are distributed."


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Mapping[str, Finding]):
    """Explanations of the missing cells of each column, by column name.

    Two explanations of the mask of a column are compared: the other columns (missing at random),
    and the value of the cell itself. The criteria are the likelihood of held-out masks and Bayes
    factors. The comparison proves neither explanation. It relies on the other columns being shadow
    variables: given the value of the cell, they do not influence whether it is missing.

    Parameters
    ----------
    features : Features
        The other columns as features.
    findings : mapping of str to Finding
        What was compared and chosen for each column with missing cells.
    gaussian : Gaussian, optional
        Model that predicts cells, for imputers without one.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from psmvae import MICEImputer
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> df = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=500)})
    >>> df.loc[(df["y"] > 1) & (rng.random(500) < 0.6), "y"] = np.nan
    >>> imputer = MICEImputer(mask_model="auto", random_state=0).fit(df)
    >>> imputer.mechanism_["y"].chosen
    'own value'
    >>> imputer.mechanism_.summary()["column"].tolist()
    ['y']
    """

    features: Features
    findings: Mapping[str, Finding]
    gaussian: Gaussian | None = None

    @classmethod
    def fit(
        cls,
        columns: tuple[Column, ...],
        x: Floats,
        m: Bools,
        predictions: Mapping[int, Floats],
        held_out: Bools | None,
        questions: Mapping[int, Question],
        *,
        seed: int,
        n_jobs: int | None = None,
        deadline: float | None = None,
    ) -> Mechanism:
        """Compare the explanations of the masks of the columns in ``questions``.

        Parameters
        ----------
        columns : tuple of Column
            The columns.
        x, m : ndarray of shape (n_rows, n_columns)
            Model values and mask of the training table.
        predictions : mapping of int to ndarray
            Prediction of the cells of each column in ``questions`` by a model that does not see
            them: means, or probabilities of levels.
        held_out : ndarray of bool of shape (n_rows, n_columns), optional
            Cells that the model was not trained on.
        questions : mapping of int to Question
            What is asked about a column.
        seed : int
            Seed of folds and forests.
        n_jobs : int, optional
            Jobs that grow forests.
        deadline : float, optional
            Time of `time.perf_counter` after which no further column is examined. Columns with many
            missing cells come first.
        """
        predictors = Predictors.fit(columns, x, m)
        together = {j: missing_with(m, j) for j in questions}
        return cls._fit(
            predictors, x, m, predictions, held_out, questions, together, seed=seed, n_jobs=n_jobs,
            deadline=deadline,
        )  # fmt: skip

    @classmethod
    def _fit(
        cls,
        predictors: Predictors,
        x: Floats,
        m: Bools,
        predictions: Mapping[int, Floats],
        held_out: Bools | None,
        questions: Mapping[int, Question],
        together: Mapping[int, tuple[int, ...]],
        *,
        seed: int,
        n_jobs: int | None,
        deadline: float | None = None,
    ) -> Mechanism:
        """Fit as `fit`; ``together`` are the columns of `missing_with`."""
        features = Features.of(predictors, m)
        table = features.table(x, m)

        def fit(j: int) -> Finding | None:
            if deadline is not None and time.perf_counter() > deadline:
                return None
            cells = _cells(features, table, j, x, m, predictions[j], held_out, together[j])
            question = _in_units_of_predictor(predictors, j, questions[j])
            return fit_column(cells, question, seed + 104_729 * j, n_jobs)

        ordered = sorted(questions, key=lambda j: m[:, j].sum())
        # the matrices are small: several threads of BLAS take longer than one
        with one_blas_thread() as n, ThreadPoolExecutor(min(n, MAX_THREADS)) as pool:
            each = dict(zip(ordered, pool.map(fit, ordered), strict=True))
        found = {j: finding for j in sorted(each) if (finding := each[j]) is not None}
        return cls(features, {predictors.columns[j].name: one for j, one in found.items()})

    @classmethod
    def fit_gaussian(
        cls,
        columns: tuple[Column, ...],
        x: Floats,
        m: Bools,
        questions: Mapping[int, Question],
        *,
        seed: int,
        n_jobs: int | None = None,
    ) -> Mechanism:
        """Fit with predictions by a multivariate Normal, for imputers that have none.

        Parameters
        ----------
        columns : tuple of Column
            The columns.
        x, m : ndarray of shape (n_rows, n_columns)
            Model values and mask of the training table.
        questions : mapping of int to Question
            What is asked about a column.
        seed : int
            Seed of folds and forests.
        n_jobs : int, optional
            Jobs that grow forests.

        Returns
        -------
        Mechanism
            With its Gaussian model.
        """
        predictors = Predictors.fit(columns, x, m)
        with one_blas_thread():
            gaussian = Gaussian.fit(predictors, x, m, seed)
            together = {j: missing_with(m, j) for j in questions}
            predictions = gaussian.predict(predictors, x, m, together, observed=True)
        made = cls._fit(
            predictors, x, m, predictions, None, questions, together, seed=seed, n_jobs=n_jobs
        )
        return replace(made, gaussian=gaussian)

    def predict(self, x: Floats, m: Bools) -> dict[int, Floats]:
        """Predict the missing cells of tilted columns in new rows by the Gaussian model.

        Parameters
        ----------
        x, m : ndarray of shape (n_rows, n_columns)
            Model values and mask.

        Returns
        -------
        dict of int to ndarray
            Means in model values, or probabilities of levels, by column.
        """
        if self.gaussian is None:
            raise ValueError("There is no Gaussian model: the imputer predicts cells itself.")
        together = {j: draws.missing_with for j, draws in self.log_odds.items()}
        return self.gaussian.predict(self.features.predictors, x, m, together)

    def __getitem__(self, name: str) -> Finding:
        if name not in self.findings:
            raise KeyError(
                f"the masks of {name!r} were not examined; those of {quoted(self.findings)} were."
            )
        return self.findings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns of the table."""
        return self.features.predictors.columns

    @property
    def tilts(self) -> dict[int, Tilt]:
        """The tilts that are used, by the number of the column."""
        return {
            j: finding.tilt
            for j, column in enumerate(self.columns)
            if (finding := self.findings.get(column.name)) is not None and finding.tilt is not None
        }

    @property
    def drawn_tilts(self) -> dict[int, Tilt]:
        """The tilts that draws use, by the number of the column: `tilts` and alternatives."""
        return {
            j: finding.drawn
            for j, column in enumerate(self.columns)
            if (finding := self.findings.get(column.name)) is not None and finding.drawn is not None
        }

    @property
    def log_odds(self) -> dict[int, LogOdds]:
        """Drawn log odds of going missing, by the number of the column."""
        return {j: tilt.draws for j, tilt in self.drawn_tilts.items()}

    def correct(
        self, points: Floats, x: Floats, m: Bools, predictions: Mapping[int, Floats]
    ) -> Floats:
        """Return single imputations with those of the tilted columns replaced.

        Parameters
        ----------
        points : ndarray of shape (n_rows, n_columns)
            Single imputations, as model values.
        x, m : ndarray of shape (n_rows, n_columns)
            Model values and mask of the table.
        predictions : mapping of int to ndarray
            Predictions of the missing cells of each column.
        """
        if not self.tilts:
            return points
        table, corrected = self.features.table(x, m), points.copy()
        for j, tilt in self.tilts.items():
            rows = np.flatnonzero(~m[:, j])
            others, applies = self.features.of_others(j, table)[rows], tilt.draws.applies(m[rows])
            own = self._own(j, predictions[j][rows])
            if own.ndim > 1:
                corrected[rows, j] = tilt.distribution(others, own, applies).argmax(1)
            elif self.columns[j].kind in LOGARITHMIC:
                # the mean of the values is not exp of the mean of their logarithms
                distribution = tilt.distribution(others, own, applies)
                corrected[rows, j] = self._mean_of_logs(j, tilt, distribution)
            else:
                corrected[rows, j] = self.model_values(j, tilt.mean(others, own, applies))
        return corrected

    def redraw(
        self,
        drawn: NDArray[Any],
        x: Floats,
        m: Bools,
        predictions: Mapping[int, Floats],
        seed: int,
    ) -> NDArray[Any]:
        """Return draws ``(row, draw, column)`` with those of the tilted columns replaced.

        Values are drawn from the tilted distribution of each row, with a draw of γ for each table.
        Where the comparison of explanations is not clear, γ is 0 in a share of the tables, which
        keep their draws.

        Parameters
        ----------
        drawn : ndarray of shape (n_rows, n_draws, n_columns)
            Draws, as model values.
        x, m : ndarray of shape (n_rows, n_columns)
            Model values and mask of the table.
        predictions : mapping of int to ndarray
            Predictions of the missing cells of each column.
        seed : int
            Seed of the draws.
        """
        table, redrawn = self.features.table(x, m), drawn.copy()
        for j, tilt in self.drawn_tilts.items():
            rows = np.flatnonzero(~m[:, j])
            own, applies = self._own(j, predictions[j][rows]), tilt.draws.applies(m[rows])
            p_obs = tilt.p_obs(self.features.of_others(j, table)[rows], own)
            for k in np.flatnonzero(tilt.draws.are_tilted(range(drawn.shape[1]))).tolist():
                values = tilt.draw(p_obs, k, np.random.default_rng([seed, j, k]), applies)
                is_level = bool(self.columns[j].levels)
                redrawn[rows, k, j] = values if is_level else self.model_values(j, values)
        return redrawn

    def at_risk(self, x: Floats, m: Bools, predictions: Mapping[int, Floats]) -> Floats:
        """Return the probability that each row is at risk, ``(row, tilted column)``.

        A row is at risk if its value is in the bins where values go missing most. This is known
        where the value is observed.

        Parameters
        ----------
        x, m : ndarray of shape (n_rows, n_columns)
            Model values and mask of the table.
        predictions : mapping of int to ndarray
            Predictions of the missing cells of each column.
        """
        table, found = self.features.table(x, m), []
        for j, tilt in self.tilts.items():
            rows, risky = ~m[:, j], tilt.at_risk()
            own = self._own(j, predictions[j])
            values = np.zeros(len(x))
            if rows.any():
                others = self.features.of_others(j, table)[rows]
                applies = tilt.draws.applies(m[rows])
                values[rows] = tilt.distribution(others, own[rows], applies)[:, risky].sum(1)
            seen = x[~rows, j]
            if not self.columns[j].levels:
                seen = self.features.predictors.encode(j, seen)[:, 0]
            values[~rows] = risky[tilt.bins.index(seen)]
            found.append(values)
        return np.column_stack(found) if found else np.zeros((len(x), 0))

    def sentence(self, column: str) -> str:
        """Return what was compared and chosen for a column, in one to five sentences.

        Parameters
        ----------
        column : str
            Name of the column.

        Returns
        -------
        str
            Words that compare explanations; they do not claim a proof.
        """
        finding = self[column]
        own, others = finding.likelihoods.own_value, finding.likelihoods.at_random
        if np.isnan(own):
            return (
                f"{column}: too few missing or distinct cells to compare explanations of its mask."
            )
        joint = self._joint_words(column)
        # 0.0 is added for rounded numbers below 0, so that none is "-0.0"
        own, others = round(own, 1) + 0.0, round(others, 1) + 0.0
        compared = (
            f"log-likelihood of held-out masks above that of a constant rate: {own:.1f} nats by "
            f"its value, {others:.1f} by the other columns"
        )
        # NaN without the second comparison: the value explains little
        factor = finding.log_bayes_factors.one_column
        if finding.alternative is not None:
            factors = (round(each, 1) + 0.0 for each in finding.log_bayes_factors)
            joint += BY_VALUE.format(*factors, round(100 * finding.share_by_value))
        elif not finding.assumed and abs(factor) < CLEAR:
            joint += UNCLEAR.format(round(factor, 1) + 0.0)
        if finding.tilt is None:
            return f"{column}: taken to be missing at random ({compared}).{joint}"
        if not finding.tilt.at_risk().any():
            return NO_RISK.format(column, compared, joint)
        if not finding.assumed and factor <= -CLEAR:
            joint += OTHER_IS_BETTER.format(factor)
        j = [each.name for each in self.columns].index(column)
        if finding.assumed:
            supported = "supported" if own >= CLEAR else "open"
            result = STATED["contradicted" if own <= -CLEAR else supported]
        elif own >= NEARLY * others:
            nearly = "" if own >= others else "nearly "
            result = f"Its value explains its mask {nearly}as well as the other columns do"
        else:
            result = "Its value explains its mask less well than the other columns do"
        if share := round(100 * (1 - finding.share_by_value)):
            joint += f" {share} % of the draws impute its cells as missing at random."
        return (
            f"{at_risk_words(self, j, finding.tilt)}. {result} ({compared}).{joint}"
            f"{FEW if few_observed(finding.tilt) else ''}"
        )

    def _joint_words(self, column: str) -> str:
        """Return how many cells are missing because another column is, or nothing."""
        finding = self.findings[column]
        if not finding.n_joint:
            return ""
        return (
            f" {finding.n_joint:,} of its {finding.n_missing:,} missing cells are in rows where a "
            "column is missing that is hardly ever missing without it. They are taken to be "
            "missing for that reason, and are not part of this comparison."
        )

    def __repr__(self) -> str:
        by_choice = Counter(finding.chosen for finding in self.findings.values())
        counted = ", ".join(f"{n:,} {chosen}" for chosen, n in by_choice.most_common())
        columns = f"{len(self.findings):,} column{'' if len(self.findings) == 1 else 's'}"
        return f"<Mechanism of {columns}{counted and f': {counted}'}>"

    def __str__(self) -> str:
        if not self.findings:
            return "No explanations of masks were compared."
        return "\n".join(self.sentence(name) for name in self.findings)

    def _repr_html_(self) -> str:
        rows = [["column", "missing", "chosen", "nats by its value", "nats by the others"]]
        for name, one in self.findings.items():
            nats = [number(each, 3) for each in one.likelihoods[1::-1]]
            rows.append([name, share(one.n_missing / one.n_rows), one.chosen, *nats])
        texts = [
            self.sentence(name) for name, one in self.findings.items() if one.drawn is not None
        ]
        return as_html([shortened(Section("Explanations of the missing cells", rows, texts))])

    def summary(self, *, backend: Backend = "pandas") -> Any:
        """Return what was compared and chosen, one row for each column with missing cells.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Library of the frame.

        Returns
        -------
        frame
            ``column``, ``missing`` (fraction), ``chosen``, the log-likelihoods of held-out masks
            in nats above a constant missing rate (``at_random``, ``own_value``, ``both``), the
            logarithms of the Bayes factors of the value against the other columns
            (``log_bf_one_column``, ``log_bf_any_columns``), the share of the draws that impute its
            cells as missing by their value (``share_by_value``), and for a tilted column its
            ``shape`` and the ``at_risk`` fraction of the observed cells.
        """
        return nw.from_dict(self._by_column(), backend=backend).to_native()

    def records(self) -> list[dict[str, Any]]:
        """Return the rows of `summary` as plain values that JSON can hold."""
        data = self._by_column()
        rows = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
        return [{name: _without_nan(value) for name, value in row.items()} for row in rows]

    def _by_column(self) -> dict[str, list[Any]]:
        found = list(self.findings.values())
        tilts = [finding.tilt for finding in found]
        return {
            "column": list(self.findings),
            "missing": [each.n_missing / each.n_rows for each in found],
            "chosen": [each.chosen for each in found],
            "at_random": [each.likelihoods.at_random for each in found],
            "own_value": [each.likelihoods.own_value for each in found],
            "both": [each.likelihoods.both for each in found],
            "log_bf_one_column": [each.log_bayes_factors.one_column for each in found],
            "log_bf_any_columns": [each.log_bayes_factors.any_columns for each in found],
            "share_by_value": [each.share_by_value for each in found],
            "shape": [None if tilt is None else tilt.family for tilt in tilts],
            "at_risk": [
                np.nan if tilt is None else float(tilt.bins.share[tilt.at_risk()].sum())
                for tilt in tilts
            ],
        }

    def odds(self, column: str, *, level: float = 0.9, backend: Backend = "pandas") -> Any:
        """Return the probability of going missing by the value of a tilted column.

        Parameters
        ----------
        column : str
            Name of the column.
        level : float, default=0.9
            Level of the pointwise band.
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Library of the frame.

        Returns
        -------
        frame
            ``value`` (mean of a bin, or level), ``share`` of the observed cells, ``probability``,
            ``low`` and ``high``.

        Raises
        ------
        KeyError
            If the column has no missing cells.
        ValueError
            If cells of the column are taken to be missing at random.
        """
        tilt = self[column].tilt
        if tilt is None:
            raise ValueError(
                f"Cells of {column!r} are taken to be missing at random: there are no odds by "
                f"value. Columns with odds: {[self.columns[j].name for j in self.tilts]}."
            )
        j = [each.name for each in self.columns].index(column)
        low, high = tilt.band(level)
        data = {
            "value": self.in_units(j, tilt.bins.value),
            "share": tilt.bins.share,
            "probability": tilt.probability(),
            "low": low,
            "high": high,
        }
        return nw.from_dict(data, backend=backend).to_native()

    def model_values(self, j: int, z: Floats) -> Floats:
        """Return model values of values in units of the predictor.

        Parameters
        ----------
        j : int
            Number of the column.
        z : ndarray
            Standardised values.
        """
        at = self.features.predictors.of(j)[0]
        raw = z * self.features.predictors.scale[at] + self.features.predictors.center[at]
        if self.columns[j].kind == "count":
            raw = np.maximum(np.expm1(np.minimum(raw, 30.0)), 0.0)
        return np.asarray(raw)

    def in_units(self, j: int, z: Floats) -> Any:
        """Return values in units of the table, or levels.

        Parameters
        ----------
        j : int
            Number of the column.
        z : ndarray
            Standardised values, or codes of levels.
        """
        column = self.columns[j]
        if column.levels:
            return [column.levels[int(code)] for code in z]
        return KINDS[column.kind].restore(self.model_values(j, z), column)

    def _mean_of_logs(self, j: int, tilt: Tilt, distribution: Floats) -> Floats:
        """Return the model value of E[x] of a column whose predictor is a logarithm."""
        column, values = self.columns[j], self.model_values(j, tilt.bins.value)
        if column.kind == "count":
            return np.asarray(distribution @ values)
        largest = values.max()
        mean = distribution @ np.exp(column.scale * (values - largest))
        return np.asarray(largest + np.log(mean) / column.scale)

    def _own(self, j: int, prediction: Floats) -> Floats:
        """Return the prediction in units of the predictor, or the probabilities."""
        if prediction.ndim > 1:
            return prediction
        return self.features.predictors.encode(j, prediction)[:, 0]


def _without_nan(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value


def _in_units_of_predictor(predictors: Predictors, j: int, question: Question) -> Question:
    """Return the question with its slope for one unit of the predictor."""
    if question.slope is None:
        return question
    column = predictors.columns[j]
    unit = float(predictors.scale[predictors.of(j)[0]])
    # the model values of counts are counts, and predictors are their logarithms
    if column.kind != "count":
        unit *= column.scale
    return replace(question, slope=Slope(question.slope.mean * unit, question.slope.sd * unit))


def _cells(
    features: Features,
    table: Floats,
    j: int,
    x: Floats,
    m: Bools,
    prediction: Floats,
    held_out: Bools | None,
    together: tuple[int, ...],
) -> Cells:
    """Return one column of the training table."""
    column, observed = features.predictors.columns[j], m[:, j]
    values = x[observed, j]
    if not column.levels:
        values = features.predictors.encode(j, values)[:, 0]
        if prediction.ndim == 1:
            prediction = features.predictors.encode(j, prediction)[:, 0]
            if held_out is not None:
                prediction = leave_one_out(prediction, values, observed, held_out[:, j])
    return Cells(
        values,
        observed,
        prediction,
        features.of_others(j, table),
        features.group[features.group != j],
        features.is_mask[features.group != j],
        column.n_levels if column.levels else 0,
        column.kind != "categorical",
        column.kind in LOGARITHMIC,
        np.asarray(m[:, list(together)].all(1)),
        together,
    )
