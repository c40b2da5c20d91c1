"""What all deep imputers share: their parameters, and the work around a trained model."""

from __future__ import annotations

import dataclasses
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from psmvae.imputers import checks, sizing
from psmvae.imputers.base import Bools, Callback, Floats, Imputer
from psmvae.imputers.progress import both, progress_bar
from psmvae.nn.settings import Network
from psmvae.table.codec import Encoded
from psmvae.training.settings import Progress, Training

if TYPE_CHECKING:
    from torch import Tensor, nn

    from psmvae.models.settings import Settings
    from psmvae.nn.columns import Columns, Layout
    from psmvae.nn.noise import Noise
    from psmvae.training.recipe import Recipe

# Decay of the running mean of the weights, where a held-out error chooses among them.
AVERAGE = 0.99
# With fewer draws a user asked for a rough answer and is not warned that it is one.
MANY_DRAWS, MIN_SAMPLE_SIZE = 50, 1.5


@dataclass(kw_only=True, repr=False, eq=False)
class DeepImputer(Imputer):
    """Parameters and attributes that all deep imputers have.

    Parameters
    ----------
    n_members : int, default=1
        Members trained side by side and combined: imputations are averaged, draws are dealt out.
    bootstrap : bool, default=False
        Train each member on rows drawn with replacement. Members then differ by what the table
        leaves uncertain of the model, and so do the draws of `sample` that are dealt out to them:
        best with as many members as draws. Intervals by Rubin's rules then err on the wide side
        rather than the narrow one. Single imputations are better without.
    kinds : mapping of str to str, optional
        The kind of a column where the inferred one is not wanted: "real", "positive" (log-normal),
        "integer", "count" (negative binomial), "binary", "ordinal" (cumulative logits) or
        "categorical". "positive" and "count" are never inferred.
    handle_unknown : {"error", "missing"}, default="error"
        What to do with a category that was not there at fit.
    network : Network or "auto", default="auto"
        The networks' architecture; "auto" sizes it to the table.
    input_mask_rate : float or "auto", default="auto"
        Observed cells are hidden from the networks while training, a share of each row drawn from
        U(0, input_mask_rate). "auto" is .25.
    max_epochs : int or "auto", default="auto"
        Epochs of training at most: of a `regression` that is learned first, and again of the rest.
    batch_size : int or "auto", default="auto"
        Rows of a training step.
    learning_rate : float or "auto", default="auto"
        Of Adam. "auto" is 1e-3.
    validation_fraction : float, default=0.1
        Share of the observed cells held out to measure the error that stops training; 0 trains for
        `max_epochs` and keeps the last weights. (Beside a `regression`, cells of some rows only.)
    patience : int, default=20
        Epochs without a better held-out error before training stops.
    max_time : float, optional
        Seconds that `fit` may take, within about a tenth, loading PyTorch in the first fit of a
        process among them; what is learned by then is kept. With any limit, single imputations do
        without draws where these gain less than 3 % rather than 1.
        Where a CPU has less than 10 ms for each row and member, for 2,000 rows or more, the
        imputers with latent variables start from a shorter factor analysis, and "auto" stands for
        what learns fastest: a `network` of two blocks of 128 without dropout, a `learning_rate` of
        3e-3, a `input_mask_rate` of .5; a `PSMVAEImputer` has a network of one block of 64 beside its
        `regression`.
    device : str, default="auto"
        "auto" (CUDA where there is one), "cpu", "cuda" or "cuda:N".
    random_state : int, RandomState or None, default=None
        One number gives the same result twice on the same device.
    verbose : bool, default=False
        Show a progress bar in a terminal.

    Attributes
    ----------
    schema_ : Schema
        What each column is.
    history_ : list of Progress
        One entry an epoch, and up to ten for a `regression` that is learned first.
    best_validation_error_ : float or None
        Error of the held-out cells, in standard deviations, of the weights that were kept.
    n_epochs_ : int
        Epochs trained, those of a `regression` among them.

    Notes
    -----
    A column with nothing observed is warned about and left missing: the output has the columns of
    the input.
    """

    n_members: int = 1
    bootstrap: bool = False
    kinds: Mapping[str, str] | None = None
    handle_unknown: Literal["error", "missing"] = "error"
    network: Network | Literal["auto"] = "auto"
    input_mask_rate: float | Literal["auto"] = "auto"
    max_epochs: int | Literal["auto"] = "auto"
    batch_size: int | Literal["auto"] = "auto"
    learning_rate: float | Literal["auto"] = "auto"
    validation_fraction: float = 0.1
    patience: int = 20
    max_time: float | None = None
    device: str = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False

    @abstractmethod
    def _settings(self, n_rows: int, n_columns: int) -> Any:
        """What the parameters come to for the model of a table of this size: a dataclass."""

    @abstractmethod
    def _make(self, layout: Layout, settings: Any, missing_rate: Tensor, noise: Noise) -> Any:
        """The untrained model."""

    @abstractmethod
    def _recipe(self, training: Training) -> Recipe:
        """How `model_` is trained."""

    @abstractmethod
    def _expected(self, x: Tensor, m: Tensor) -> Tensor:
        """E[statistics(x_mis) | x_obs, m] of rows in the model's order, ``(row, statistic)``."""

    @abstractmethod
    def _sampled(self, x: Tensor, m: Tensor, n: int, seed: int) -> Tensor:
        """``n`` draws of the missing cells of rows in the model's order."""

    def _check_parameters(self) -> None:
        """Check the parameters that all deep imputers have."""
        self._check_shared()
        for name in ("n_members", "patience"):
            checks.whole_number(name, getattr(self, name), low=1)
        for name in ("batch_size", "max_epochs"):
            if not isinstance(value := getattr(self, name), str) or value != "auto":
                checks.whole_number(name, value, low=1)
        self._check_network()
        checks.number(
            "input_mask_rate", self.input_mask_rate, 0.0, 1.0, open_high=True, words=("auto",)
        )
        checks.number("validation_fraction", self.validation_fraction, 0.0, 0.5)
        checks.number("learning_rate", self.learning_rate, 0.0, open_low=True, words=("auto",))
        if self.max_time is not None:
            checks.number("max_time", self.max_time, 0.0, open_low=True)
        for name in ("bootstrap", "verbose"):
            checks.yes_or_no(name, getattr(self, name))

    def _check_network(self) -> None:
        if not isinstance(self.network, Network) and self.network != "auto":
            raise TypeError(f"network must be a Network or 'auto', got {self.network!r}.")

    @property
    def _pace(self) -> sizing.Preset:
        """What "auto" stands for."""
        return sizing.STANDARD

    def _network(self, n_rows: int, n_columns: int) -> Network:
        if self.network != "auto":
            return self.network
        return self._pace.network or sizing.network_for(n_rows, n_columns)

    def _training(self, n_rows: int) -> Training:
        """What the parameters come to for the training on so many rows."""
        pace = self._pace
        size, epochs = self.batch_size, self.max_epochs
        batch_size = sizing.batch_size_for(n_rows) if size == "auto" else int(size)
        most_epochs = sizing.max_epochs_for(n_rows, batch_size) if epochs == "auto" else int(epochs)
        return Training(
            max_epochs=most_epochs,
            batch_size=batch_size,
            learning_rate=(
                pace.learning_rate if self.learning_rate == "auto" else float(self.learning_rate)
            ),
            validation_fraction=float(self.validation_fraction),
            patience=int(self.patience),
            input_mask_rate=pace.input_mask_rate
            if self.input_mask_rate == "auto"
            else float(self.input_mask_rate),
            beta=1.0,
            average=AVERAGE if self.validation_fraction > 0 else 0.0,
            weight_observed=False,
            max_time=None if self.max_time is None else float(self.max_time),
            linear_rows=pace.linear_rows,
            linear_steps=pace.linear_steps,
            bootstrap=bool(self.bootstrap),
            pretrain_steps=(
                0 if pace.regression is None else sizing.pretrain_steps_for(n_rows, most_epochs)
            ),
            pretrain_time_fraction=pace.pretrain_time_fraction,
            post_pretrain_steps=sizing.post_pretrain_steps_for(
                checks.torch_device(self.device).type
            ),
            validation_rows=pace.validation_rows,
        )

    def _learn(self, encoded: Encoded, callback: Callback | None, began: float) -> bool:
        """Build the model and train it."""
        import torch

        from psmvae.nn.matmul_backend import use_blas
        from psmvae.nn.noise import Noise
        from psmvae.training.loop import train

        device = checks.torch_device(self.device)
        # gradients are needed here, also where the caller has switched them off
        with use_blas(), torch.inference_mode(mode=False):
            self._build()
            self.model_.to(device)
            x, m = self._tensors(encoded.x, encoded.m)
            training = self._training(self.n_rows_)
            with progress_bar(shown=self.verbose) as show:
                result = train(
                    self._recipe(training),
                    x,
                    m,
                    int(self.n_members),
                    training,
                    Noise(self._seed(3), device),
                    both(show, callback),
                    began,
                )
            self._take(result.history, x, m)
        return result.interrupted

    def _take(self, history: list[Progress], x: Tensor, m: Tensor) -> None:
        """Set what training told, and what is learned of the table by the trained model."""
        self.history_ = history
        self.best_validation_error_ = history[-1].best_validation_error if history else None
        self.n_epochs_ = history[-1].epoch if history else 0
        self._conclude(x, m)

    def _conclude(self, x: Tensor, m: Tensor) -> None:
        """Learn what else the training table tells, once the model is trained."""

    def _points(self, x: Floats, m: Bools) -> Floats:
        import torch

        from psmvae.nn.matmul_backend import use_blas

        with use_blas(), torch.no_grad():
            expected = self._expected(*self._tensors(x, m))
            columns: Columns = self.model_.inputs
            return self._in_table_order(columns.point(expected).double().cpu().numpy())

    def _draws(self, x: Floats, m: Bools, n: int, seed: int) -> NDArray[Any]:
        import torch

        from psmvae.nn.matmul_backend import use_blas

        with use_blas(), torch.no_grad():
            drawn = self._sampled(*self._tensors(x, m), n, seed)
            return self._in_table_order(drawn.cpu().numpy())

    def _in_table_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Columns from the model's order to the table's."""
        back = np.argsort(np.array(self._layout().order))
        reordered: NDArray[Any] = values[..., back]
        return reordered

    def _build(self) -> None:
        """Make the untrained model for the columns of `schema_`, on the CPU."""
        import torch

        from psmvae.nn.noise import Noise

        settings = self._settings(self.n_rows_, len(self.missing_rate_))
        layout = self._layout()
        rate = torch.tensor(self.missing_rate_[list(layout.order)], dtype=torch.float32)
        self.model_: Any = self._make(layout, settings, rate, Noise(self._seed(0)))

    def _layout(self) -> Layout:
        from psmvae.nn.columns import Layout

        return Layout.of(self.schema_.modelled)

    def _tensors(self, x: NDArray[Any], m: NDArray[Any]) -> tuple[Tensor, Tensor]:
        """To the model's column order and device, float32."""
        import torch

        order = list(self._layout().order)
        model: nn.Module = self.model_
        device = next(model.parameters()).device
        return (
            torch.as_tensor(x[:, order], dtype=torch.float32, device=device),
            torch.as_tensor(m[:, order], dtype=torch.float32, device=device),
        )

    def _facts(self) -> dict[str, Any]:
        settings: Settings = self.model_.settings
        facts = {
            name: dataclasses.asdict(value) if isinstance(value, Network) else value
            for name, value in vars(settings).items()
            if name != "mask"
        }
        if hasattr(settings, "mask"):
            facts["mask_model"] = repr(settings.mask)
        return {
            **facts,
            "training": dataclasses.asdict(self._training(self.n_rows_)),
            "n_epochs": self.n_epochs_,
            "validation_error": self.best_validation_error_,
            "n_parameters": sum(p.numel() for p in self.model_.parameters()),
        }

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        self._check_unchanged()
        last = dataclasses.asdict(self.history_[-1]) if self.history_ else None
        return dict(self.model_.state_dict()), {"last": last}

    def _set_state(self, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        self._build()
        self.model_.load_state_dict(arrays)
        last = plain["last"]
        self.history_ = [Progress(**last)] if last else []
        self.best_validation_error_ = last["best_validation_error"] if last else None
        self.n_epochs_ = last["epoch"] if last else 0

    def _check_unchanged(self) -> None:
        """Raise where the parameters no longer describe the fitted model: no file could hold it."""
        fitted = self.model_.settings
        now = self._settings(self.n_rows_, len(self.missing_rate_))
        names = [field.name for field in dataclasses.fields(fitted)]
        changed = [name for name in names if getattr(now, name) != getattr(fitted, name)]
        if changed:
            told = ", ".join(
                f"{n} from {getattr(fitted, n)!r} to {getattr(now, n)!r}" for n in changed
            )
            raise ValueError(
                f"The parameters of the model were changed after fit ({told}): fit again or set "
                "them back before saving."
            )


def warn_of_few_draws(size: float, n_draws: int) -> None:
    """Warn where the draws' weights are so uneven that one draw decides most imputations."""
    if n_draws >= MANY_DRAWS and size < MIN_SAMPLE_SIZE:
        warnings.warn(
            f"Half of the rows have an effective sample size under {size:.2f} of {n_draws} "
            "importance draws: their imputations hang on a single draw. More draws (n_draws) or "
            "beta=1 may help; see effective_sample_size.",
            UserWarning,
            stacklevel=4,
        )
