"""The data of a report: what `Report.json` returns.

Everything that the page, the Markdown text and the pictures show is in this dictionary. Values are
plain Python objects that JSON can hold: None stands for a number that is not defined, never NaN.
Names of columns and levels are text as the user wrote it; nothing is escaped here.

A section is None if what it needs was not given: "mechanism" has no comparison without a fitted
imputer that made one, "imputed" needs imputations, "validation" an imputer, "results" analyses or a
sensitivity analysis.
"""

from __future__ import annotations

from typing import Literal, TypedDict

__all__ = ["SCHEMA", "ReportData"]

SCHEMA = 1
"""Version of the dictionary; increased when a field changes its meaning."""

Number = float | None


class TableData(TypedDict):
    """Size of the table, and which of its columns and rows are shown."""

    n_rows: int
    n_columns: int
    n_cells: int
    n_missing: int
    n_complete_rows: int
    n_incomplete_columns: int
    shown: list[str]
    """Columns shown in full: those with the highest missing rates, at most ``max_columns``."""
    n_sampled: int
    """Rows of Little's test, of predictors of missing cells and of scatter plots, at most: all of
    them, or a sample drawn with ``random_state``."""


class SummaryData(TypedDict):
    """Section 1, In short."""

    sentences: list[str]
    """Five: how much is missing, in which sets, by what mechanism, how good, what to beware of."""
    warnings: list[str]


class ColumnRate(TypedDict):
    """Missing cells of one column."""

    name: str
    kind: str
    n_missing: int
    fraction: float
    influx: Number
    outflux: Number


class PatternRow(TypedDict):
    """A pattern of missing cells."""

    observed: list[bool]
    """In the order of ``PatternData.columns``."""
    n: int
    fraction: float
    n_missing: int


class PatternData(TypedDict):
    """Distinct patterns, most frequent first, as in ``md.pattern`` of R's mice."""

    columns: list[str]
    """All incomplete columns, shown or not, by increasing number of missing cells."""
    rows: list[PatternRow]
    n_patterns: int
    """Number of distinct patterns; ``rows`` has at most 25."""


class CorrelationData(TypedDict):
    """Correlations of the masks of incomplete columns, in the order of a clustering."""

    columns: list[str]
    values: list[list[Number]]


class RowMapData(TypedDict):
    """Missing fractions of blocks of consecutive rows."""

    columns: list[str]
    first_row: list[int]
    """Number of the first row of each block, from 0; at most 100 blocks."""
    fraction: list[list[float]]
    """By block, then column."""


class LittleData(TypedDict):
    """Little's test of values missing completely at random; None where it could not be made."""

    statistic: Number
    df: Number
    p_value: Number
    sentence: str


class MissingData(TypedDict):
    """Section 2, What is missing."""

    columns: list[ColumnRate]
    """All columns, in the order of the table."""
    patterns: PatternData
    correlation: CorrelationData
    row_map: RowMapData
    little: LittleData


class Histogram(TypedDict):
    """Counts of observed values: of bins between ``edges``, or of ``levels``."""

    edges: list[float] | None
    levels: list[str] | None
    counts: list[int]


class OddsData(TypedDict):
    """Probability that a cell goes missing by its own value, with a pointwise 90 % band."""

    value: list[float | str]
    probability: list[float]
    low: list[float]
    high: list[float]


class PredictorData(TypedDict):
    """How well a column predicts the mask of another: area under the ROC curve, 95 % interval."""

    predictor: str
    by: Literal["value", "mask", "all other columns"]
    auc: Number
    conf_low: Number
    conf_high: Number


class MechanismColumn(TypedDict):
    """Explanations of the missing cells of one column."""

    name: str
    fraction: float
    chosen: str | None
    """"own value" or "at random"; None without a comparison."""
    assumed: bool
    likelihoods: dict[str, Number]
    """Log-likelihood of held-out masks by explanation, relative to completely at random."""
    share_by_value: float
    """Share of the draws that impute its cells as missing by their value."""
    at_risk: Number
    """Share of the observed cells with the higher probability of going missing."""
    sentence: str
    odds: OddsData | None
    observed: Histogram
    predictors: list[PredictorData]
    """The strongest first, at most five, then that of all other columns together."""


class SetData(TypedDict):
    """A pattern set."""

    number: int
    fraction: float
    mechanism: str
    missing: str
    differs_in: str
    mask_rates: dict[str, float]


class MechanismData(TypedDict):
    """Section 3, Why."""

    imputer: str | None
    compared: bool
    columns: list[MechanismColumn]
    """Shown incomplete columns, in the order of ``TableData.shown``."""
    own_value_found: list[str]
    """Incomplete columns, shown or not, whose cells are imputed as missing by their own value,
    because the comparison of explanations chose this."""
    own_value_assumed: list[str]
    """The same, where the user assumed it (`SelfMask`, ``mask_model="self"``)."""
    sets: list[SetData]


class ValueSummary(TypedDict):
    """Observed or imputed values of a numeric column."""

    n: int
    mean: Number
    sd: Number
    low: Number
    high: Number


class DensityData(TypedDict):
    """Densities on a common grid."""

    x: list[float]
    observed: list[float]
    imputed: list[list[float]]
    """By imputation, at most ten; empty where too few cells are imputed."""


class BarData(TypedDict):
    """Fractions of levels."""

    levels: list[str]
    observed: list[float]
    imputed: list[float]
    imputed_low: list[float]
    imputed_high: list[float]
    """Smallest and largest fraction over imputations."""


