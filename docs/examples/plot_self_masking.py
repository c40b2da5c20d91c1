"""
Outcomes that are missing because they are bad
==============================================

In the simulated trial, some patients miss the last visit because their outcome is bad. Methods that
assume ignorable missingness are then too optimistic. A self-masking model corrects this, if its
assumption holds.
"""

# %%
# The score of week 12 is the outcome; a high score is bad. A quarter of the patients is lost for
# administrative reasons, others because of the outcome itself.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from psmvae import LogisticMask, MICEImputer, PSMVAEImputer
from psmvae.simulate import simulated_trial

trial = simulated_trial(500, rng=np.random.default_rng(1))
complete = pd.DataFrame(dict(trial.complete))
incomplete = complete.where(trial.m)
incomplete["week12"].isna().mean()

# %%
# ``MICEImputer`` assumes that missingness is ignorable. ``LogisticMask`` states that the probability of
# a missing outcome depends on the outcome itself, and that high values are missing more often.
# Neither assumption can be tested with these data.

mice = MICEImputer(random_state=0).fit(incomplete)
mask_model = LogisticMask(columns=["week12"], sign="high")
imputer = PSMVAEImputer(mask_model, n_sets=2, n_draws=20, max_epochs=5, random_state=0)
imputer = imputer.fit(incomplete)

# %%
# Draws, rather than means, show the distribution of the missing outcomes.

lost = trial.dropout == 2


def missing_outcomes(imputer):
    """Outcomes of the patients who left because of them, from five imputed tables."""
    return np.concatenate([table["week12"][lost] for table in imputer.sample(incomplete, n=5)])


outcomes = {
    "true": complete["week12"][lost].to_numpy(),
    "MICE": missing_outcomes(mice),
    "PSMVAE with LogisticMask": missing_outcomes(imputer),
}

bins = np.linspace(10, 90, 33)
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.hist(outcomes["true"], bins, density=True, color="lightgrey", label="true")
for name, color in [("MICE", "tab:orange"), ("PSMVAE with LogisticMask", "tab:blue")]:
    ax.hist(
        outcomes[name], bins, density=True, histtype="step", linewidth=2, color=color, label=name
    )
ax.set(
    xlabel="week 12 score (high is bad)",
    ylabel="density",
    title="outcomes of patients who left because of a bad outcome",
)
ax.legend()
plt.show()

# %%
# The estimate of interest is the mean outcome of all patients.

estimates = {
    "all patients (truth)": complete["week12"].mean(),
    "complete cases": incomplete["week12"].mean(),
    "MICE": mice.transform(incomplete)["week12"].mean(),
    "PSMVAE with LogisticMask": imputer.transform(incomplete)["week12"].mean(),
}
pd.Series(estimates).round(1)
