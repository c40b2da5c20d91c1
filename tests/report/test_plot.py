"""psmvae.plot: pictures of the user's objects."""

import json

import numpy as np
import pytest
from scipy.integrate import trapezoid

import psmvae
from psmvae import MICEImputer, plot

pytest.importorskip("matplotlib")
pd = pytest.importorskip("pandas")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

HOSTILE = "<b>$x^2$</b>\n"


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 300
    age = rng.normal(50, 10, n)
    df = pd.DataFrame(
        {
            "age": age,
            "bmi": 25 + 0.1 * (age - 50) + rng.normal(0, 3, n),
            HOSTILE: rng.normal(size=n),
            "smoker": rng.choice(["no", "yes", "former"], n),
        }
    )
    df.loc[age > 58, "bmi"] = np.nan
    df.loc[rng.random(n) < 0.2, HOSTILE] = np.nan
    df.loc[rng.random(n) < 0.1, "smoker"] = None
    return df


@pytest.fixture(scope="module")
def imputer(table):
    return MICEImputer(max_iter=4, random_state=0).fit(table)


@pytest.fixture(scope="module")
def mi(imputer, table):
    return imputer.impute_multiple(table, m=3)


@pytest.fixture(scope="module")
def fits(mi):
    return mi.analyse(mean_of_bmi)


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def mean_of_bmi(table):
    return {"mean": (table["bmi"].mean(), table["bmi"].var() / len(table))}


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.fixture
def no_figure_stays_open():
    before = plt.get_fignums()
    yield
    plt.close("all")
    assert plt.get_fignums() == before


def test_missing_rates(table, ax):
    assert plot.missing_rates(table, ax=ax) is ax
    expected = table.isna().mean().sort_values(ascending=False)
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, expected[expected > 0])


def test_pattern_counts_rows(table, ax):
    plot.pattern(table, ax=ax)
    counts = table.isna().value_counts()
    assert [int(text.get_text()) for text in ax.texts] == counts.tolist()
    # by increasing number of missing cells
    assert names(ax) == ["smoker", "bmi", "<b>$x^2$</b>"]


def test_correlation_of_masks(table, ax):
    plot.correlation(table, ax=ax)
    values = ax.collections[0].get_array().compressed()
    expected = table.isna().corr().loc[["bmi", HOSTILE, "smoker"], ["bmi", HOSTILE, "smoker"]]
    lower = expected.to_numpy()[np.tril_indices(3, -1)]
    np.testing.assert_allclose(np.sort(values), np.sort(lower))


def test_flux(table, ax):
    plot.flux(table, ax=ax)
    x, y = ax.lines[1].get_data()
    described = psmvae.missingness(table).flux
    np.testing.assert_allclose(np.sort(x), np.sort(described["influx"]))
    np.testing.assert_allclose(np.sort(y), np.sort(described["outflux"]))


def test_row_map(table, ax):
    plot.row_map(table, ax=ax)
    assert ax.get_xlim() == (0, len(table))


def test_mechanism_without_a_comparison_is_a_histogram(imputer, table, ax):
    plot.mechanism(imputer, table, "bmi", ax=ax)
    assert list(ax.lines) == []
    assert ax.get_xlabel() == "bmi"


def test_mechanism_with_odds(table, ax):
    imputer = MICEImputer(mask_model=psmvae.SelfMask(columns=["bmi"]), max_iter=2, random_state=0)
    plot.mechanism(imputer.fit(table), table, "bmi", ax=ax)
    odds = imputer.mechanism_.odds("bmi")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), odds["probability"], atol=1e-5)


def test_predictors(table, ax):
    plot.predictors(table, "bmi", ax=ax)
    assert names(ax)[0] == "age"
    assert names(ax)[-1] == "all other columns"
    # bmi is missing where age is above 58, and only there
    assert ax.lines[1].get_xdata()[0] == pytest.approx(1)


def test_densities_of_a_column(mi, ax):
    assert plot.densities(mi, "bmi", ax=ax) is ax
    assert len(ax.lines) == 1 + mi.m
    for line in ax.lines:
        assert trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(1, abs=0.05)


def test_densities_of_all_columns(mi):
    axes = plot.densities(mi, ax=Figure().subplots(1, 3))
    assert len(axes) == 3
    assert sorted(len(ax.patches) for ax in axes) == [0, 0, 6]
    with pytest.raises(ValueError, match="3 columns need 3 axes, got 1"):
        plot.densities(mi, ax=Figure().subplots())


def test_a_constant_column_has_no_density(table):
    table = table.assign(constant=1.5)
    table.loc[:20, "constant"] = np.nan
    completed = psmvae.MultipleImputation(table, (table.ffill().bfill(),), table.isna().to_numpy())
    assert len(plot.densities(completed, ax=Figure().subplots(1, 3))) == 3
    with pytest.raises(ValueError, match="'constant' has too few distinct values"):
        plot.densities(completed, "constant", ax=Figure().subplots())