class StripData(TypedDict):
    """Values for a strip plot: observed ones, then those of single imputations (at most five)."""

    observed: list[float]
    imputed: list[list[float]]


class ImputedColumn(TypedDict):
    """Imputed cells of one column."""

    name: str
    kind: str
    n_imputed: int
    n_outside: int
    """Imputed values, of all imputations, outside the range of the observed ones."""
    observed: ValueSummary | None
    imputed: ValueSummary | None
    density: DensityData | None
    bars: BarData | None
    strip: StripData | None


class ScatterData(TypedDict):
    """Two numeric columns in the first imputation."""

    x: str
    y: str
    observed: list[list[float]]
    imputed: list[list[float]]
    """Pairs of which at least one value is imputed."""


class HeadData(TypedDict):
    """First rows of the first imputation."""

    columns: list[str]
    row_numbers: list[int]
    cells: list[list[str]]
    imputed: list[list[bool]]


class ImputedData(TypedDict):
    """Section 4, What was imputed."""

    imputer: str | None
    """Class of the imputer; None where the imputations do not say, such as those of a file."""
    m: int
    columns: list[ImputedColumn]
    scatters: list[ScatterData]
    head: HeadData


class ValidationColumn(TypedDict):
    """Held-out cells of one column."""

    name: str
    kind: str
    n: int
    error: dict[str, Number]
    """By method: RMSE in standard deviations, or the share of wrong levels."""
    coverage: Number
    """Share of 90 % intervals that contain the value; None for levels."""
    truth: list[float]
    """With ``point``, ``low`` and ``high``: at most 100 cells; empty for levels."""
    point: list[float]
    low: list[float]
    high: list[float]
    pit: list[int]
    """Counts of ten bins of the probability integral transform."""


class TrainingData(TypedDict):
    """Course of training."""

    epoch: list[int]
    validation_error: list[Number]
    seconds: Number


class ConvergenceData(TypedDict):
    """Chains of MICE: split R̂ of means and standard deviations, and traces of the means."""

    columns: list[str]
    r_hat_mean: list[Number]
    r_hat_sd: list[Number]
    traces: dict[str, list[list[float]]]
    """By column, then chain, then iteration; at most six columns."""


class ValidationData(TypedDict):
    """Section 5, Can it be believed."""

    sentence: str
    """What was held out, and whether the imputer was fitted again without it."""
    n_cells: int
    methods: list[str]
    """The imputer first, then the baselines."""
    error_numbers: dict[str, Number]
    """By method: mean RMSE of the numeric columns, in standard deviations; None without any."""
    error_levels: dict[str, Number]
    """By method: mean share of wrong levels of the columns with levels; None without any."""
    coverage: Number
    pit: list[int]
    columns: list[ValidationColumn]
    training: TrainingData | None
    effective_sample_size: list[float] | None
    """Quantiles 0, 5, 25, 50, 75, 95 and 100 % over rows."""
    convergence: ConvergenceData | None


class EstimateRow(TypedDict):
    """A pooled estimate, and that of complete cases where it is known."""

    term: str
    estimate: float
    std_error: Number
    """None, as the interval, for an analysis that gives no standard errors."""
    df: Number
    p_value: Number
    conf_low: Number
    conf_high: Number
    fmi: Number
    complete_cases: list[float] | None
    """Estimate and limits of the 95 % interval."""


class AssumptionRow(TypedDict):
    """An estimate under one assumption, with an interval of level 1 - ``alpha``."""

    assumption: str
    term: str
    estimate: float
    conf_low: float
    conf_high: float
    p_value: Number
    null: float
    alpha: float


class TippingData(TypedDict):
    """A tipping point analysis, with intervals of level 1 - ``alpha``."""

    column: str
    term: str
    operation: str
    """What is done with δ: "add", "multiply", "odds" or "odds of LEVEL"."""
    null: float
    alpha: float
    neutral: float
    """The δ that changes nothing."""
    axes: list[list[float]]
    """Values of δ: one list, or two by group."""
    groups: list[str]
    estimate: list[list[float]]
    """By the first axis, then the second (of length one without groups)."""
    conf_low: list[list[float]]
    conf_high: list[list[float]]
    p_value: list[list[Number]]
    margin: list[list[float]]
    """Distance of the limits from ``null``, positive where the conclusion holds."""
    holds: list[list[bool]]
    points: list[float]
    """Values of δ at which the conclusion turns; none with groups."""
    sentence: str


class ResultsData(TypedDict):
    """Section 6, What follows."""

    m: int | None
    dfcom: Number
    """Degrees of freedom of the analysis of complete data; None where they are infinite."""
    df_rule: Literal["barnard-rubin", "rubin"] | None
    """Degrees of freedom of pooled estimates. With infinite ``dfcom`` both rules are the same, and
    this is "rubin"."""
    estimates: list[EstimateRow]
    assumptions: list[AssumptionRow]
    assumptions_sentence: str | None
    tipping: TippingData | None


class Question(TypedDict):
    """One of twelve questions, after van Buuren's guideline for reporting."""

    question: str
    answer: str


class MethodsData(TypedDict):
    """Section 7, How to write it up."""

    paragraph: str
    questions: list[Question]
    versions: dict[str, str]
    seed: int | None
    parameters: dict[str, str]
    command: str


class ReportData(TypedDict):
    """A report."""

    schema: int
    title: str
    table: TableData
    summary: SummaryData
    missing: MissingData
    mechanism: MechanismData
    imputed: ImputedData | None
    validation: ValidationData | None
    results: ResultsData | None
    methods: MethodsData
