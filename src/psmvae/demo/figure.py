"""The figure of the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psmvae.simulate.trial import DROPOUT_REASONS, OUTCOME

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
    for axes, plot in zip(panels, (_distribution, _imputed_against_true, _sets), strict=True):
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


def _sets(axes: Axes, study: Study) -> None:
    """Number of patients by dropout reason and pattern set."""
    n_sets, n_reasons = study.proba.shape[1], len(DROPOUT_REASONS)
    # matched sets first, in the order of the reasons, so that matches are on the diagonal
    order = [*study.set_of_reason, *(r for r in range(n_sets) if r not in study.set_of_reason)]
    counts = np.zeros((n_reasons, n_sets), dtype=int)
    np.add.at(counts, (study.trial.dropout, study.sets), 1)
    counts = counts[:, order]
    share = counts / counts.sum(axis=1, keepdims=True)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for reason, column in np.ndindex(n_reasons, n_sets):
        color = "white" if share[reason, column] > 0.6 else "black"
        count = str(counts[reason, column])
        axes.text(column, reason, count, ha="center", va="center", color=color)
    axes.set_xticks(range(n_sets), [f"set {r}" for r in order])
    axes.set_yticks(range(n_reasons), DROPOUT_REASONS)
    axes.set(
        title=f"Dropout reasons and sets ({study.accuracy:.0%} match)",
        xlabel="pattern set",
        ylabel="true dropout reason",
    )
    axes.tick_params(length=0)
