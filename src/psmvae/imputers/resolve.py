"""Where the parameters of a deep imputer become one frozen configuration.

Every "auto" is replaced here, once for each `fit`, by a value that suits the table. The sizes were
chosen by the error of validation cells of the tables named beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from psmvae.imputers import checks
from psmvae.imputers.options import Advanced
from psmvae.models.config import GAINConfig, LatentConfig, n_pretrain_batches
from psmvae.nn.architecture import Network
from psmvae.nn.settings import LatentMask, MaskModel, NoMask, mask_model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from psmvae.imputers.deep import DeepImputer
    from psmvae.imputers.gain import GAINImputer
    from psmvae.imputers.latent import LatentImputer
    from psmvae.kinds import Column

    Bools = NDArray[np.bool_]

# Training steps at most, whatever the number of rows.
MAX_STEPS = 20_000
MIN_EPOCHS, MAX_EPOCHS = 100, 1000
# Largest number of epochs and steps of pre-training. Those on a GPU were chosen by validation
# errors on letter, wine, adult, spam and credit, with seeds that no result uses. A row takes less
# time in a larger batch.
PRETRAIN_LIMITS = {"cpu": (140, 8000), "cuda": (600, 32_000)}
MIN_PRETRAIN_BATCH, MAX_PRETRAIN_BATCH = 200, 400
# A CPU takes larger batches from FEW_ROWS and from MANY_ROWS rows on: as many epochs of them reach
# the same error in less time.
MAX_CPU_PRETRAIN_BATCH, MAX_CPU_PRETRAIN_BATCH_MANY_ROWS = 600, 500
# The larger regression of tables with many rows takes longer to converge on a CPU.
LARGE_PRETRAIN_EPOCHS = 160
# Where mixtures predict well, the last epochs lower the error of averages by little.
MIXTURE_PRETRAIN_EPOCHS, PRETRAIN_MIXTURE_GAIN = 36, 0.06
# Steps after pre-training, which fit the residuals. More steps make draws slightly sharper and do
# not lower the error of single imputations. A CPU takes fewer, since each costs several times as
# much as a step of the regression. Chosen by errors on letter and wine, with seeds that no result
# uses.
POST_PRETRAIN_STEPS = {"cpu": 100, "cuda": 1500}
POST_PRETRAIN_BATCH = 256
MANY_COLUMNS = 40
# A CPU with fewer seconds for each row and member than this gets the fast preset: it passes over
# the rows so few times that other settings reach a lower error (letter and wine, `max_time` as long
# as MissForest takes). Tables with fewer rows than FEW_ROWS converge in time with the standard one.
SECONDS_PER_ROW, FEW_ROWS, MANY_ROWS = 0.01, 2000, 10_000
# A table of fewer than FEW_ROWS rows gets a regression if it has this many, and nonlinear terms
# remove this fraction of the squared error of linear regressions of its columns on each other.
# Chosen by letter, wine, adult, credit, spam and simulated tables, with seeds that no result uses.
MIN_REGRESSION_ROWS, MIN_NONLINEAR_GAIN = 500, 0.02
# In tables of FEW_ROWS rows or more, a CPU trains a smaller regression where the nonlinear terms
# remove less than this: the error is the same in less time (wine, adult, credit). Where they remove
# more, a smaller regression has a higher error (letter). Such a table takes longer to fit, and can
# afford to estimate the fraction from more rows and columns.
MIN_WIDE_NONLINEAR_GAIN = 0.075
NONLINEAR_GAIN_SAMPLE = {"max_rows": 2000, "max_columns": 16}
# Linear predictions are averaged with those of the networks in tables of fewer than FEW_ROWS rows,
# unless the matrices of their patterns take more operations than this to invert: about a second.
MAX_LINEAR_WORK = 2e8
# Predictions of Gaussian mixtures are averaged with them in larger tables where a small mixture
# removes this fraction of the squared error of a multivariate Normal. Tables with more rows than
# this have enough for a network, and are imputed faster without mixtures. This gain and the one
# above were chosen by letter, wine, credit, adult and simulated tables, with seeds that no result
# uses.
MIN_MIXTURE_GAIN, MAX_MIXTURE_TABLE = 0.01, 50_000
# Decay of the running average of the weights, where a validation error chooses among them.
WEIGHT_AVERAGE = 0.99


@dataclass(frozen=True)
class Preset:
    """Values of "auto", and the cost of the initial weights. None sizes to the table."""

    network: Network | None
    learning_rate: float
    input_mask_rate: float
    factor_analysis_rows: int
    factor_analysis_steps: int
    regression: Network | None = None
    pretrain_time_fraction: float = 1.0
    validation_rows: int | None = None


REGRESSION = Network(width=192, depth=3, residual=False, linear=False, smooth=True)
NARROW_REGRESSION = replace(REGRESSION, width=128)
LARGE_REGRESSION = {
    "cpu": replace(REGRESSION, width=232, depth=4),
    "cuda": replace(REGRESSION, width=256, depth=4),
}
STANDARD = Preset(None, 1e-3, 0.25, 3000, 100)
# Beside a regression the networks model residuals only, and small ones suffice.
STANDARD_PRETRAINED = replace(
    STANDARD,
    network=Network(width=64, depth=1),
    regression=REGRESSION,
    pretrain_time_fraction=0.8,
    validation_rows=2048,
)
# Chosen by the error of validation cells in the time that MissForest takes (benchmarks/pace.py).
# A regression is trained on all rows, and 1,024 of them suffice to measure its error.
FAST = Preset(Network(width=128, depth=2), 3e-3, 0.5, 1000, 30)
FAST_PRETRAINED = replace(
    FAST,
    network=Network(width=64, depth=1),
    regression=REGRESSION,
    pretrain_time_fraction=0.92,
    validation_rows=1024,
)


def network_for(n_rows: int, n_columns: int) -> Network:
    """Size the networks to the table (letter, wine and breast for rows, digits for columns)."""
    if n_columns >= MANY_COLUMNS and n_rows >= 500:
        return Network(width=256, depth=3, dropout=0.05)
    if n_rows < FEW_ROWS:
        return Network(width=64, depth=1, dropout=0.1)
    if n_rows < MANY_ROWS:
        return Network(width=128, depth=2, dropout=0.05)
    return Network(width=256, depth=3)


def batch_size_for(n_rows: int) -> int:
    """Eight steps an epoch, between 32 and 512 rows."""
    return max(32, min(512, n_rows // 8))


def pretrain_batch_size_for(n_rows: int, device: str) -> int:
    """Some 9 or 13 steps of pre-training an epoch, or more where the table has many rows."""
    n_steps, largest = 13, MAX_PRETRAIN_BATCH
    if device == "cpu" and n_rows >= FEW_ROWS:
        many = n_rows >= MANY_ROWS
        n_steps = 9
        largest = MAX_CPU_PRETRAIN_BATCH_MANY_ROWS if many else MAX_CPU_PRETRAIN_BATCH
    return max(MIN_PRETRAIN_BATCH, min(largest, n_rows // n_steps))


def max_epochs_for(n_rows: int, batch_size: int) -> int:
    """Epochs of at most MAX_STEPS steps in all, within bounds."""
    steps = max(1, n_rows // batch_size)
    return max(MIN_EPOCHS, min(MAX_EPOCHS, MAX_STEPS // steps))


def is_fast(imputer: LatentImputer, n_rows: int) -> bool:
    """Whether `max_time` leaves a CPU too little time for the standard preset."""
    on_cpu = checks.torch_device(imputer.device).type == "cpu"
    if imputer.max_time is None or n_rows < FEW_ROWS or not on_cpu:
        return False
    return float(imputer.max_time) < SECONDS_PER_ROW * n_rows * int(imputer.n_members)


def _training(imputer: DeepImputer, preset: Preset, n_rows: int, n_columns: int) -> dict[str, Any]:
    """Fields of `Config`, from the parameters that every deep imputer has."""
    size, epochs = imputer.batch_size, imputer.max_epochs
    rate, masked = imputer.learning_rate, imputer.input_mask_rate
    batch_size = batch_size_for(n_rows) if size == "auto" else int(size)
    network = imputer.network
    if network == "auto":
        network = preset.network or network_for(n_rows, n_columns)
    return {
        "n_members": int(imputer.n_members),
        "network": network,
        "max_epochs": max_epochs_for(n_rows, batch_size) if epochs == "auto" else int(epochs),
        "batch_size": batch_size,
        "learning_rate": preset.learning_rate if rate == "auto" else float(rate),
        "validation_fraction": float(imputer.validation_fraction),
        "validation_rows": preset.validation_rows,
        "patience": int(imputer.patience),
        "input_mask_rate": preset.input_mask_rate if masked == "auto" else float(masked),
        "weight_average": WEIGHT_AVERAGE if imputer.validation_fraction > 0 else 0.0,
        "max_time": None if imputer.max_time is None else float(imputer.max_time),
    }


def gain_config(imputer: GAINImputer, n_rows: int, n_columns: int) -> GAINConfig:
    """Resolve the parameters of `GAINImputer`."""
    shared = _training(imputer, STANDARD, n_rows, n_columns)
    if shared["network"] == "columns":
        shared["network"] = Network(width=n_columns, depth=2, residual=False, linear=False)
    return GAINConfig(**shared, hint_rate=float(imputer.hint_rate), alpha=float(imputer.alpha))


def latent_config(
    imputer: LatentImputer,
    n_rows: int,
    n_columns: int,
    *,
    regression: Any = None,
    mixture_gain: float = 0.0,
    **own: Any,
) -> LatentConfig:
    """Resolve the parameters of an imputer with latent variables.

    ``mixture_gain`` is what Gaussian mixtures gain, or 0 if there are none.
    """
    device = checks.torch_device(imputer.device).type
    fast = is_fast(imputer, n_rows)
    preset = FAST if fast else STANDARD
    if regression is not None:
        preset = FAST_PRETRAINED if fast else STANDARD_PRETRAINED
        if not fast and n_rows >= MANY_ROWS:
            preset = replace(preset, regression=LARGE_REGRESSION[device])
    shared = _training(imputer, preset, n_rows, n_columns)
    if regression is not None and imputer.batch_size == "auto":
        # the steps that follow pre-training are few, and their time grows with the batch
        shared["batch_size"] = min(shared["batch_size"], POST_PRETRAIN_BATCH)
    scale, latent = imputer.scale, imputer.n_latent
    options = imputer.advanced or Advanced()
    pretrain_size = pretrain_batch_size_for(n_rows, device)
    n_batches = n_pretrain_batches(n_rows, pretrain_size)
    epochs, steps = PRETRAIN_LIMITS[device]
    if n_rows >= MANY_ROWS:
        epochs = max(epochs, LARGE_PRETRAIN_EPOCHS)
    if device == "cpu" and mixture_gain >= PRETRAIN_MIXTURE_GAIN:
        epochs = MIXTURE_PRETRAIN_EPOCHS
        preset = replace(
            preset,
            factor_analysis_rows=FAST.factor_analysis_rows,
            factor_analysis_steps=FAST.factor_analysis_steps,
        )
    if device == "cpu" or imputer.max_epochs != "auto":
        epochs = min(epochs, shared["max_epochs"])
    resolved: dict[str, Any] = {
        **shared,
        "n_latent": max(2, min(20, n_columns)) if latent == "auto" else int(latent),
        "scale": scale if isinstance(scale, str) else float(scale),
        "beta": float(getattr(imputer, "beta", 1.0)),
        "weight_observed": bool(options.weight_observed),
        "impute_from": options.impute_from,
        "regression": preset.regression if regression == "auto" else regression,
        "mixture": mixture_gain >= MIN_MIXTURE_GAIN,
        "factor_analysis_rows": preset.factor_analysis_rows,
        "factor_analysis_steps": preset.factor_analysis_steps,
        "pretrain_steps": 0 if regression is None else min(steps, epochs * n_batches),
        "pretrain_time_fraction": preset.pretrain_time_fraction,
        "pretrain_batch_size": pretrain_size,
        "post_pretrain_steps": POST_PRETRAIN_STEPS[device],
        "fast_preset": fast,
    }
    return LatentConfig(**(resolved | own))


def resolve_mask_model(setting: Any, also: Sequence[str] = ()) -> MaskModel:
    """Return the mask model given by the parameter `mask_model`.

    ``also`` are other names that the parameter takes, for the error message.
    """
    if isinstance(setting, type):
        raise TypeError(f"mask_model must be an object and not a class: {setting.__name__}(...).")
    return mask_model(setting, also)


def resolve_regression(
    setting: Any,
    mask: MaskModel,
    imputer: LatentImputer,
    n_rows: int,
    nonlinear_gain: Callable[[], float],
) -> Any:
    """Return None for "auto" where a regression does not pay, or is unusable.

    It pays in a table of many rows, or of fewer with nonlinear relations. On a CPU these also
    decide on its size. ``nonlinear_gain`` is called only where it decides.
    """
    if setting != "auto":
        return setting
    usable = imputer.scale != "student" and isinstance(mask, LatentMask | NoMask)
    if not usable or imputer.validation_fraction == 0 or n_rows < MIN_REGRESSION_ROWS:
        return None
    if n_rows < FEW_ROWS:
        return "auto" if nonlinear_gain() >= MIN_NONLINEAR_GAIN else None
    on_cpu = checks.torch_device(imputer.device).type == "cpu"
    if on_cpu and nonlinear_gain() < MIN_WIDE_NONLINEAR_GAIN:
        return REGRESSION if n_rows >= MANY_ROWS else NARROW_REGRESSION
    return "auto"


def averaged_columns(mask: MaskModel, columns: Sequence[Column], m: Bools) -> list[int]:
    """Return the columns whose predictions ``regression="auto"`` averages with linear ones."""
    from psmvae.imputers.linear_mean import KINDS, work

    if not isinstance(mask, LatentMask | NoMask) or len(m) >= FEW_ROWS:
        return []
    # complete columns too: their validation cells add to the estimate of the weights
    found = [j for j, column in enumerate(columns) if column.kind in KINDS]
    incomplete = bool(found) and not m[:, found].all()
    return found if incomplete and work(columns, m) <= MAX_LINEAR_WORK else []


def corrected_columns(mask: MaskModel, columns: Sequence[Column], m: Bools) -> list[int]:
    """Return the columns whose predictions ``regression="auto"`` corrects by trees."""
    from psmvae.imputers.residual_trees import KINDS, MAX_COLUMNS

    if not isinstance(mask, LatentMask | NoMask) or len(m) < FEW_ROWS:
        return []
    found = [j for j, each in enumerate(columns) if each.kind in KINDS and not m[:, j].all()]
    return found if len(found) <= MAX_COLUMNS else []


def resolve_mixture_gain(
    mask: MaskModel,
    columns: Sequence[Column],
    m: Bools,
    max_seconds: float,
    gain: Callable[[], float],
) -> float:
    """Return what Gaussian mixtures gain, or 0 where ``regression="auto"`` has none.

    ``gain`` is called only where it decides.
    """
    from psmvae.imputers.mixture_mean import MIN_COMPONENTS, n_components

    if not isinstance(mask, LatentMask | NoMask) or not FEW_ROWS <= len(m) < MAX_MIXTURE_TABLE:
        return 0.0
    if corrected_columns(mask, columns, m):
        return 0.0
    return gain() if n_components(columns, m, max_seconds) >= MIN_COMPONENTS else 0.0
