"""Modules that are executed when they are first used."""

import json

import pytest

IMPORT = """
import sys, threading
from psmvae._lazy import import_lazily
import_lazily("scipy.stats")
executed = lambda: "scipy.stats._distn_infrastructure" in sys.modules
"""


def test_a_second_import_does_not_execute_the_module(python):
    python(
        IMPORT + "import scipy.stats\nfrom scipy import stats\nimport sklearn.base\n"
        "assert not executed()\nassert stats is sys.modules['scipy.stats']"
    )


@pytest.mark.parametrize(
    "use",
    [
        "from scipy.stats import norm",
        "from scipy import stats; norm = stats.norm",
        "import scipy; norm = scipy.stats.norm",
        "import scipy.stats; dir(scipy.stats); norm = scipy.stats.norm",
        "from scipy.stats import *",
    ],
)
def test_it_is_executed_at_first_use(python, use):
    python(IMPORT + f"{use}\nassert executed()\nassert norm.cdf(0) == 0.5")


def test_threads_that_use_it_first_wait_for_each_other(python):
    python(
        IMPORT + "import scipy.stats\nfound = []\n"
        "def use(): found.append(scipy.stats.norm.cdf(0))\n"
        "threads = [threading.Thread(target=use) for _ in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "assert found == [0.5] * 8"
    )


def test_an_attribute_that_does_not_exist_is_an_error(python):
    python(
        IMPORT + "import scipy.stats\n"
        "try: scipy.stats.nonsense\n"
        "except AttributeError as error: assert 'nonsense' in str(error)\n"
        "else: raise AssertionError"
    )


def test_modules_that_are_loaded_or_do_not_exist_are_left_alone(python):
    python(
        "import sys, scipy.stats as before\nfrom psmvae._lazy import import_lazily\n"
        "import_lazily('scipy.stats'); import_lazily('nonsense')\n"
        "assert sys.modules['scipy.stats'] is before\nassert 'nonsense' not in sys.modules"
    )


def test_psmvae_impute_does_not_execute_scipy_stats(python, tmp_path):
    (tmp_path / "in.csv").write_text(
        "a,b\n" + "".join(f"{k},{k * k % 7}\n" for k in range(40)) + "3,\n"
    )
    code = (
        "import json, sys\nfrom psmvae.__main__ import main\n"
        f"sys.argv = ['psmvae', 'impute', {str(tmp_path / 'in.csv')!r}, '-o', "
        f"{str(tmp_path / 'out.csv')!r}, '--quiet']\n"
        "code = main()\n"
        "print(json.dumps([code, 'scipy.stats._distn_infrastructure' in sys.modules]))"
    )
    assert json.loads(python(code).splitlines()[-1]) == [0, False]
