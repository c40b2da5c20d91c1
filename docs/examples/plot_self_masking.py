"""
Outcomes that are missing because they are bad
==============================================

In the simulated trial, some patients miss the last visit because their outcome is bad. Methods that
assume missing at random are then too optimistic. The other columns show it: patients who are
predicted to have a bad outcome miss the visit more often. ``SelfMask`` estimates from this how the
odds of a missing outcome depend on the outcome, and corrects the imputations.
"""

# %%
# The score of week 12 is the outcome; a high score is bad. A quarter of the patients is lost for
# administrative reasons. Here these patients are known and left out. In the others, nothing but the
# outcome decides whether it is missing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from psmvae import MICEImputer, SelfMask
from psmvae.simulate import simulated_trial

trial = simulated_trial(1000, rng=np.random.default_rng(0))
kept = trial.dropout != 1
complete = pd.DataFrame(dict(trial.complete))[kept]
incomplete = complete.where(trial.m[kept])
round(float(incomplete["week12"].isna().mean()), 2)

# %%
# ``MICEImputer`` assumes missing at random by default. ``SelfMask`` states that the outcome
# decides, and that high values are missing more often. It assumes that the other columns are shadow
# variables: given the outcome, they do not influence whether it is missing.

bounds = {"week12": (0, 100)}
mar = MICEImputer(bounds=bounds, random_state=0).fit(incomplete)
mask_model = SelfMask(columns=["week12"], sign="high")
tilted = MICEImputer(mask_model=mask_model, bounds=bounds, random_state=0).fit(incomplete)

# %%
# The mechanism says what was compared: the log-likelihood of held-out masks, in nats above that of
# a constant missing rate, if the other columns explain the mask (``at_random``), if the outcome
# itself does (``own_value``), and if both do. This compares explanations and proves none of them.

print(tilted.mechanism_)
tilted.mechanism_.summary().round(2)

# %%
# ``mask_model="auto"`` makes the comparison without being told that the outcome decides.

auto = MICEImputer(mask_model="auto", bounds=bounds, random_state=0).fit(incomplete)
auto.mechanism_["week12"].chosen

# %%
# The estimated probability of a missing outcome by its value, with a 90 % band. In a simulation the
# true curve is known. It is steeper and has a ceiling of 95 %; the masks do not show this clearly,
# and a straight log-odds function has most of the weight. The band assumes the shapes that have
# weight, so it need not contain the true curve everywhere.

odds = tilted.mechanism_.odds("week12")
value = odds["value"]
true = 0.95 / (1 + np.exp(-5 * ((value - 44) / 14 - 0.4)))

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.fill_between(value, odds["low"], odds["high"], color="tab:blue", alpha=0.2, label="90 % band")
ax.plot(value, odds["probability"], color="tab:blue", label="estimated from the masks")
ax.plot(value, true, color="black", linestyle="--", label="true")
ax.set(xlabel="week 12 score (high is bad)", ylabel="probability of a missing outcome")
ax.legend()
plt.show()

# %%
# Draws show the distribution of the missing outcomes.


def missing_outcomes(imputer):
    """Missing outcomes from five imputed tables."""
    lost = incomplete["week12"].isna()
    return np.concatenate([table["week12"][lost] for table in imputer.sample(incomplete, n=5)])


bins = np.linspace(10, 90, 33)
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
truth = complete["week12"][incomplete["week12"].isna()]
ax.hist(truth, bins, density=True, color="lightgrey", label="true")
for name, imputer, color in [
    ("missing at random", mar, "tab:orange"),
    ("SelfMask", tilted, "tab:blue"),
]:
    ax.hist(
        missing_outcomes(imputer), bins, density=True, histtype="step", linewidth=2, color=color,
        label=name,
    )  # fmt: skip
ax.set(xlabel="week 12 score (high is bad)", ylabel="density", title="missing outcomes")
ax.legend()
plt.show()

# %%
# The estimate of interest is the mean outcome of all patients.

estimates = {
    "all patients (truth)": complete["week12"].mean(),
    "complete cases": incomplete["week12"].mean(),
    "missing at random": mar.transform(incomplete)["week12"].mean(),
    "SelfMask": tilted.transform(incomplete)["week12"].mean(),
}
pd.Series(estimates).round(1)
