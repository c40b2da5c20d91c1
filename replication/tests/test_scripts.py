"""The scripts that train variants of methods whose results differ from the paper."""

import itertools
import json
from contextlib import nullcontext

import numpy as np
import pytest
import torch

import differences
import readings
from psmvae import GAINImputer, MIWAEImputer, PSMVAEImputer
from psmvae.inference.objective import elbo
from psmvae.models.batch import Batch
from psmvae.nn.noise import Noise
from psmvae_paper.marked_tables import marked, marks, replace_table
from resumable import run_all


@pytest.mark.slow
def test_readings_script_runs_and_variants_differ(script):
    small = ("--epochs", "1", "--seeds", "2", "--draws", "2", "--device", "cpu")
    _, result = script("readings", "--tables", "breast", *small)
    records = result["records"]
    read = itertools.product((1, 2), ("paper", "program"), ("uniform", "program"))
    assert [(r["layers"], r["terms"], r["start"]) for r in records] == list(read)
    rules = list(records[0]["errors"])
    assert len(rules) == 12
    assert len({tuple(r["errors"][rule]) for r in records for rule in rules}) == 96


class TestWeights:
    """Importance weights of readings.py against explicit loops: 12 rows, 4 draws, 2 sets."""

    @pytest.fixture
    def fitted(self):
        rng = np.random.default_rng(0)
        table = np.where(rng.random((12, 3)) < 0.3, np.nan, rng.normal(size=(12, 3)))
        settings = {"n_sets": 2, "n_draws": 4, "max_epochs": 20, "random_state": 0}
        imputer = PSMVAEImputer.paper("b", **settings).fit(table)
        return imputer, *imputer._tensors(*imputer._encode(table))

    @pytest.mark.parametrize("weights", ["program's", "over q(r)"])
    def test_weights_with_enumerated_sets(self, fitted, weights):
        imputer, x, m = fitted
        model = imputer.model_
        with torch.no_grad():
            found = readings.expected_by(imputer, x, m, weights)
            epsilon = Noise(0).normal(1, 12, 4, 2, 20)
            encoded = model.encode(Batch.of(x[None], m[None]))
            z, q_z = encoded.q_z.at(epsilon), encoded.q_z
            p_x_obs, p_x = model.heads(z)
            normal = torch.distributions.Normal
            log_p = (p_x_obs.log_prob(x[None, :, None, None]) * m[None, :, None, None]).sum(-1)[0]
            log_q_z = normal(q_z.mean, q_z.log_s.exp()).log_prob(z).sum(-1)[0]
            log_p_z = normal(model.p_z.mean, model.p_z.log_scale.exp()).log_prob(z).sum(-1)[0]
            p_r, q_r = model.p_r()[0, 0].exp(), encoded.log_q_r[0].exp()
        for row in range(12):
            weight = np.zeros((4, 2))
            for draw, r in itertools.product(range(4), range(2)):
                ratio = float(torch.exp(log_p_z - log_q_z)[row, draw, r])
                if weights == "program's":
                    weight[draw, r] = np.exp(float(log_p[row, draw].sum())) * float(q_r[row, r])
                else:
                    likelihood = np.exp(float(log_p[row, draw, r]))
                    weight[draw, r] = likelihood * ratio * float(p_r[r] / q_r[row, r])
            share = (weight / weight.sum())[..., None]
            expected = (share * p_x.expected()[0, row].detach().numpy()).sum((0, 1))
            np.testing.assert_allclose(found[row].numpy(), expected, rtol=1e-4, atol=1e-6)

    def test_weights_of_text_formula(self, fitted):
        imputer, x, m = fitted
        model, normal = imputer.model_, torch.distributions.Normal
        p_r = model.p_r()[0, 0].exp()
        with torch.no_grad():
            found = readings.expected_by(imputer, x, m, "text's")
            encoded = model.encode(Batch.of(x[None], m[None]))
            noise = Noise(0)
            which, epsilon = noise.uniform(12, 4), noise.normal(12, 4, 20)
            of_x = noise.uniform(12, 4, 3)
            q_r = encoded.log_q_r[0].exp()
            mean, scale = encoded.q_z.mean[0, :, 0], encoded.q_z.log_s[0, :, 0].exp()
            for row in range(12):
                total, summed = 0.0, np.zeros(3)
                for draw in range(4):
                    r = int(which[row, draw] > q_r[row, 0])
                    z = mean[row, r] + scale[row, r] * epsilon[row, draw]
                    # the means of both sets, and a draw from one with deviation .5
                    means = model.heads(z.expand(1, 1, 1, 2, 20))[1].expected()[0, 0, 0]
                    x_mis = means[r] + 0.5 * torch.special.ndtri(of_x[row, draw])
                    w = 0.0
                    for s in range(2):
                        p_x_mis = normal(means[s], 0.5).log_prob(x_mis)[m[row] == 0].sum()
                        p_z = normal(
                            model.p_z.mean[0, 0, 0, s], model.p_z.log_scale[0, 0, 0, s].exp()
                        )
                        q_z = normal(mean[row, s], scale[row, s])
                        log_ratio = p_x_mis + (p_z.log_prob(z) - q_z.log_prob(z)).sum()
                        w += float(log_ratio.exp() * p_r[s] / q_r[row, s])
                    total, summed = total + w, summed + w * means[r].numpy()
                np.testing.assert_allclose(found[row].numpy(), summed / total, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("module", [readings, differences], ids=lambda module: module.__name__)
def test_running_guide_has_tables_of_scripts(root, module):
    records = json.loads(module.RESULTS.read_text())["records"]
    arguments = (module.ours(),) if module is differences else ()
    page = (root / "docs" / "running.md").read_text()
    assert marked(module.__name__, module.markdown(records, *arguments)) in page


def test_page_without_marks_is_not_changed(tmp_path):
    page = tmp_path / "page.md"
    for text in ("nothing", marks("readings")[0], "".join(reversed(marks("readings")))):
        page.write_text(text)
        with pytest.raises(ValueError, match="once each and in order"):
            replace_table(page, "readings", "new")
        assert page.read_text() == text


def test_records_with_other_options_are_rejected(tmp_path):
    out = tmp_path / "out.json"
    keys, options = [{"row": "a"}, {"row": "b"}], {"epochs": 2, "device": "cpu"}
    measured = []

    def measure(key, _):
        measured.append(key["row"])
        return {"rule": [1.0]}

    run_all(measure, keys[:1], options, out, 1)
    # records of another device are kept
    records = run_all(measure, keys, options | {"device": "cuda"}, out, 1)
    assert (measured, [record["row"] for record in records]) == (["a", "b"], ["a", "b"])
    before = out.read_text()
    with pytest.raises(SystemExit, match="give another --out"):
        run_all(measure, keys, options | {"epochs": 3}, out, 1)
    assert out.read_text() == before


def test_table_is_replaced_between_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{marked('readings', 'old')}\nafter {marked('differences', 'x')}")
    replace_table(page, "readings", "new")
    assert page.read_text() == (
        f"before\n{marked('readings', 'new')}\nafter {marked('differences', 'x')}"
    )


class TestDifferences:
    @pytest.mark.slow
    def test_differences_script_runs_and_resumes(self, script):
        small = ("--tables", "breast", "--epochs", "2", "--seeds", "2", "--device", "cpu")
        _, first = script("differences", "--rows", "gain", *small)
        variants = ["1,000 steps", "sigmoid", "sigmoid, 1,000 steps"]
        assert [record["variant"] for record in first["records"]] == variants
        plain, sigmoid, both = (record["errors"]["as the row"] for record in first["records"])
        assert plain != sigmoid == both
        printed, second = script("differences", "--rows", "gain", "vae", *small)
        assert second["records"][:3] == first["records"]
        assert [record["row"] for record in second["records"][3:]] == ["vae"]
        assert "gain" not in printed

    def test_imputed_from_replaces_head(self):
        rng = np.random.default_rng(0)
        table = np.where(rng.random((30, 3)) < 0.3, np.nan, rng.normal(size=(30, 3)))
        imputer = PSMVAEImputer.paper("a", n_sets=2, n_draws=3, max_epochs=2, random_state=0)
        model = imputer.fit(table).model_
        z = torch.zeros(1, 30, 1, 2, 20)
        with torch.no_grad():
            own, other = (head.expected() for head in model.p_x(z, None, both=True))
            assert not torch.equal(own, other)
            torch.testing.assert_close(model.heads(z)[1].expected(), other)
            with differences.imputed_from(model, "x_obs"):
                torch.testing.assert_close(model.heads(z)[1].expected(), own)
            torch.testing.assert_close(model.heads(z)[1].expected(), other)

    def test_linear_decoder_is_linear(self):
        table = np.random.default_rng(0).normal(size=(30, 3))
        table[0, 0] = np.nan
        settings = {"n_latent": 2, "max_epochs": 2, "random_state": 0}
        a, b, none = torch.randn(3, 1, 5, 1, 1, 2)
        for patched, is_linear in ((differences.linear_decoder, True), (nullcontext, False)):
            with patched():
                p_x = MIWAEImputer.paper(**settings).fit(table).model_.p_x
            with torch.no_grad():
                sums = [p_x.outputs(z, None) for z in (a, b, a + b, none * 0)]
            together = torch.isclose(sums[0] + sums[1], sums[2] + sums[3], atol=1e-5)
            assert bool(together.all()) is is_linear

    def test_sigmoid_output_bounds_gain(self):
        rng = np.random.default_rng(0)
        x, m = torch.from_numpy(rng.normal(size=(1, 40, 3))).float(), torch.ones(1, 40, 3)
        imputer = GAINImputer.paper(max_epochs=2, random_state=0)
        model = imputer.fit(np.where(rng.random((40, 3)) < 0.2, np.nan, x[0].numpy())).model_
        with torch.no_grad():
            free = model.predict(Batch.of(x, m))
            with differences.sigmoid_output():
                bounded = model.predict(Batch.of(x, m))
        torch.testing.assert_close(bounded, torch.sigmoid(free))

    def test_epochs_of_a_thousand_steps(self):
        assert differences.thousand_steps(None, 16_000) == {"max_epochs": 12}
        assert differences.thousand_steps(None, 455) == {"max_epochs": 333}


def test_program_objective_with_one_row_equals_elbo():
    rng = np.random.default_rng(0)
    table = np.where(rng.random((30, 3)) < 0.3, np.nan, rng.normal(size=(30, 3)))
    imputer = PSMVAEImputer.paper("b", max_epochs=2, random_state=0).fit(table)
    x, m = imputer._tensors(*imputer._encode(table))
    noise, shape = Noise(0), (1, 30, 1, 10, 20)
    batch = Batch.of(x.unsqueeze(0), m.unsqueeze(0))
    densities = imputer.model_.log_densities(batch, noise.normal(*shape), noise, auxiliary=True)
    settings = {"weight_observed": imputer.model_.weight_observed, "beta": 0.7}
    other = readings.program_elbo(densities, **settings)
    as_one = readings.program_elbo(densities, **settings, n_batch=1)
    torch.testing.assert_close(as_one, elbo(densities, **settings))
    assert not torch.isclose(other, elbo(densities, **settings)).any()


@pytest.mark.slow
def test_tilt_script_runs_and_rules_differ(script):
    _, result = script("tilt", "--table", "breast", "--epochs", "3", "--rows", "40", "--draws", "3")
    assert [found["epoch"] for found in result["records"]] == [1, 3]
    for found in result["records"]:
        assert len({found["tilted"], found["x_mis"], found["x_obs"]}) == 3
