"""Imports, fits and files leave `random`, the filters of `warnings` and the environment alone."""

import pytest

CODE = """
import os, random, sys, tempfile, warnings
import numpy as np
def state():
    return random.getstate(), list(warnings.filters), dict(os.environ)
before = state()
import psmvae
imputer = psmvae.{name}(random_state=0)
assert state() == before, "import"
table = np.random.default_rng(0).normal(size=(30, 3))
table[::3, 0] = np.nan
warnings.showwarning = lambda *_, **__: None
imputer.set_params(**{parameters}).fit(table)
assert state() == before, "fit"
imputer.transform(table), imputer.sample(table, 1)
assert state() == before, "use"
with tempfile.TemporaryDirectory() as folder:
    imputer.save(folder + "/m.safetensors")
    psmvae.load(folder + "/m.safetensors")
assert state() == before, "file"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("PSMVAEImputer", {"max_epochs": 1, "n_draws": 2}),
        ("MICEImputer", {"max_iter": 1}),
        ("MissForestImputer", {"max_iter": 1, "n_estimators": 2, "n_jobs": 1}),
    ],
)
def test_a_new_process(python, name, parameters):
    python(CODE.format(name=name, parameters=parameters))


def test_only_needed_libraries_are_loaded(python):
    code = (
        CODE.format(name="MeanImputer", parameters={})
        + """
loaded = {"sklearn.ensemble", "sklearn.linear_model", "sklearn.impute", "rich.progress"}
assert not loaded & set(sys.modules), loaded & set(sys.modules)
"""
    )
    python(code)


def test_settings_are_restored():
    import os
    import random
    import warnings

    from psmvae._quiet import unchanged_settings

    before = random.getstate(), list(warnings.filters), dict(os.environ)
    with unchanged_settings():
        random.random()
        warnings.filterwarnings("ignore", "nothing")
        os.environ["PSMVAE_TEST"] = "set"
        os.environ.pop("PATH", None)
    assert (random.getstate(), list(warnings.filters), dict(os.environ)) == before
