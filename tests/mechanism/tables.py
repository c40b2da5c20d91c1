"""Simulated tables whose missingness is known, and mechanisms fitted to them."""

import numpy as np
import pandas as pd

from psmvae import MICEImputer


def numbers(n, seed, n_columns=3, noise=0.6):
    """Return correlated Normal columns a, b, c, …, and the generator."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) + noise * rng.normal(size=(n, n_columns))
    return pd.DataFrame(x, columns=list("abcdefgh"[:n_columns])), rng


def masked(complete, **missing):
    """Return a copy with cells missing where a column's array of bool is True."""
    table = complete.copy()
    for name, where in missing.items():
        if table[name].dtype.kind in "iu":
            table[name] = table[name].astype("Int64")
        elif table[name].dtype.kind == "b":
            table[name] = table[name].astype("boolean")
        table.loc[np.asarray(where), name] = None if table[name].dtype == object else pd.NA
    return table


def mechanism_of(table, mask_model="auto", **parameters):
    """Fit the mechanism of MICE without its chains."""
    imputer = MICEImputer(mask_model=mask_model, random_state=0, max_iter=3, **parameters)
    encoded = imputer._read(table)
    imputer._fit_mechanism(encoded, n_jobs=1)
    return imputer.mechanism_
