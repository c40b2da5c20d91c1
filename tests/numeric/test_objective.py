"""Every term of the ELBO (Table 1) against a loop over members, rows, sets, draws and cells."""

import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Normal, kl_divergence

from numeric.helpers import PLAIN, RESIDUAL, make, mixed_columns
from psmvae.inference.objective import elbo
from psmvae.models.batch import Batch
from psmvae.nn.noise import Noise
from psmvae.nn.settings import LogisticMask


class FixedNoise(Noise):
    """Noise that keeps its last uniform numbers."""

    def uniform(self, *shape):
        self.last = super().uniform(*shape).double()
        return self.last


def rows(n_members, n_rows, seed=0):
    """Rows of `mixed_columns` in the model's order: height, visits, smoker (2), colour (3)."""
    rng = np.random.default_rng(seed)
    x = np.stack(
        [
            rng.normal(size=n_rows),
            rng.normal(size=n_rows),
            rng.integers(0, 2, n_rows),
            rng.integers(0, 3, n_rows),
        ],
        1,
    )
    m = rng.random((n_rows, 4)) < 0.6
    x, m = torch.tensor(x, dtype=torch.float64), torch.tensor(m, dtype=torch.float64)
    return Batch.of(x.expand(n_members, -1, -1), m.expand(n_members, -1, -1))


def cells(p, where):
    """Distributions of the four cells at one (member, row, draw, set)."""
    normal, softmaxes = p.parts[0], p.parts[1:]
    scale = normal.log_scale.exp().expand(normal.mean.shape)
    found = [Normal(normal.mean[where][j], scale[where][j]) for j in range(2)]
    for part in softmaxes:
        logits = part.log_p[where]
        for row in logits:
            found.append(Categorical(logits=row[~row.isneginf()]))
    return found


def missing_probability(p_m, r, e, j, value):
    """c · sigmoid(w x + b) of one cell."""
    weight = p_m.weight[e, 0, 0, r]
    first = {0: 0, 1: 1, 2: 2, 3: 4}[j]
    slope = weight[first] * value if j < 2 else weight[first + int(value)]
    score = slope + p_m.bias[e, 0, 0, r, j]
    ceiling = torch.sigmoid(p_m.ceiling_logits[e, 0, 0, r, j]) if p_m.ceiling else 1.0
    return ceiling * torch.sigmoid(score)


def integrated(p_m, r, e, j, p):
    """∫ p(x_j) p(m_j = 0 | x_j, r) dx_j by the trapezoidal rule."""
    if isinstance(p, Categorical):
        terms = [p.probs[c] * missing_probability(p_m, r, e, j, c) for c in range(len(p.probs))]
        return sum(terms)
    grid = p.loc + p.scale * torch.linspace(-9, 9, 4001, dtype=torch.float64)
    values = p.log_prob(grid).exp() * missing_probability(p_m, r, e, j, grid)
    return torch.trapezoid(values, grid)


def slow_elbo(model, batch, epsilon, uniform, mask, pi, beta, weight):
    """Table 1, term by term."""
    encoding = model.encode(batch)
    log_q_r, q_z = encoding.log_q_r, encoding.q_z
    z = q_z.at(epsilon)
    p_x_obs, p_x_mis = model.p_x(z, None, both=True)
    features = model.inputs.features(batch.x) * model.inputs.per_feature(batch.visible)
    inputs = torch.cat([features, batch.visible], -1) if mask != "none" else features
    q_x_mis = model.q_x_mis(inputs, z, None)
    log_p_r = torch.log_softmax(model.p_r.logits, -1)
    draws = model.draws_x
    x_drawn = q_x_mis.sample(uniform) if draws else None
    logits = model.p_m.net(z) + model.p_m.logits if mask == "latent" else None
    n_members, n_rows, n_draws, n_sets, _ = epsilon.shape
    total = torch.zeros(n_members, n_rows, dtype=torch.float64)
    for e in range(n_members):
        for i in range(n_rows):
            for r in range(n_sets):
                q = log_q_r[e, i, r].exp()
                inside = torch.zeros((), dtype=torch.float64)
                for d in range(n_draws):
                    at = (e, i, d, r)
                    p_obs, p_mis, q_mis = cells(p_x_obs, at), cells(p_x_mis, at), cells(q_x_mis, at)
                    for j in range(4):
                        x, observed = batch.x[e, i, j], bool(batch.m[e, i, j])
                        if observed:
                            inside += weight * p_obs[j].log_prob(x) / n_draws
                            inside += (1 - pi) * p_mis[j].log_prob(x) / n_draws
                        kl = kl_divergence(q_mis[j], p_mis[j])
                        if observed:
                            inside -= pi * kl / n_draws
                        elif mask != "logistic-ceiling" or draws:
                            inside -= kl / n_draws
                        if mask == "latent":
                            p_missing = torch.sigmoid(logits[at][j])
                        elif mask == "logistic-ceiling" and observed:
                            p_missing = missing_probability(model.p_m, r, e, j, x)
                        elif mask == "logistic-ceiling" and draws:
                            p_missing = missing_probability(model.p_m, r, e, j, x_drawn[at][j])
                        elif mask == "logistic-ceiling":
                            p_missing = integrated(model.p_m, r, e, j, p_mis[j])
                        else:
                            continue
                        probability = 1 - p_missing if observed else p_missing
                        inside += probability.log() / n_draws
                kl_z = q_z.kl(model.p_z)[e, i, r]
                inside += beta * (log_p_r[e, 0, r] - log_q_r[e, i, r] - kl_z)
                total[e, i] += q * inside
    return total


