"""
From missing outcomes to a sentence for a paper
===============================================

Some patients of the simulated trial miss the last visit because their outcome is bad. The data
cannot tell how bad it was. A sensitivity analysis keeps the estimand and the analysis, changes the
assumption about the missing outcomes, and reports how far the estimate moves.
"""

# %%
# The score of week 12 is the outcome; a high score is bad. About half of the outcomes are missing.
# The estimand is the difference of the mean outcome between the arms, adjusted for baseline.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

from psmvae import MICEImputer, PSMVAEImputer, SelfMask, compare_assumptions, tipping_point
from psmvae.simulate import simulated_trial

trial = simulated_trial(300, rng=np.random.default_rng(1))
complete = pd.DataFrame(dict(trial.complete))
incomplete = complete.where(trial.m)
incomplete.groupby("arm")["week12"].agg(patients="size", observed="count", mean="mean").round(1)


# %%
def analyse(table):
    """Effect of the active arm on the outcome, adjusted for baseline."""
    fit = smf.ols("week12 ~ C(arm, Treatment('control')) + baseline", table).fit()
    name = "C(arm, Treatment('control'))[T.active]"
    return {"estimate": fit.params[name], "std_error": fit.bse[name], "df": fit.df_resid,
            "term": "effect of active"}  # fmt: skip


# %%
# **The primary analysis** assumes that outcomes are missing at random: multiple imputation, one
# analysis of each completed table, and Rubin's rules.

bounds = dict.fromkeys(["week4", "week8", "week12", "adherence"], (0, 100))
mi = MICEImputer(bounds=bounds, random_state=0).fit(incomplete).impute_multiple(incomplete, m=20)
columns = ["estimate", "std_error", "conf_low", "conf_high", "p_value", "fmi"]
mi.analyse(analyse).pool().summary()[columns].round(3)

# %%
# **A shift δ** says how much worse the missing outcomes are than the imputed ones. It is added to
# imputed cells only; the imputations are used again and nothing is refitted. Here the missing
# outcomes of the active arm are worse, and those of the control arm are as imputed.

worse = mi.shift({"week12": {"arm == 'active'": 5}})
worse.analyse(analyse).pool().summary()[columns].round(3)

# %%
# **The tipping point** is the δ at which the conclusion turns. Each arm has a δ of its own.

deltas = {"active": np.linspace(0, 18, 7), "control": np.linspace(0, 9, 4)}
tp = tipping_point(mi, analyse, "week12", deltas, by="arm")
fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
tp.plot(ax)
plt.show()

# %%
# One row for each pair of shifts; those at which the conclusion no longer holds:

table = tp.summary()
table[~table["holds"]].head().round(2)

# %%
# And in one sentence:

print(tp.sentence("the effect of the active arm on the week 12 score"))

# %%
# Whether such a δ is plausible is a clinical question. The data cannot answer it.
#
# **Other assumptions** can be put beside it. ``SelfMask`` assumes that the outcome itself affects
# whether it is missing. Few epochs keep this example short.

assumptions = [
    "complete cases",
    "mar",
    {"base": SelfMask(columns=["week12"], sign="high"), "label": "self-masking"},
    {"shift": {"week12": 5}, "label": "mar, 5 points worse"},
    {"shift": {"week12": {"arm == 'active'": 5}}, "label": "mar, active arm 5 points worse"},
]
imputer = PSMVAEImputer(bounds=bounds, n_draws=20, max_epochs=5)
comparison = compare_assumptions(
    incomplete,
    analyse,
    assumptions,
    imputer=imputer,
    complete_on=["arm", "baseline", "week12"],
    random_state=0,
)
comparison.plot()
plt.show()

# %%
comparison.summary().drop(columns="term").round(3)

# %%
# In a simulation the missing outcomes are known. With all of them, the estimate is:

round(float(analyse(complete)["estimate"]), 1)
