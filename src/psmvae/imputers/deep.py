"""Parameters, fitting and files of the imputers that train neural networks."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from psmvae._quiet import WITH_PROGRESS, unchanged_settings
from psmvae.imputers import checks, file_schema
from psmvae.imputers.base import Bools, Callback, Floats, Imputer, Kinds
from psmvae.imputers.blocks import BLOCK_ROWS, BlockSeed
from psmvae.imputers.fit_warnings import warn_of_fit
from psmvae.imputers.memory import MANY_COLUMNS, check_memory
from psmvae.imputers.progress import both, progress_bar
from psmvae.models.config import Config
from psmvae.nn.architecture import Network
from psmvae.table.codec import Encoded
from psmvae.training.progress import Progress

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.nn.columns import Columns, Layout
    from psmvae.nn.noise import Noise
    from psmvae.training.recipe import Recipe
    from psmvae.training.shard import Shard
# Training of all deep models of the paper.
PAPER_TRAINING: dict[str, Any] = {
    "input_mask_rate": 0.0,
    "learning_rate": 1e-3,
    "max_epochs": 1000,
    "batch_size": 200,
    "validation_fraction": 0.0,
}


@dataclass(kw_only=True, repr=False, eq=False)
class DeepImputer(Imputer):
    """Base of the imputers that train neural networks.

    Parameters
    ----------
    n_members : int, default=1
        Members of a deep ensemble, trained side by side. Their predictions are averaged.
    kinds : mapping of str to str or tuple, optional
        Kinds of columns that should not be inferred: "real", "positive" (log-normal), "integer",
        "count" (negative binomial), "binary", "ordinal" (cumulative logits) or "categorical".
        "positive" and "count" are never inferred.
        Levels may follow in their order: ``"ordinal:low,middle,high"`` or
        ``("ordinal", ["low", "middle", "high"])``.
    network : Network or "auto", default="auto"
        Architecture of the networks. "auto" sizes it to the table.
    input_mask_rate : float or "auto", default="auto"
        Observed cells are masked in the networks' input while training, for each row a fraction
        drawn from U(0, input_mask_rate). The likelihood still includes them. "auto" is 0.25.
    max_epochs : int or "auto", default="auto"
        Epochs at most. Pre-training of a regression has this limit too.
    batch_size : int or "auto", default="auto"
        Rows of a training step.
    learning_rate : float or "auto", default="auto"
        Learning rate of Adam. "auto" is 1e-3.
    validation_fraction : float, default=0.1
        Fraction of the observed cells held out to measure the error that stops training. 0 trains
        for `max_epochs` and keeps the last weights.
    patience : int, default=10
        Training stops after this many epochs in which the validation error has not fallen by 0.2 %.
    max_time : float, optional
        Seconds that `fit` may take, within about a tenth, the import of PyTorch included. The best
        weights so far are kept. Imputers with latent variables use a faster preset for "auto" where
        this leaves a CPU less than 10 ms for each row and member of a table of 2,000 rows or more.
    device : str, default="auto"
        "auto" (CUDA where available), "cpu", "cuda" or "cuda:N".
    random_state : int, RandomState or None, default=None
        Seed. The same integer gives the same result on the same device.
    verbose : bool, default=False
        Show a progress bar in a terminal.

    Attributes
    ----------
    config_ : Config
        The resolved configuration: every setting that was used, without "auto".
    schema_ : Schema
        Name, kind and scale of each column.
    history_ : list of Progress
        One entry for each epoch, and up to ten for pre-training.
    best_validation_error_ : float or None
        Validation error of the weights that were kept, in standard deviations.
    n_epochs_ : int
        Epochs trained, those of pre-training included.
    missing_rate_ : ndarray
        Fraction of missing cells of each modelled column.
    n_rows_ : int
        Number of rows of the training table.
    seed_ : int
        Seed drawn from `random_state`.

    Notes
    -----
    A column without any observed cell gives a warning and stays missing.
    """

    n_members: int = 1
    kinds: Kinds | None = None
    bounds: Mapping[str, tuple[float | None, float | None]] | None = None
    derived: Mapping[str, str] | None = None
    handle_unknown: Literal["error", "missing"] = "error"
    network: Network | Literal["auto"] = "auto"
    input_mask_rate: float | Literal["auto"] = "auto"
    max_epochs: int | Literal["auto"] = "auto"
    batch_size: int | Literal["auto"] = "auto"
    learning_rate: float | Literal["auto"] = "auto"
    validation_fraction: float = 0.1
    patience: int = 10
    max_time: float | None = None
    device: str = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False

    _libraries = WITH_PROGRESS
    # the `Shard` of this process in data-parallel training
    _shard: ClassVar[Any] = None

    @abstractmethod
    def _resolve(self, encoded: Encoded) -> Config:
        """Resolve the parameters for a training table."""

    @abstractmethod
    def _make_model(self, layout: Layout, missing_rate: Tensor, noise: Noise) -> Any:
        """Return the untrained model of `config_`."""

    @abstractmethod
    def _recipe(self) -> Recipe:
        """Return the training recipe of `model_`."""

    @abstractmethod
    def _expected(self, x: Tensor, m: Tensor) -> Tensor:
        """E[statistics(x_mis) | x_obs, m] of rows in the model's order, ``(row, statistic)``."""

    @abstractmethod
    def _sampled(self, x: Tensor, m: Tensor, n: int, seed: int) -> Tensor:
        """``n`` draws of the missing cells of rows in the model's order."""

    def _check_parameters(self) -> None:
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
        checks.yes_or_no("verbose", self.verbose)

    def _check_network(self) -> None:
        if not isinstance(self.network, Network) and self.network != "auto":
            raise TypeError(f"network must be a Network or 'auto', got {self.network!r}.")

    def _read(self, X: Any) -> Encoded:
        encoded: Encoded = super()._read(X)
        self.config_: Any = self._resolve(encoded)
        return encoded

    def _learn(self, encoded: Encoded, callback: Callback | None, began: float) -> bool:
        import torch

        from psmvae.nn.matmul_backend import use_blas
        from psmvae.nn.noise import Noise
        from psmvae.training.loop import train

        device = checks.torch_device(self.device)
        if len(self.schema_.modelled) >= MANY_COLUMNS:
            check_memory(self._n_parameters(), len(self.schema_.modelled), device)
        # training needs gradients, also where the caller has disabled them
        with use_blas(), torch.inference_mode(mode=False):
            self._build()
            self.model_.to(device)
            x, m = self._tensors(encoded.x, encoded.m)
            with progress_bar(shown=self.verbose) as show:
                noise, report = Noise(self._seed(3), device), both(show, callback)
                result = train(
                    self._recipe(), x, m, self.config_, noise, report, began,
                    shard=self._shard, reserve=self._reserved_seconds(encoded),
                )  # fmt: skip
            self._finish_fit(result.history, x, m)
            self._fit_draws(encoded, result.validation_mask, began)
            warn_of_fit(self, x, m, timed_out=result.timed_out)
        return result.interrupted

    def _fit_shard(self, X: Any, shard: Shard, callback: Callback | None = None) -> Self:
        """Fit together with the other processes of ``shard``; each is given the whole table."""
        self.__dict__["_shard"] = shard
        try:
            return self.fit(X, callback=callback)
        finally:
            del self.__dict__["_shard"]

    def _finish_fit(self, history: list[Progress], x: Tensor, m: Tensor) -> None:
        """Set the attributes that follow from a trained model; subclasses add theirs."""
        del x, m
        self._set_history(history)

    def _reserved_seconds(self, encoded: Encoded) -> float:
        """Return the seconds of `max_time` that training leaves for `_fit_draws`."""
        del encoded
        return 0.0

    def _fit_draws(self, encoded: Encoded, held_out: Tensor | None, began: float) -> None:
        """Fit what draws need beside the model; ``held_out`` are the validation cells."""

    def _set_history(self, history: list[Progress]) -> None:
        self.history_ = history
        self.best_validation_error_ = history[-1].best_validation_error if history else None
        self.n_epochs_ = history[-1].epoch if history else 0

    def _points(self, x: Floats, m: Bools) -> Floats:
        import torch

        from psmvae.nn.matmul_backend import use_blas

        with use_blas(), torch.no_grad():
            expected = self._expected(*self._tensors(x, m))
            columns: Columns = self.model_.inputs
            return self._in_table_order(columns.point(expected).double().cpu().numpy())

    def _block_rows(self) -> int:
        return BLOCK_ROWS[next(self.model_.parameters()).device.type]

    def _draws(self, x: Floats, m: Bools, n: int, seed: BlockSeed) -> NDArray[Any]:
        import torch

        from psmvae.nn.matmul_backend import use_blas

        with use_blas(), torch.no_grad():
            drawn = self._sampled(*self._tensors(x, m), n, seed.cells)
            return self._in_table_order(drawn.cpu().numpy())

    def _in_table_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Reorder columns from the model's order to the table's."""
        inverse = np.argsort(np.array(self._layout().order))
        reordered: NDArray[Any] = values[..., inverse]
        return reordered

    def _build(self) -> None:
        """Make the untrained model for `config_` and the columns of `schema_`, on the CPU."""
        import torch

        from psmvae.nn.noise import Noise

        layout = self._layout()
        rate = torch.tensor(self.missing_rate_[list(layout.order)], dtype=torch.float32)
        self.model_: Any = self._make_model(layout, rate, Noise(self._seed(0)))

    def _shapes(self) -> dict[str, Any]:
        """Return the tensors of the model of `config_` without values, which takes no memory."""
        import torch

        from psmvae.nn.noise import NoNoise

        # arithmetic with tensors without values imports PyTorch's compiler
        with unchanged_settings(), torch.device("meta"):
            rate = torch.zeros(len(self.missing_rate_), dtype=torch.float32)
            return dict(self._make_model(self._layout(), rate, NoNoise()).state_dict())

    def _n_parameters(self) -> int:
        """Return the number of parameters of the model of `config_`."""
        return sum(tensor.numel() for tensor in self._shapes().values())

    def _layout(self) -> Layout:
        from psmvae.nn.columns import Layout

        return Layout.of(self.schema_.modelled)

    def _tensors(self, x: NDArray[Any], m: NDArray[Any]) -> tuple[Tensor, Tensor]:
        """Convert to float32 tensors on the model's device, in the model's column order."""
        import torch

        order = list(self._layout().order)
        device = next(self.model_.parameters()).device
        to = {"dtype": torch.float32, "device": device}
        return torch.as_tensor(x[:, order], **to), torch.as_tensor(m[:, order], **to)

    def _facts(self) -> dict[str, Any]:
        return {
            "config": describe_config(self.config_),
            "n_epochs": self.n_epochs_,
            "validation_error": self.best_validation_error_,
            "n_parameters": sum(p.numel() for p in self.model_.parameters()),
        }

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        last = dataclasses.asdict(self.history_[-1]) if self.history_ else None
        return dict(self.model_.state_dict()), {"config": self.config_, "progress": last}

    def _set_state(self, arrays: dict[str, Any], plain: dict[str, Any]) -> None:
        from psmvae.nn.size_limit import SizeLimit

        self.config_ = plain["config"]
        last = plain["progress"]
        self._set_history([file_schema.progress(last)] if last else [])
        with SizeLimit(file_schema.check_sizes(self.config_, arrays)):
            self._build()
        file_schema.check_tensors(self.model_.state_dict(), arrays)
        self.model_.load_state_dict(arrays)


def describe_config(config: Config) -> dict[str, Any]:
    """Return a configuration as plain values that JSON can hold."""
    plain = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    networks = {k: dataclasses.asdict(v) for k, v in plain.items() if isinstance(v, Network)}
    mask = {"mask_model": repr(plain["mask_model"])} if "mask_model" in plain else {}
    return plain | networks | mask
