"""What a user states about cells that are missing because of their value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

SHAPES = ("auto", "straight", "ceiling", "smooth")


@dataclass(frozen=True)
class SelfMask:
    """State that the probability of a missing cell depends on its own value.

    The odds are exp γ(x_j). γ is estimated from the masks by shadow variables: columns that predict
    x_j and that do not influence its mask, given x_j. Missing cells are imputed from
    p_obs(x_j | rest) · exp γ(x_j), where p_obs is the distribution among the rows where x_j is
    observed.

    Parameters
    ----------
    columns : sequence of str, optional
        Columns for which this holds. Cells of other columns are taken to be missing at random.
        Default: all columns with missing cells.
    sign : {"high", "low"}, optional
        Whether large or small values are missing more often, if this is known. γ is then monotone.
        Applies to numbers and ordered levels. Not together with ``slope``.
    shape : {"auto", "straight", "ceiling", "smooth"}, default="auto"
        Shape of γ. "straight" is a logistic regression of the mask on the value. "ceiling" rises
        from a lowest to a highest probability, at once or gradually. "smooth" has one number for
        each of up to 32 bins. "auto" averages these, a constant, and shapes with an interval that
        has odds of its own, with weights from their marginal likelihoods.
    slope : float or (float, float), optional
        Log odds for one unit of the column (of its logarithm for positive columns, of log(1 + x)
        for counts) if they are known, or mean and standard deviation of a Normal prior. γ is then
        straight.
    shadow : sequence of str, optional
        Columns that do not influence the masks of `columns`, given their values. The other columns
        then enter the log odds linearly. Default: all other columns.

    Examples
    --------
    >>> from psmvae import PSMVAEImputer, SelfMask
    >>> SelfMask(columns=["income"], sign="high").columns
    ('income',)
    >>> PSMVAEImputer(SelfMask(columns=["income"], slope=(0.5, 0.2))).mask_model.slope
    (0.5, 0.2)
    """

    columns: Sequence[str] | None = None
    sign: Literal["high", "low"] | None = None
    shape: Literal["auto", "straight", "ceiling", "smooth"] = "auto"
    slope: float | tuple[float, float] | None = None
    shadow: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Check the settings."""
        for name in ("columns", "shadow"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise TypeError(
                    f"SelfMask needs {name} to be a list of column names, got the string "
                    f"{value!r}; did you mean [{value!r}]?"
                )
            if value is not None and not isinstance(value, Iterable):
                raise TypeError(f"SelfMask needs {name} to be a list of column names: {value!r}.")
            if value is not None:
                object.__setattr__(self, name, tuple(value))
                if not getattr(self, name):
                    raise ValueError(
                        f"SelfMask needs at least one name in {name}; None stands for all."
                    )
        if self.sign not in (None, "high", "low"):
            raise ValueError(f"SelfMask needs sign to be 'high' or 'low', got {self.sign!r}.")
        if self.shape not in SHAPES:
            raise ValueError(f"SelfMask needs shape to be one of {SHAPES}, got {self.shape!r}.")
        if self.sign is not None and self.slope is not None:
            raise ValueError(
                "SelfMask takes sign or slope, not both: a positive slope is sign='high', a "
                "negative one 'low'."
            )
        if self.slope is not None:
            object.__setattr__(self, "slope", _slope(self.slope))

    @property
    def slope_prior(self) -> tuple[float, float] | None:
        """Mean and standard deviation of the slope; the latter is 0 where it is given."""
        if self.slope is None:
            return None
        return self.slope if isinstance(self.slope, tuple) else (self.slope, 0.0)


def _slope(given: object) -> float | tuple[float, float]:
    message = f"SelfMask needs slope to be a number or (mean, standard deviation), got {given!r}."
    if isinstance(given, str):
        raise TypeError(message)
    try:
        values = [float(each) for each in (given if isinstance(given, Sequence) else [given])]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(message) from None
    if not np.isfinite(values).all():
        raise ValueError(message)
    if not isinstance(given, Sequence):
        return values[0]
    if len(values) != 2 or values[1] < 0:
        raise ValueError(message)
    return values[0], values[1]
