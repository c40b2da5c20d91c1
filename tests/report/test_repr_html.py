"""How objects show themselves: as text, and as HTML in a notebook."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context

import psmvae
from psmvae import MICEImputer
from psmvae.multiple import Analyses
from psmvae.table.numbers import decimals, interval, number, p_value, share
from psmvae.table.sections import Section, as_html, as_text, shortened

HOSTILE = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"arm": rng.integers(0, 2, 200), HOSTILE: rng.normal(size=200)})
    df[HOSTILE] += df["arm"]
    df.loc[rng.random(200) < 0.2, HOSTILE] = np.nan
    return df


@pytest.fixture(scope="module")
def imputer(table):
    return MICEImputer(mask_model="auto", random_state=0).fit(table)


@pytest.fixture(scope="module")
def mi(imputer, table):
    return imputer.impute_multiple(table, m=10)


def difference(table):
    """Difference of means between arms, and its variance."""
    one, other = (table.loc[table["arm"] == k, HOSTILE].dropna() for k in (1, 0))
    variance = one.var() / len(one) + other.var() / len(other)
    return {f"difference of {HOSTILE}": (one.mean() - other.mean(), variance)}


def check(shown):
    """The HTML has the words of the text, escaped."""
    text, html = repr(shown), shown._repr_html_()
    assert HOSTILE in text
    assert HOSTILE not in html
    assert "&lt;script&gt;" in html
    assert '<div class="psm-repr">' in html
    return text


def test_imputations(mi, table):
    text = check(mi)
    n = int(table[HOSTILE].isna().sum())
    assert text.startswith("10 imputations by MICEImputer\n")
    assert re.search(rf"{re.escape(HOSTILE)} +{n} +{n / 2:.1f} %", text)
    assert "shifted" not in text
    assert "Imputed cells were shifted" in repr(mi.shift({HOSTILE: 1}))


def test_pooled_results_and_analyses(mi):
    fits = mi.analyse(difference)
    pooled = fits.pool(dfcom=198)
    text = check(pooled)
    assert text.startswith("Estimates pooled by Rubin's rules over 10 imputations\n")
    row = pooled.summary().iloc[0]
    for value in (row["estimate"], row["conf_low"], row["conf_high"], row["std_error"], row["df"]):
        assert number(value) in text
    assert check(fits).startswith("Analyses of 10 completed tables")


def test_pooled_results_on_another_scale_show_the_values_of_summary():
    pooled = Analyses([{"ratio": (2.0 + k / 100, 0.01)} for k in range(5)]).pool(scale="log")
    row = pooled.summary().iloc[0]
    assert "on the log scale" in repr(pooled)
    assert interval(row["conf_low"], row["conf_high"]) in repr(pooled)


def test_analyses_that_cannot_be_pooled_say_why():
    assert "They cannot be pooled" in repr(Analyses([object(), object()]))
    assert "at least 2 imputations" in repr(Analyses([{"a": (1.0, 1.0)}]))
    assert "at least 2 imputations" in repr(Analyses([]))


def test_tipping_point(mi):
    result = psmvae.tipping_point(mi, difference, HOSTILE, [-2, -1, 0, 1])
    text = check(result)
    assert re.search(r"\n +-2 +", text)
    assert " ".join(text.split()).endswith(" ".join(result.sentence().split()))
    assert text.count("holds\n") == int(result.holds.sum())


def test_assumptions(mi, table):
    result = psmvae.compare_assumptions(
        table, difference, ["complete cases", "mar"], imputer=MICEImputer(random_state=0), m=10
    )
    text = check(result)
    assert "complete cases" in text
    assert " ".join(text.split()).endswith(" ".join(result.sentence().split()))


def test_missingness(table):
    assert check(psmvae.missingness(table)) == psmvae.missingness(table).summary()


def test_imputers_show_their_columns_once_fitted(imputer):
    html = imputer._repr_mimebundle_()["text/html"]
    # scikit-learn numbers its diagrams
    unnumbered = re.compile(r"sk-(container-id|estimator-id)-\d+")
    assert unnumbered.sub("", html) == unnumbered.sub("", imputer._repr_html_())
    assert "Fitted on 200 rows and 2 columns" in html
    assert "missing by" in html
    assert HOSTILE not in html
    assert "sk-container" in html
    unfitted = MICEImputer()
    assert "psm-repr" not in unfitted._repr_html_()
    with config_context(display="text"):
        assert "text/html" not in imputer._repr_mimebundle_()
    assert repr(imputer) == "MICEImputer(mask_model='auto', random_state=0)"


def test_long_tables_are_cut():
    part = Section("title", [["name"], *([f"row {k}"] for k in range(30))], ["end"])
    text = as_text([shortened(part)])
    assert "row 19" in text
    assert "row 20" not in text
    assert "… and 10 more rows; see summary()." in text


def test_long_names_are_cut_in_text_only():
    part = Section("title", [["name", "n"], ["a" * 300, "-1"], ["b\nc", "< 2"]], [])
    lines = as_text([part]).splitlines()
    assert max(map(len, lines)) < 80
    assert lines[3].split() == ["b", "c", "<", "2"]
    assert "a" * 300 in as_html([part])
    assert as_html([part]).count('class="psm-right"') == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (share(0.1234), "12.3 %"),
        (share(0.0), "0.0 %"),
        (share(0.0001), "< 0.1 %"),
        (share(0.9999), "> 99.9 %"),
        (share(1.0), "100.0 %"),
        (share(None), "–"),
        (number(1234.5678), "1,235"),
        (number(-0.00123456), "-0.001235"),
        (number(0.5), "0.5"),
        (number(120.0), "120"),
        (number(1e-9), "1e-09"),
        (number(2.5e8), "2.5e+08"),
        (number(1.23456e-7), "1.235e-07"),
        (number(-12345678.0, 3), "-1.23e+07"),
        (number(0), "0"),
        (number(float("inf")), "∞"),
        (number(float("nan")), "–"),
        (number(None), "–"),
        (p_value(0.0001), "< 0.001"),
        (p_value(0.0456), "0.046"),
        (p_value(None), "–"),
        (decimals(1.0, 2), "1.00"),
        (decimals(None, 2), "–"),
        (interval(1, None), "–"),
        (interval(1, 2.5, 1), "1.0 to 2.5"),
    ],
)
def test_numbers(text, expected):
    assert text == expected
