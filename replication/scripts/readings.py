"""Interpretations of PSMVAE(b) at 80 % missing: the paper's text, and its published program.

From K = 1 to K = 10,000 the printed error increases on breast (.1004 to .1125) and decreases on
spam (.0591 to .0552). Where text and program differ, or the text is ambiguous, this script trains
both variants on the paper's masks, with five seeds, and imputes by each rule:

- *layers*: hidden layers of 128 units; one in the text, two in the program;
- *terms*: the objective as printed, or as in the program, where the KL term of r and all terms of
  x_mis are divided by the number of rows of a batch;
- *start*: uniform initial weights, as in psmvae, or Xavier initialisation, as in the program;
- *sizes*: 128 units, batches of 200 and π' = .5, as in the text; 400 units, batches of 512 and
  π' = .005, the defaults of a version of the program; or the text's with π' = .9, which the
  program's script of tables also names;
- *head*: imputations from p(x_mis|z,r), as the model and ``.paper("b")`` have it, or from
  p(x_obs|z,r), as one formula of the text and the program have it;
- *weights*: with p(m|z,r), Bayes' rule; without p(m|z,r); the program's, where a draw is one z for
  each set, its weight is the product of p(x_obs|z,r) over all sets without p(z|r) / q(z|r,·), and
  sets are weighted by q(r|x_obs,m); over q(r), Bayes' rule without p(m|z,r), divided by
  q(r|x_obs,m) although sets are summed over, as in versions of the program; or the text's formula,
  with z from q(z|x_obs,m), a draw of x_mis, and no p(x_obs|z,r).

Errors are in ranges of the columns. Run with

    PSMVAE_DATA_HOME=... python scripts/readings.py [--device cuda] [--jobs 5] [--page]

Trainings that have a record are skipped; ``--out`` names another file of records.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from psmvae import Network, PSMVAEImputer
from psmvae.inference.objective import elbo
from psmvae.models import gmvae
from psmvae.models.batch import Batch, LogDensities
from psmvae.models.mask_likelihood import log_p_m_given_z
from psmvae.nn.mask import MaskModule
from psmvae.nn.network import Linear
from psmvae.nn.noise import Noise
from psmvae.training import latent_recipe
from psmvae_paper import Cell
from psmvae_paper.marked_tables import replace_table
from psmvae_paper.measure import set_draws
from psmvae_paper.paper import PaperKey, paper
from psmvae_paper.paper_masks import printed_rmse
from psmvae_paper.protocol import make_problem
from psmvae_paper.stacked_fit import fit_stacked
from resumable import PAGE, RECORDS, Key, Record, add_arguments, run_all

RESULTS = RECORDS / "readings.json"
RATE = 0.8
# Rows of a batch in the text: the program sums some terms over them and averages others.
BATCH = 200
# Units of a layer, rows of a batch and π'.
SIZES = {"text": (128, BATCH, 0.5), "defaults": (400, 512, 0.005), "pi .9": (128, BATCH, 0.9)}
# The variants of a training.
VARIANTS = {
    "mechanism": ("mcar", "mnar"),
    "layers": (1, 2),
    "terms": ("paper", "program"),
    "start": ("uniform", "program"),
    "sizes": tuple(SIZES),
}
# The defaults of the options.
STANDARD = {"mechanism": ("mcar",), "sizes": ("text",)}
WEIGHTS = ("with p(m)", "without p(m)", "program's", "over q(r)", "text's")
# Draws times sets that are decoded at once.
AT_ONCE = 1_000_000


def program_elbo(
    densities: LogDensities, *, weight_observed: Tensor | float, beta: float, n_batch: int = BATCH
) -> Tensor:
    """The program's objective of each row: the terms that it averages have weight 1 / n_batch."""
    q_r = densities.log_q_r.exp()
    per_set = densities.log_p_x_obs * weight_observed + densities.log_p_m
    if densities.auxiliary is not None:
        per_set = per_set + densities.auxiliary / n_batch
    kl_r = (q_r * (densities.log_q_r - densities.log_p_r)).sum(-1)
    return (q_r * (per_set.mean(2) - beta * densities.kl_z)).sum(-1) - beta * kl_r / n_batch


