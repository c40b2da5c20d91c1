"""The yardstick: the paper's model (b) written plainly, one set after the other.

The same factors and sizes as `PSMVAEImputer.paper("b")` on a table of numbers, as one would write
them first: a Python loop over the sets, a module for every factor, one row at a time at imputation.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

SCALE = 0.5


def mlp(n_in: int, n_out: int, width: int) -> nn.Sequential:
    """One hidden layer."""
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
        """What each set says, for rows repeated ``n_draws`` times."""
        xm = torch.cat([x, m], 1)
        answers = []
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
            answers.append(
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
        return answers

    def loss(self, x: Tensor, m: Tensor) -> Tensor:
        """Minus the bound of Table 1, the mean over rows."""
        xm = torch.cat([x, m], 1)
        log_q_r = torch.log_softmax(self.q_r(xm), 1)
        log_p_r = torch.log_softmax(self.p_r, 0)
        weight = 1 / m.mean()
        total = x.new_zeros(len(x))
        for r, answer in enumerate(self._sets(x, m, 1)):
            q_in = torch.cat([xm, answer["zr"][0]], 1)
            mean, log_s = self.q_x_mis(q_in).chunk(2, 1)
            p_x_mis = Normal(answer["x_mis"][0], SCALE)
            kl_x = kl_divergence(Normal(mean, log_s.exp()), p_x_mis)
            pi = torch.where(m > 0, self.pi, 1.0)
            semi = ((1 - self.pi) * m * p_x_mis.log_prob(x) - pi * kl_x).sum(1)
            inside = weight * answer["log_p_x"][0] + answer["log_p_m"][0] + semi
            inside = inside - answer["kl_z"] + log_p_r[r] - log_q_r[:, r]
            total = total + log_q_r[:, r].exp() * inside
        return -total.mean()

    @torch.no_grad()
    def impute_row(self, x: Tensor, m: Tensor, n_draws: int) -> Tensor:
        """The expected x of one row ``(column,)`` from ``n_draws`` importance draws a set."""
        answers = self._sets(x[None], m[None], n_draws)
        log_p_r = torch.log_softmax(self.p_r, 0)
        log_w = torch.stack(
            [
                a["log_p_x"][:, 0] + a["log_p_m"][:, 0] + a["log_ratio"][:, 0] + log_p_r[r]
                for r, a in enumerate(answers)
            ]
        )
        w = torch.exp(log_w - log_w.max())
        means = torch.stack([a["x_obs"][:, 0] for a in answers])
        return (w[..., None] * means).sum((0, 1)) / w.sum()
