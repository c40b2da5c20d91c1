"""The figure of the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psmvae.simulate.trial import DROPOUT_REASONS, OUTCOME, bad_outcome_probability

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from psmvae.demo.study import Study

_TRUTH, _PSMVAE, _OTHER = "#8c8c8c", "#1f6fb2", "#d97b29"


def draw(study: Study, path: Path) -> None:
    """Draw the three panels to a PNG file."""
    # without pyplot, which has global state and may start a window system
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    panels = figure.subplots(1, 3, width_ratios=[1.1, 1.0, 0.9])
    for axes, plot in zip(panels, (_distribution, _imputed_against_true, _mechanism), strict=True):
        plot(axes, study)
    figure.savefig(path, format="png", dpi=130)


def _distribution(axes: Axes, study: Study) -> None:
    """Histograms of the true, observed and imputed outcomes."""
    truth = study.trial.complete[OUTCOME]
    bins = np.linspace(truth.min(), truth.max(), 31).tolist()
    axes.hist(truth, bins, density=True, color=_TRUTH, alpha=0.35, label="true values")
    for values, color, label in (
        (truth[study.trial.observed(OUTCOME)], _OTHER, "observed cases"),
        (study.draws.ravel(), _PSMVAE, f"PSMVAE, {len(study.draws)} imputations"),
    ):
        axes.hist(values, bins, density=True, histtype="step", lw=1.8, color=color, label=label)
        axes.axvline(values.mean(), ymax=0.8, color=color, lw=1.2, ls="--")
    axes.axvline(truth.mean(), 0, 0.8, color="black", lw=1.2, ls="--", label="means (true: black)")
    axes.set(
        title="Distribution of the outcome", xlabel="week-12 score (higher is worse)", yticks=[]
    )
    axes.set_ylim(top=1.35 * axes.get_ylim()[1])  # room for the legend
    axes.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _imputed_against_true(axes: Axes, study: Study) -> None:
    """Imputed and true outcomes of the patients with bad-outcome dropout."""
    bad = study.trial.dropout == DROPOUT_REASONS.index("bad outcome")
    truth = study.trial.complete[OUTCOME][bad]
    for method, color in (("MICE", _OTHER), ("PSMVAE", _PSMVAE)):
        imputed = study.filled[method][OUTCOME][bad]
        label = f"{method} (mean error {imputed.mean() - truth.mean():+.1f})"
        axes.scatter(truth, imputed, s=9, alpha=0.55, lw=0, color=color, label=label)
    ends = [truth.min(), truth.max()]
    axes.plot(ends, ends, color="black", lw=1)
    axes.set(
        title="Outcomes missing by bad-outcome dropout",
        xlabel="true week-12 score",
        ylabel="imputed week-12 score",
    )
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)


def _mechanism(axes: Axes, study: Study) -> None:
    """Probability of going missing by the outcome: the true one, and the one that was found."""
    truth = study.trial.complete[OUTCOME]
    grid = np.linspace(truth.min(), truth.max(), 100)
    axes.plot(grid, bad_outcome_probability(grid), color=_TRUTH, lw=3, alpha=0.6, label="true")
    found = study.imputer.mechanism_
    if found is not None and OUTCOME in found and found[OUTCOME].tilt is not None:
        odds = found.odds(OUTCOME, backend="pyarrow").to_pydict()
        value = odds["value"]
        axes.plot(value, odds["probability"], color=_PSMVAE, lw=1.8, label="found, with 90 % band")
        axes.fill_between(value, odds["low"], odds["high"], color=_PSMVAE, alpha=0.2, lw=0)
    axes.set(title="Probability of bad-outcome dropout", xlabel="week-12 score", ylim=(0, 1))
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