@contextmanager
def training(terms: str, start: str, n_batch: int = BATCH) -> Iterator[None]:
    """Patch the objective (the paper's or the program's) and the initialisation of weights."""
    made = Linear.__init__

    def xavier(self: Linear, *sizes: Any, **settings: Any) -> None:
        made(self, *sizes, **settings)
        n_members, n_in, n_out, noise = sizes[:4]
        with torch.no_grad():
            drawn = noise.normal(n_members, n_in, n_out)
            self.weight.copy_(drawn * math.sqrt(2 / (n_in + n_out)))
            if self.bias is not None:
                self.bias.zero_()

    of_program = functools.partial(program_elbo, n_batch=n_batch)
    latent_recipe.elbo = of_program if terms == "program" else elbo
    Linear.__init__ = xavier if start == "program" else made
    try:
        yield
    finally:
        latent_recipe.elbo, Linear.__init__ = elbo, made


@contextmanager
def rule(imputer: PSMVAEImputer, head: str, weights: str) -> Iterator[None]:
    """Patch an imputer: the head that imputations come from, and the importance weights."""
    model = imputer.model_

    def no_mask(
        p_m: MaskModule, m: Tensor, known: Tensor, z: Tensor, sets: Tensor | None = None
    ) -> Tensor:
        del p_m, m, known, sets
        return z.new_zeros(z.shape[:-1])

    config = model.config
    model.config = dataclasses.replace(config, impute_from=head)
    # weights that the library does not have
    if weights == "without p(m)":
        gmvae.log_p_m_given_z = no_mask
    elif weights != "with p(m)":
        setattr(imputer, "_expected", lambda x, m: expected_by(imputer, x, m, weights))  # noqa: B010
    try:
        yield
    finally:
        model.config = config
        gmvae.log_p_m_given_z = log_p_m_given_z
        imputer.__dict__.pop("_expected", None)


