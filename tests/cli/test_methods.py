"""``--method``: every imputer, and the options each of them takes."""

import csv
import io
import json

import pytest

from psmvae import MICEImputer, SelfMask, load
from psmvae.table.io import read_table

DEEP = ["psmvae", "vae", "gmvae", "dlgm", "miwae", "not-miwae", "gain"]
CLASSICAL = ["mice", "missforest", "mean"]
CPU = ["--device", "cpu"]
# the mask model p(m|x) has a training phase of its own, which takes longer
SHORT = ["--epochs", 1, "--max-time", 0.5]


@pytest.fixture(scope="module")
def mice(psmvae, tmp_path_factory):
    """A table, and a model file of a method without networks."""
    folder = tmp_path_factory.mktemp("mice")
    table, path = folder / "numbers.csv", folder / "mice.safetensors"
    table.write_text("a,b\n1,2.5\n2,4\n3,\n4,8\n5,9.5\n,12\n")
    result = psmvae("fit", table, "-o", path, "--method", "mice")
    assert result.code == 0, result.err
    return table, path


@pytest.mark.parametrize("method", DEEP + CLASSICAL)
def test_method_fills_the_table_and_saves_a_model_of_its_class(psmvae, table, tmp_path, method):
    output, model = tmp_path / "filled.csv", tmp_path / "m.safetensors"
    # the classical methods ignore the device
    options = ["--method", method, "--save-model", model, *CPU]
    options += SHORT if method in DEEP else []
    result = psmvae("impute", table, "-o", output, *options)
    assert result.code == 0, result.err
    filled = list(csv.DictReader(io.StringIO(output.read_text())))
    assert len(filled) == 12
    assert all(all(row.values()) for row in filled)
    assert ("validation error" in result.err) == (method in DEEP)

    facts = json.loads(psmvae("info", model, "--json").out)
    assert facts["model"].lower() == method.replace("-", "") + "imputer"


def test_self_masked_column_of_not_miwae_has_a_logistic_mask_model(psmvae, table, tmp_path):
    output = tmp_path / "m.safetensors"
    options = ["--method", "not-miwae", *SHORT, "--self-masked", "income", "--sign", "low"]
    result = psmvae("fit", table, "-o", output, *options, *CPU)
    assert result.code == 0, result.err
    loaded = load(output)
    assert loaded.max_time == 0.5
    mask_model = loaded.mask_model
    assert (tuple(mask_model.columns), mask_model.sign) == (("income",), "low")
    # missing values are drawn in training, as in not-MIWAE
    assert (mask_model.integrate, mask_model.ceiling) == ("draw", False)


def test_sign_and_members_are_stored_in_the_model(psmvae, table, tmp_path):
    output = tmp_path / "m.safetensors"
    options = ["--self-masked", "income", "--sign", "high", "--members", 2]
    result = psmvae("fit", table, "-o", output, *options, *SHORT, *CPU)
    assert result.code == 0, result.err
    loaded = load(output)
    mask_model = loaded.mask_model
    assert (tuple(mask_model.columns), mask_model.sign) == (("income",), "high")
    assert isinstance(mask_model, SelfMask)
    assert loaded.n_members == 2


@pytest.mark.parametrize(
    ("method", "option"),
    [
        ("mice", ["--sets", 3]),
        ("missforest", ["--draws", 10]),
        ("vae", ["--mask-model", "self"]),
        ("gain", ["--self-masked", "age"]),
        ("miwae", ["--sign", "high", "--self-masked", "age"]),
        ("miwae", ["--sets", 2]),
        ("mean", ["--epochs", 2]),
        ("mean", ["--max-time", 2]),
        ("mice", ["--members", 2]),
    ],
)
def test_option_that_the_method_does_not_have_is_named(refused, table, tmp_path, method, option):
    message = refused(
        2, "impute", table, "-o", tmp_path / "filled.csv", "--method", method, *option
    )
    assert option[0] in message
    assert f"--method {method}" in message
    assert "psmvae" in message.split("is for")[1]
    assert not (tmp_path / "filled.csv").exists()


def test_sets_of_a_method_without_sets_names_the_methods_with_sets(refused, table, tmp_path):
    message = refused(2, "sets", table, "-o", tmp_path / "sets.csv", "--method", "vae")
    assert "--method vae" in message
    assert "psmvae, gmvae and dlgm" in message


@pytest.mark.parametrize(("more", "hints"), [((), True), (("--sets", 1), False)])
def test_single_set_chosen_by_default_is_explained(psmvae, table, tmp_path, more, hints):
    result = psmvae("sets", table, "-o", tmp_path / "sets.csv", *more, "--epochs", 1, *CPU)
    assert result.code == 0, result.err
    assert "set 0: 12" in result.err
    assert ("--sets N fits N sets" in result.err) is hints


def test_sets_of_gmvae(psmvae, table, tmp_path):
    output = tmp_path / "sets.csv"
    options = ["--method", "gmvae", "--sets", 2, "--epochs", 1, *CPU]
    result = psmvae("sets", table, "-o", output, *options)
    assert result.code == 0, result.err
    rows = list(csv.DictReader(io.StringIO(output.read_text())))
    assert list(rows[0]) == ["row", "set", "probability_0", "probability_1"]
    assert len(rows) == 12


@pytest.mark.parametrize("multiple", [[], ["--multiple", 2]])
def test_model_file_of_a_classical_method_imputes(psmvae, mice, tmp_path, multiple):
    table, model = mice
    output = tmp_path / "filled.csv"
    result = psmvae(
        "impute", table, "-m", model, "-o", output, "--handle-unknown", "missing", *multiple
    )
    assert result.code == 0, result.err
    assert "filled 2 of them" in result.err
    filled = list(csv.DictReader(io.StringIO(output.read_text())))
    # imputation 0 of a long file is the incomplete table
    assert all(all(row.values()) for row in filled if row.get(".imp") != "0")


def test_multiple_imputations_of_mice_are_posterior_draws(psmvae, mice, tmp_path):
    table, output = mice[0], tmp_path / "long.parquet"
    options = ["--method", "mice", "--multiple", 3, "--seed", 4]
    result = psmvae("impute", table, "-o", output, *options)
    assert result.code == 0, result.err
    frame = read_table(table)
    imputer = MICEImputer(random_state=4).fit(frame)
    expected = imputer.sample(frame, n=3, random_state=4)
    written = read_table(output)
    for k, one in enumerate([frame, *expected]):
        assert written.slice(6 * k, 6).drop([".imp", ".id"]).equals(one)


def test_model_file_of_a_classical_method_has_neither_sets_nor_draws(refused, mice, tmp_path):
    table, model = mice
    message = refused(2, "sets", table, "-m", model, "-o", tmp_path / "sets.csv")
    assert "a model of mice" in message
    assert "psmvae, gmvae and dlgm" in message
    message = refused(2, "impute", table, "-m", model, "-o", tmp_path / "f.csv", "--draws", 5)
    assert "--draws" in message
    assert "a model of mice" in message
    assert list(tmp_path.iterdir()) == []


def test_info_of_mice_shows_rounds_and_chains(psmvae, mice):
    result = psmvae("info", mice[1])
    assert result.code == 0, result.err
    assert "MICEImputer" in result.out
    for fact in ("n_chains: 20", "n_rounds: ", "converged: ", "r_hat: "):
        assert fact in result.out
