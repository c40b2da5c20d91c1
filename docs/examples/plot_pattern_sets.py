"""
Pattern sets: rows that are missing for the same reason
=======================================================

Rows of one table can be incomplete for several reasons. ``PSMVAEImputer`` groups the rows into
pattern sets r while it learns to impute.
"""

# %%
# A survey of eight questions. Some respondents stop after the fourth question; others refuse the
# two questions about money; the rest skip single questions by accident.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from psmvae import PSMVAEImputer

rng = np.random.default_rng(0)
n = 400
reason = rng.choice(["accident", "stopped early", "refused"], n, p=[0.55, 0.25, 0.2])
attitude = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 8))
survey = pd.DataFrame(
    attitude + 0.5 * rng.normal(size=(n, 8)),
    columns=["q1", "q2", "income", "debt", "q5", "q6", "q7", "q8"],
)
survey = survey.mask(rng.random(survey.shape) < 0.03)
survey.loc[reason == "stopped early", ["q5", "q6", "q7", "q8"]] = np.nan
survey.loc[reason == "refused", ["income", "debt"]] = np.nan

# %%
# ``n_sets="auto"``, the default, chooses the number of sets by the BIC of a latent class model of
# the masks. ``predict_set`` returns the most probable set of each row.

imputer = PSMVAEImputer(max_epochs=10, random_state=0).fit(survey)
sets = imputer.predict_set(survey)
pd.crosstab(pd.Series(reason, name="true reason"), pd.Series(sets, name="set"))

# %%
# Sets are numbered by their size and have no names. The fraction of missing cells in each column
# shows what the rows of a set have in common.

rates = survey.isna().groupby(sets).mean()
fig, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
image = ax.imshow(rates, cmap="Blues", vmin=0, vmax=1, aspect="auto")
ax.set_xticks(range(survey.shape[1]), survey.columns)
ax.set_yticks(
    range(len(rates)),
    [f"set {r}: {size:.0%} of rows" for r, size in enumerate(imputer.set_sizes_)],
)
ax.set_title("fraction of missing cells")
fig.colorbar(image)
plt.show()