def expected_by(imputer: PSMVAEImputer, x: Tensor, m: Tensor, weights: str) -> Tensor:
    """E[statistics(x)] by weights that the library does not have, ``(row, statistic)``."""
    model, n_draws = imputer.model_, imputer.n_draws
    noise = Noise(imputer.random_state, x.device)
    n_rows = max(1, AT_ONCE // (n_draws * model.config.n_sets))
    found = []
    for rows_x, rows_m in zip(x.split(n_rows), m.split(n_rows), strict=True):
        batch = Batch.of(rows_x[None], rows_m[None])
        shape = (1, len(rows_x), n_draws, model.config.n_sets, model.config.n_latent)
        if weights == "text's":
            found.append(_by_the_text(model, batch, shape, noise))
            continue
        densities = model.log_densities(batch, noise.normal(*shape))
        if weights == "program's":
            of_draw = torch.softmax(densities.log_p_x_obs.sum(-1), -1)
            w = of_draw[..., None] * densities.log_q_r.exp()[:, :, None]
        else:
            log_w = densities.log_p_x_obs + densities.log_p_z - densities.log_q_z
            log_w = log_w + (densities.log_p_r - densities.log_q_r)[:, :, None]
            w = torch.softmax(log_w.flatten(2), -1).reshape(log_w.shape)
        found.append(torch.einsum("nrls,nrlsk->nrk", w, densities.p_x.expected())[0])
    return torch.cat(found)


def _by_the_text(model: Any, batch: Batch, shape: tuple[int, ...], noise: Noise) -> Tensor:
    """The text's estimator: Σ_r p(x_mis|z,r) p(z|r) p(r) / (q(z|r,·) q(r|·)) of each draw."""
    encoding = model.encode(batch)
    q_z, log_q_r = encoding.q_z, encoding.log_q_r
    below = log_q_r.exp().cumsum(-1)[:, :, None] < noise.uniform(*shape[:3], 1)
    of_set = below.sum(-1).clamp(max=shape[3] - 1)[..., None, None]

    def chosen(values: Tensor) -> Tensor:
        """The values of the set of each draw."""
        whole = values.expand(*shape[:4], values.shape[-1])
        return whole.gather(3, of_set.expand(*shape[:3], 1, values.shape[-1]))

    z = chosen(q_z.mean) + chosen(q_z.log_s).exp() * noise.normal(*shape[:3], 1, shape[4])
    p_x = model.heads(z.expand(shape))[1]
    x_mis = chosen(p_x.sample(noise.uniform(*shape[:3], 1, batch.m.shape[-1])))
    log_w = (p_x.log_prob(x_mis) * (1 - batch.m)[:, :, None, None]).sum(-1)
    epsilon = (z - q_z.mean) * torch.exp(-q_z.log_s)
    log_w = log_w + model.p_z.log_prob(z) - q_z.log_prob_at(epsilon)
    log_w = log_w + (model.p_r() - log_q_r)[:, :, None]
    w = torch.softmax(torch.logsumexp(log_w, -1), -1)
    return torch.einsum("nrl,nrlk->nrk", w, chosen(p_x.expected()).squeeze(3))[0]


def measure(key: Key, options: dict[str, Any]) -> dict[str, list[float]]:
    """Train all seeds as one stack; return the errors of every rule."""
    seeds = range(options["seeds"])
    what = (key["table"], key["mechanism"], RATE)
    cells = [Cell(*what, seed, "psmvae-b", masks="paper") for seed in seeds]
    problems = [make_problem(cell, None) for cell in cells]
    width, n_batch, pi = SIZES[key["sizes"]]
    imputers = [
        PSMVAEImputer.paper(
            "b",
            network=dataclasses.replace(Network.paper(), width=width, depth=key["layers"]),
            batch_size=n_batch,
            pi=pi,
            kinds=dict.fromkeys(problem.columns, "real"),
            bounds=dict.fromkeys(problem.columns, (None, None)),
            max_epochs=options["epochs"],
            device=options["device"],
            random_state=seed,
        )
        for seed, problem in enumerate(problems)
    ]
    with training(key["terms"], key["start"], n_batch):
        fitted = fit_stacked(imputers, [problem.incomplete for problem in problems])
    rules = [(f"K = 1, {head}", 1, head, "with p(m)") for head in ("x_obs", "x_mis")]
    for head, weights in itertools.product(("x_obs", "x_mis"), WEIGHTS):
        name = f"K = {options['draws']:,}, {head}, {weights}"
        rules.append((name, options["draws"], head, weights))
    found = {}
    for name, n_draws, head, weights in rules:
        errors = []
        for imputer, problem in zip(fitted, problems, strict=True):
            set_draws(imputer, n_draws)
            with rule(imputer, head, weights), torch.no_grad():
                filled = imputer.transform(problem.incomplete).to_numpy(float)
            errors.append(printed_rmse(problem.truth, filled, problem.m))
        found[name] = errors
        print(*key.values(), name, round(float(np.mean(errors)), 4), flush=True)
    return found


def markdown(records: Sequence[Record]) -> str:
    """The table: lowest and highest mean over trainings, by data set, mechanism and rule."""
    lines = [
        "| on | imputed by | trainings | lowest | highest | in the paper |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for table, mechanism in sorted({(one["table"], one["mechanism"]) for one in records}):
        of_both = {"table": table, "mechanism": mechanism}.items()
        found = [record["errors"] for record in records if of_both <= record.items()]
        for name in dict.fromkeys(itertools.chain(*found)):
            means = [float(np.mean(errors[name])) for errors in found if name in errors]
            method = "psmvae-b" if name.startswith("K = 1,") else "psmvae-b-10000"
            figure = paper(f"rmse{round(100 * RATE)}")[PaperKey(table, mechanism, RATE, method)]
            lines.append(
                f"| {table} {mechanism.upper()} | {name} | {len(means)} | {min(means):.4f} "
                f"| {max(means):.4f} | {figure.mean:.4f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Train, measure and write the records and, with --page, the page."""
    parser = argparse.ArgumentParser(description="Interpretations of PSMVAE(b) at 80 % missing.")
    parser.add_argument("--tables", nargs="+", default=["breast", "spam"])
    for name, choices in VARIANTS.items():
        kind = type(choices[0])
        default = STANDARD.get(name, choices)
        parser.add_argument(f"--{name}", nargs="+", type=kind, default=default, choices=choices)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=10_000)
    add_arguments(parser, RESULTS)
    options = parser.parse_args()
    settings = {name: getattr(options, name) for name in ("epochs", "seeds", "draws", "device")}
    read = itertools.product(options.tables, *(getattr(options, name) for name in VARIANTS))
    keys = [dict(zip(("table", *VARIANTS), one, strict=True)) for one in read]
    records = run_all(measure, keys, settings, options.out, options.jobs)
    if options.page:
        replace_table(PAGE, "readings", markdown(records))


if __name__ == "__main__":
    main()
