"""The report of the demo."""

import pytest

from psmvae.demo.files import make_report
from psmvae.demo.study import run_study


@pytest.mark.filterwarnings("ignore:more than half of the information")
def test_estimates_are_those_of_the_terminal():
    study = run_study(n=150, max_epochs=1, device="cpu")
    data = make_report(study, validate=False).json()
    rows = {row["term"]: row for row in data["results"]["estimates"]}
    assert data["results"]["dfcom"] == 148
    assert list(rows) == [one.term for one in study.estimates]
    for one in study.estimates:
        row = rows[one.term]
        shown = (one.estimate, one.conf_low, one.conf_high)
        assert shown == pytest.approx((row["estimate"], row["conf_low"], row["conf_high"]))