CASES = [
    ("latent", "latent", 0.5),
    ("none", "none", 0.5),
    ("logistic-ceiling", LogisticMask(), 0.3),
    ("logistic-ceiling", LogisticMask(ceiling=False, integrate="draw"), 0.5),
    ("latent", "latent", 0.0),
    ("latent", "latent", 1.0),
]


@pytest.mark.parametrize("network", [PLAIN, RESIDUAL], ids=["plain", "residual"])
@pytest.mark.parametrize(("kind", "mask", "pi"), CASES)
def test_elbo_is_table_1(kind, mask, pi, network):
    model = make(mixed_columns(), mask=mask, pi=pi, network=network)
    with torch.no_grad():
        for k, parameter in enumerate(model.parameters()):
            parameter += 0.2 * torch.randn(
                parameter.shape, generator=torch.Generator().manual_seed(k), dtype=torch.float64
            )
    batch = rows(2, 3)
    epsilon = torch.randn(2, 3, 2, 3, 2, generator=torch.Generator().manual_seed(9)).double()
    noise = FixedNoise(5)
    densities = model.log_densities(batch, epsilon, noise, auxiliary=True)
    found = elbo(densities, weight_observed=1.7, beta=0.6)
    uniform = getattr(noise, "last", None)
    expected = slow_elbo(model, batch, epsilon, uniform, kind, pi, 0.6, 1.7)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def gradient_of_x_mis(pi, x_scale):
    """Gradient of the outputs of x_mis, with observed values multiplied by ``x_scale``."""
    model = make(mixed_columns(), pi=pi, n_members=1)
    batch = rows(1, 6)
    observed = torch.where(torch.arange(4) < 2, batch.x * x_scale, batch.x)
    scored = Batch(observed, batch.m, torch.zeros_like(batch.m), batch.known)
    epsilon = torch.zeros(1, 6, 1, 3, 2, dtype=torch.float64)
    densities = model.log_densities(scored, epsilon, Noise(0), auxiliary=True)
    model.zero_grad()
    elbo(densities).sum().backward()
    # the second half of the outputs are those of x_mis
    return model.p_x.net.last.bias.grad[..., model.p_x.n_outputs[0] :]


def test_pi_one_does_not_train_x_mis_on_observed_values():
    torch.testing.assert_close(gradient_of_x_mis(1.0, 1.0), gradient_of_x_mis(1.0, 5.0))


def test_pi_below_one_trains_x_mis_on_observed_values():
    assert not torch.allclose(gradient_of_x_mis(0.5, 1.0), gradient_of_x_mis(0.5, 5.0))


def test_pi_zero_has_no_kl_term_for_observed_cells():
    model = make(mixed_columns(), pi=0.0, n_members=1)
    batch = rows(1, 6)
    full = Batch.of(batch.x, torch.ones_like(batch.m))
    densities = model.log_densities(
        full, torch.zeros(1, 6, 1, 3, 2).double(), Noise(0), auxiliary=True
    )
    elbo(densities).sum().backward()
    assert float(model.q_x_mis.net.last.bias.grad.abs().max()) == 0.0


def test_pi_rate_is_the_papers_formula():
    model = make(mixed_columns(), pi="rate", missing_rate=0.25)
    torch.testing.assert_close(model.pi.flatten(), torch.full((4,), 0.75 / 1.75).double())


def test_weight_observed_is_one_over_the_observed_rate():
    model = make(mixed_columns(), missing_rate=0.2)
    assert float(model.weight_observed) == pytest.approx(1 / 0.8)


def test_with_one_set_the_elbo_is_that_of_a_selection_model():
    """With one set r is constant: the bound is that of p(x) p(m | x)."""
    model = make(mixed_columns(), mask="logistic-ceiling", n_sets=1, n_members=1)
    batch = rows(1, 5)
    epsilon = torch.randn(1, 5, 1, 1, 2, generator=torch.Generator().manual_seed(0)).double()
    densities = model.log_densities(batch, epsilon)
    torch.testing.assert_close(densities.log_q_r, torch.zeros(1, 5, 1).double())
    torch.testing.assert_close(densities.log_p_r, torch.zeros(1, 1, 1).double())
    selection = (densities.log_p_x_obs + densities.log_p_m).squeeze(-1).mean(
        2
    ) - densities.kl_z.squeeze(-1)
    torch.testing.assert_close(elbo(densities), selection)


def test_validation_cells_do_not_change_the_elbo():
    model = make(mixed_columns(), mask="logistic-ceiling", n_members=1)
    batch = rows(1, 5)
    validation = torch.zeros_like(batch.m)
    validation[:, :, 1] = 1
    epsilon = torch.randn(1, 5, 1, 3, 2, generator=torch.Generator().manual_seed(0)).double()

    def bound(x):
        m = batch.m * (1 - validation)
        rest = Batch(x, m, m, 1 - validation)
        return elbo(model.log_densities(rest, epsilon, Noise(0), auxiliary=True)).detach()

    other = batch.x.clone()
    other[:, :, 1] += 3.0
    torch.testing.assert_close(bound(batch.x), bound(other))
    assert bool(bound(other).isfinite().all())
