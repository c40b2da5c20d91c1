"""Reference for speed: a direct implementation of the paper's model (b).

It has the factors and sizes of `PSMVAEImputer.paper("b")` on a numeric table, but a Python loop
over the sets, a module for every factor, and imputes one row at a time.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

SCALE = 0.5


def mlp(n_in: int, n_out: int, width: int) -> nn.Sequential:
    """A network with one hidden layer."""
    return nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, n_out))


class PlainLoop(nn.Module):
    """p(r) p(z|r) p(x_obs|z,r) p(x_mis|z,r) p(m|z,r) with q(r|·) q(z|r,·) q(x_mis|z,r,·)."""

    def __init__(
        self,
        n_columns: int,
        n_sets: int = 10,
        n_latent: int = 20,
        width: int = 128,
        seed: int = 0,
        pi: float = 0.5,
    ) -> None:
        super().__init__()
        self.n_columns, self.n_sets, self.n_latent, self.pi = n_columns, n_sets, n_latent, pi
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.q_r = mlp(2 * n_columns, n_sets, width)
            self.q_z = mlp(2 * n_columns + n_sets, 2 * n_latent, width)
            self.q_x_mis = mlp(2 * n_columns + n_latent + n_sets, 2 * n_columns, width)
            self.p_r = nn.Parameter(torch.zeros(n_sets))
            self.p_z = nn.Linear(n_sets, 2 * n_latent)
            self.p_x = mlp(n_latent + n_sets, 2 * n_columns, width)
            self.p_m = mlp(n_latent + n_sets, n_columns, width)

    def _sets(self, x: Tensor, m: Tensor, n_draws: int) -> list[dict[str, Tensor]]:
        """Draws of z and log densities for each set, ``n_draws`` of each row."""
        xm = torch.cat([x, m], 1)
        by_set = []
        for r in range(self.n_sets):
            one_hot = torch.zeros(len(x), self.n_sets, device=x.device)
            one_hot[:, r] = 1.0
            mean, log_s = self.q_z(torch.cat([xm, one_hot], 1)).chunk(2, 1)
            p_mean, p_log_s = self.p_z(one_hot).chunk(2, 1)
            q_z, p_z = Normal(mean, log_s.exp()), Normal(p_mean, p_log_s.exp())
            z = q_z.rsample((n_draws,))
            zr = torch.cat([z, one_hot.expand(n_draws, -1, -1)], -1)
            x_obs, x_mis = self.p_x(zr).chunk(2, -1)
            m_logit = self.p_m(zr)
            log_p_x = (Normal(x_obs, SCALE).log_prob(x) * m).sum(-1)
            log_p_m = nn.functional.logsigmoid(m_logit * (2 * m - 1)).sum(-1)
            by_set.append(
                {
                    "z": z,
                    "zr": zr,
                    "x_obs": x_obs,
                    "x_mis": x_mis,
                    "log_p_x": log_p_x,
                    "log_p_m": log_p_m,
                    "kl_z": kl_divergence(q_z, p_z).sum(-1),
                    "log_ratio": (p_z.log_prob(z) - q_z.log_prob(z)).sum(-1),
                }
            )
        return by_set

    def loss(self, x: Tensor, m: Tensor) -> Tensor:
        """Minus the ELBO of Table 1 of the paper, averaged over rows."""
        xm = torch.cat([x, m], 1)
        log_q_r = torch.log_softmax(self.q_r(xm), 1)
        log_p_r = torch.log_softmax(self.p_r, 0)
        weight = 1 / m.mean()
        total = x.new_zeros(len(x))
        for r, of_set in enumerate(self._sets(x, m, 1)):
            q_in = torch.cat([xm, of_set["zr"][0]], 1)
            mean, log_s = self.q_x_mis(q_in).chunk(2, 1)
            p_x_mis = Normal(of_set["x_mis"][0], SCALE)
            kl_x = kl_divergence(Normal(mean, log_s.exp()), p_x_mis)
            pi = torch.where(m > 0, self.pi, 1.0)
            semi = ((1 - self.pi) * m * p_x_mis.log_prob(x) - pi * kl_x).sum(1)
            inside = weight * of_set["log_p_x"][0] + of_set["log_p_m"][0] + semi
            inside = inside - of_set["kl_z"] + log_p_r[r] - log_q_r[:, r]
            total = total + log_q_r[:, r].exp() * inside
        return -total.mean()

    @torch.no_grad()
    def impute_row(self, x: Tensor, m: Tensor, n_draws: int) -> Tensor:
        """E[x | x_obs, m] of one row ``(column,)`` from ``n_draws`` draws of z for each set."""
        by_set = self._sets(x[None], m[None], n_draws)
        log_p_r = torch.log_softmax(self.p_r, 0)
        log_w = torch.stack(
            [
                a["log_p_x"][:, 0] + a["log_p_m"][:, 0] + a["log_ratio"][:, 0] + log_p_r[r]
                for r, a in enumerate(by_set)
            ]
        )
        w = torch.exp(log_w - log_w.max())
        means = torch.stack([a["x_obs"][:, 0] for a in by_set])
        return (w[..., None] * means).sum((0, 1)) / w.sum()
