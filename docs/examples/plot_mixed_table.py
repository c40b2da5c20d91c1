"""
Impute a table of mixed columns
===============================

A table with numbers, counts and categories is imputed once. Observed cells stay as they are, and
missing cells get values that are possible in their column.
"""

# %%
# A table of flats in which a fifth of the cells is missing completely at random.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from psmvae import PSMVAEImputer

rng = np.random.default_rng(0)
n = 400
size = rng.normal(size=n)
complete = pd.DataFrame(
    {
        "area": 75 + 15 * size + rng.normal(0, 3, n),
        "rent": np.exp(6.6 + 0.4 * size + rng.normal(0, 0.1, n)),
        "rooms": 1 + rng.poisson(np.exp(0.6 + 0.4 * size)),
        "balcony": np.where(size + rng.normal(0, 0.7, n) > 0, "yes", "no"),
    }
)
incomplete = complete.mask(rng.random(complete.shape) < 0.2)
incomplete.head()

# %%
# ``kinds`` declares what the imputer cannot infer: rents are positive and right-skewed, rooms are
# counts. The other kinds are inferred.

imputer = PSMVAEImputer(kinds={"rent": "positive", "rooms": "count"}, max_epochs=10, random_state=0)
filled = imputer.fit_transform(incomplete)
filled.head()

# %%
# Observed cells are unchanged, and no cell is missing.

observed = incomplete.notna()
pd.Series(
    {
        "observed cells changed": int((filled != incomplete)[observed].sum().sum()),
        "cells missing": int(filled.isna().sum().sum()),
        "smallest rent": round(filled["rent"].min(), 1),
        "all rooms are whole numbers": bool((filled["rooms"] % 1 == 0).all()),
    }
)

# %%
# Imputed against true values of the cells that were missing. For a category, the fraction of
# correct levels is the figure to look at.

fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, name in zip(axes, ["area", "rent", "rooms"], strict=True):
    missing = ~observed[name]
    ax.scatter(complete.loc[missing, name], filled.loc[missing, name], s=12, alpha=0.7)
    limits = [complete[name].min(), complete[name].max()]
    ax.plot(limits, limits, color="grey", linewidth=1)
    ax.set(title=name, xlabel="true value", ylabel="imputed value")
missing = ~observed["balcony"]
correct = (filled.loc[missing, "balcony"] == complete.loc[missing, "balcony"]).mean()
fig.suptitle(f"missing cells; balcony: {correct:.0%} of the levels are correct")
plt.show()
