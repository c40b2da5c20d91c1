"""Formulas that are evaluated, and those that are refused before anything is."""

import pytest

pytest.importorskip("patsy")

from psmvae.cli.formula_check import parsed_formula
from psmvae.cli.terminal import UsageError

ALLOWED = [
    "y ~ x",
    "y ~ a * b + a:b - 1",
    "y ~ C(city)",
    "y ~ C(city, Treatment(reference='Basel'))",
    "y ~ C(city, levels=['a', 'b'])",
    "log(y) ~ np.log(x) + I(x ** 2) + I(x > 3)",
    "y ~ bs(x, df=4, degree=3) + center(x) + standardize(x)",
    "y ~ Q('blood pressure') + np.minimum(x, 5)",
    "y ~ 0 + (a + b) ** 2",
    "y ~ 1",
    "y ~ _x",
    "y ~ I(-x / 2 % 3)",
]
REFUSED = [
    "y ~ I(__import__('os').system('true'))",
    "y ~ __import__('os').system('true')",
    "y ~ eval('1')",
    "y ~ exec('x = 1')",
    "y ~ open('f', 'w')",
    "open('f', 'w') ~ x",
    "y ~ x.to_csv('f')",
    "y ~ x.__class__",
    "y ~ np.save('f', x)",
    "y ~ np.load('f')",
    "y ~ np.linalg.inv(x)",
    "y ~ np.log.__class__(x)",
    "y ~ getattr(x, 'to_csv')('f')",
    "y ~ I((lambda: 1)())",
    "y ~ I([x for x in y])",
    "y ~ I(x if y else z)",
    "y ~ I(x[0])",
    "y ~ I(f'{x}')",
    "y ~ C(*x)",
    "y ~ C(**x)",
    "y ~ I((z := 1))",
    "y ~ I(breakpoint())",
    "y ~ x:print(x)",
    f"y ~ I({'-' * 200}x)",
]


@pytest.mark.parametrize("formula", ALLOWED)
def test_allowed(formula):
    parsed_formula(formula)


@pytest.mark.parametrize("formula", REFUSED)
def test_refused(formula):
    with pytest.raises(UsageError, match=r"--formula .*(is not allowed|nested|cannot be parsed)"):
        parsed_formula(formula)


def test_a_long_formula_is_refused():
    with pytest.raises(UsageError, match="characters, at most"):
        parsed_formula("y ~ " + "x + " * 5000 + "x")


@pytest.mark.parametrize("command", ["analyse", "sensitivity", "report"])
def test_no_command_runs_code(psmvae, table, tmp_path, command):
    filled = tmp_path / "all.csv"
    made = psmvae("impute", table, "-o", filled, "--multiple", 3, "--method", "mean", "--seed", 0)
    assert made.code == 0, made.err
    trace = tmp_path / "trace"
    formula = f"income ~ I(__import__('pathlib').Path({str(trace)!r}).write_text('x'))"
    arguments = {
        "analyse": [filled],
        "sensitivity": [filled, "--column", "income", "--delta", "0,1"],
        "report": [table, "-o", tmp_path / "r.md", "--imputations", filled],
    }[command]
    result = psmvae(command, *arguments, "--formula", formula)
    assert result.code == 2
    assert "is not allowed" in result.err
    assert not trace.exists()