def test_strip(mi, ax):
    plot.strip(mi, "bmi", ax=ax)
    assert names(ax) == ["observed", "imputed 1", "imputed 2", "imputed 3"]


def test_scatter(mi, table, ax):
    plot.scatter(mi, "age", "bmi", ax=ax)
    assert len(ax.lines[1].get_xdata()) == table["bmi"].isna().sum()


def test_held_out_cells(imputer, table, ax):
    plot.overimpute(imputer, table, HOSTILE, ax=ax)
    assert len(ax.get_legend().get_texts()) == 2
    other = Figure().subplots()
    plot.pit(imputer, table, "age", ax=other)
    assert sum(bar.get_height() for bar in other.containers[0]) == 30
    axes = plot.errors(imputer, table, ax=Figure().subplots(2))
    assert names(axes[0]) == ["age", "bmi", "<b>$x^2$</b>"]
    assert names(axes[1]) == ["smoker"]


def test_convergence(imputer, mi, ax):
    plot.convergence(imputer, ax=ax)
    assert sorted(names(ax)) == sorted(["bmi", "<b>$x^2$</b>", "smoker"])
    other = Figure().subplots()
    plot.convergence(imputer, "bmi", ax=other)
    assert len(other.lines) == imputer.convergence().mean.shape[1]


def test_estimates(fits, ax):
    plot.estimates(fits, ax=ax)
    pooled = next(line for line in ax.lines if "pooled" in line.get_label())
    assert pooled.get_xdata()[0] == pytest.approx(fits.pool().summary()["estimate"][0])


def test_tipping_point(mi, ax):
    found = psmvae.tipping_point(mi, mean_of_bmi, "bmi", [0, 1, 2], null=25)
    assert plot.tipping_point(found, ax=ax) is ax


def test_polars_frames(ax):
    pl = pytest.importorskip("polars")
    plot.missing_rates(pl.DataFrame({"a": [1.0, None], "b": [1.0, 2.0]}), ax=ax)
    assert [bar.get_width() for bar in ax.patches] == [0.5]


@pytest.mark.parametrize("draw", [plot.missing_rates, plot.pattern, plot.flux, plot.row_map])
def test_a_new_figure_of_pyplot(table, draw, no_figure_stays_open):
    made = draw(table)
    assert isinstance(made, Axes)
    assert plt.gcf() is made.figure
    # matplotlib finds no glyph for a line break or an unknown letter, and is not asked to
    made.figure.canvas.draw()


def test_panels_of_pyplot(mi, no_figure_stays_open):
    assert len(plot.densities(mi)) == 3


@pytest.mark.parametrize(
    "draw", [plot.missing_rates, plot.pattern, plot.correlation, plot.flux, plot.row_map]
)
def test_a_complete_table(draw):
    with pytest.raises(ValueError, match="no missing cells, so there is nothing to draw"):
        draw(np.ones((3, 2)))


@pytest.mark.parametrize(
    ("draw", "match"),
    [
        (lambda i, t, mi: plot.mechanism(i, t, "nonsense"), "no column 'nonsense'; the columns"),
        (lambda i, t, mi: plot.mechanism(i, t, "age"), "'age' has no missing cells"),
        (lambda i, t, mi: plot.predictors(t, "age"), "'age' has no missing cells"),
        (lambda i, t, mi: plot.densities(mi, "age"), "'age' has no imputed cells"),
        (lambda i, t, mi: plot.strip(mi, "smoker"), "'smoker' has levels"),
        (lambda i, t, mi: plot.scatter(mi, "age", "smoker"), "'smoker' is categorical"),
        (lambda i, t, mi: plot.overimpute(i, t, "smoker"), "'smoker' has levels"),
        (lambda i, t, mi: plot.sets(i, t), "MICEImputer has no pattern sets"),
        (lambda i, t, mi: plot.training(i), "MICEImputer has no course of training"),
        (lambda i, t, mi: plot.convergence(psmvae.MeanImputer()), "MeanImputer has no chains"),
        (lambda i, t, mi: plot.convergence(i, "age"), "'age' has no traces"),
    ],
)
def test_what_cannot_be_drawn(imputer, table, mi, draw, match):
    before = plt.get_fignums()
    with pytest.raises(ValueError, match=match):
        draw(imputer, table, mi)
    assert plt.get_fignums() == before


def test_the_module_is_loaded_on_first_use(python):
    code = (
        "import json, sys, psmvae\n"
        "before = 'psmvae.plot' in sys.modules\n"
        "psmvae.plot.pattern\n"
        "print(json.dumps([before, 'plot' in dir(psmvae), 'matplotlib' in sys.modules]))"
    )
    assert json.loads(python(code)) == [False, True, False]
