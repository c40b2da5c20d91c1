"""Results do not depend on PyTorch's default data type, default device or autocast."""

import contextlib
import warnings

import numpy as np
import pytest

from contract.registry import quick

pd = pytest.importorskip("pandas")
torch = pytest.importorskip("torch")

import psmvae  # noqa: E402

KINDS = {"positive": "positive", "count": "count", "grade": "ordinal"}


@pytest.fixture(scope="module")
def table():
    """A column of every kind."""
    rng = np.random.default_rng(0)
    n = 60
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "real": x + rng.normal(size=n),
            "positive": np.exp(x),
            "integer": np.round(50 + 20 * x),
            "count": rng.poisson(3, n).astype(float),
            "binary": np.where(x > 0, "yes", "no"),
            "grade": np.clip(np.round(2 * x), 0, 3),
            "city": rng.choice(["a", "b", "c"], n),
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.2)


MODELS = {
    "PSMVAE": (psmvae.PSMVAEImputer, {}),
    "regression": (psmvae.PSMVAEImputer, {"regression": psmvae.Network(), "n_members": 2}),
    "student": (psmvae.PSMVAEImputer, {"scale": "student", "draws": "model"}),
    "self": (psmvae.PSMVAEImputer, {"mask_model": "self"}),
    "logistic": (psmvae.PSMVAEImputer, {"mask_model": "logistic-ceiling"}),
    "GMVAE": (psmvae.GMVAEImputer, {}),
    "DLGM": (psmvae.DLGMImputer, {}),
    "MIWAE": (psmvae.MIWAEImputer, {}),
    "not-MIWAE": (psmvae.NotMIWAEImputer, {"mask_model": "network"}),
    "GAIN": (psmvae.GAINImputer, {}),
}


@contextlib.contextmanager
def default_dtype():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def default_device():
    # results on this device have no values: any use of it is an error
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextlib.contextmanager
def all_settings():
    with default_dtype(), default_device(), torch.autocast("cpu", dtype=torch.bfloat16):
        yield


SETTINGS = {
    "dtype": default_dtype,
    "device": default_device,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


def results(model, table, folder):
    """Return everything that an imputer computes."""
    cls, parameters = MODELS[model]
    imputer = quick(cls, kinds=KINDS, device="cpu", **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        imputer.fit(table)
    imputer.save(folder / "m.safetensors")
    loaded = psmvae.load(folder / "m.safetensors", device="cpu")
    found = [imputer.transform(table), loaded.transform(table), *imputer.sample(table, 2)]
    if hasattr(imputer, "score_samples"):
        found.append(pd.DataFrame(imputer.score_samples(table)))
    if hasattr(imputer, "predict_set_proba"):
        found.append(pd.DataFrame(imputer.predict_set_proba(table)))
    return found


@pytest.fixture(scope="module")
def expected(table, tmp_path_factory):
    known = {}

    def get(model):
        if model not in known:
            known[model] = results(model, table, tmp_path_factory.mktemp("reference"))
        return known[model]

    return get


def check_same_results(model, setting, table, folder, expected):
    reference = expected(model)
    with setting():
        found = results(model, table, folder)
    for one, other in zip(found, reference, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("model", ["PSMVAE", "GAIN"])
def test_all_settings_at_once(model, table, tmp_path, expected):
    check_same_results(model, all_settings, table, tmp_path, expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("model", MODELS)
def test_each_setting(model, setting, table, tmp_path, expected):
    check_same_results(model, SETTINGS[setting], table, tmp_path, expected)
