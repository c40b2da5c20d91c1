"""Colours of pictures, by role.

Blue and vermilion are those of Okabe and Ito, which colour-blind readers tell apart. Colours of
marks have a contrast of at least 3:1 with a white and with a dark background. A page replaces
the colours by CSS variables, ``--psm-`` and the role, and sets these for its dark mode.
"""

from __future__ import annotations

from typing import Any

FG = "#1f2937"
MUTED = "#6b7280"
GRID = "#e5e7eb"
BG = "#ffffff"
OBSERVED = "#0072b2"
IMPUTED = "#d55e00"
THIRD = "#00835f"
INK = "#0b0f19"

LIGHT = {
    "fg": FG,
    "muted": MUTED,
    "grid": GRID,
    "bg": BG,
    "observed": OBSERVED,
    "imputed": IMPUTED,
    "third": THIRD,
    "ink": INK,
}
"""Colours on a white background, by role."""

DARK = {
    "fg": "#e5e7eb",
    "muted": "#9ca3af",
    "grid": "#374151",
    "bg": "#111827",
    "observed": "#4aa8e0",
    "imputed": "#f0803c",
    "third": "#2bb58c",
    # numbers on strong colours, which are bright in both modes
    "ink": INK,
}
"""Colours on a dark background, by role."""


# Between an opacity of 0.5 and 0.7, neither bright nor dark numbers can be read on a dark page.
# The colour maps leave these out, and numbers are dark from here on.
STRONG_RATE, STRONG_DIFFERENCE = 0.6, 13 / 21


def rates() -> Any:
    """Return a colour map from transparent to vermilion, in ten steps, for fractions."""
    from matplotlib.colors import ListedColormap, to_rgba

    # nothing is drawn for 0; a small fraction can be seen
    alphas = [0.0, 0.14, 0.23, 0.32, 0.41, 0.5, 0.7, 0.76, 0.82, 0.88]
    return ListedColormap([to_rgba(IMPUTED, alpha) for alpha in alphas], name="psmvae rates")


def differences() -> Any:
    """Return a colour map from blue by transparent to vermilion, in 21 steps."""
    from matplotlib.colors import ListedColormap, to_rgba

    alphas = [0.0, 0.08, 0.16, 0.24, 0.33, 0.42, 0.5, 0.7, 0.75, 0.8, 0.85]
    blue = [to_rgba(OBSERVED, alpha) for alpha in alphas[:0:-1]]
    red = [to_rgba(IMPUTED, alpha) for alpha in alphas]
    return ListedColormap(blue + red, name="psmvae differences")
