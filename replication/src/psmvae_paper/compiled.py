"""`torch.compile` for the loss of long trainings on a GPU.

A compiled loss runs as fewer, larger kernels. Compiling takes about 15 s, so only long trainings
gain by it: the thousand epochs of the paper on its larger tables.
"""

from __future__ import annotations

import gc
import logging
import warnings
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch

from psmvae.nn.noise import Noise

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

    from psmvae.models.batch import Batch

    Loss = Callable[[Batch, Noise], Tensor]
    LossWrapper = Callable[[Loss, list[nn.Parameter], int], Loss]

# Compiling saves 0.2 ms a step, more for stacked members: it pays from this number of steps, where
# the time limit, if any, is at least this many seconds.
MIN_STEPS, MIN_TIME = 75_000, 120.0


def pays_to_compile(max_time: float | None, n_steps: int) -> bool:
    """Whether a training is long enough to be compiled.

    The decision depends on the settings alone, not on measured times: a seed always gives the same
    result.

    Parameters
    ----------
    max_time : float or None
        The time limit of the training in seconds.
    n_steps : int
        The most steps it can take.

    Returns
    -------
    bool
        True from 75,000 steps, unless the time limit is below 120 s.

    Examples
    --------
    >>> pays_to_compile(None, 80_000), pays_to_compile(60.0, 80_000), pays_to_compile(None, 1000)
    (True, False, False)
    """
    return n_steps >= MIN_STEPS and (max_time is None or max_time >= MIN_TIME)


def compile_long_trainings(device: torch.device, max_time: float | None) -> LossWrapper:
    """Make the ``wrap_loss`` of `psmvae.training.loop.train`.

    Parameters
    ----------
    device : torch.device
        Where the training runs; only on CUDA is anything compiled.
    max_time : float or None
        The time limit of the training in seconds.

    Returns
    -------
    callable
        ``(loss, parameters, n_steps) -> loss``, compiled if `pays_to_compile`.
    """

    def wrap(loss: Loss, parameters: list[nn.Parameter], n_steps: int) -> Loss:
        if device.type == "cuda" and pays_to_compile(max_time, n_steps):
            return Compiled(loss, parameters)
        return loss

    return wrap


class Compiled:
    """A loss compiled by `torch.compile`, where it can be compiled.

    Random numbers are drawn before the compiled program runs, by the same generator and in the same
    order as without it: a seed gives the same result. A loss that cannot be compiled (a user's mask
    model may run any code; a machine may have no compiler) is called as it is, with a message at
    level DEBUG.

    Parameters
    ----------
    loss : callable
        ``(batch, noise) -> loss``, always called with batches of the same shape.
    parameters : list of Parameter
        The parameters of the loss; none has a gradient at the first call.
    **options
        Options of `torch.compile`.
    """

    def __init__(self, loss: Loss, parameters: list[nn.Parameter], **options: Any) -> None:
        self.loss, self.parameters, self.options = loss, parameters, options
        self.requests: list[tuple[str, tuple[int, ...]]] | None = None
        self.program: Callable[..., Tensor] | None = None

    def __call__(self, batch: Batch, noise: Noise) -> Tensor:
        """The loss of each row.

        Parameters
        ----------
        batch : Batch
            The rows.
        noise : Noise
            The source of random numbers.

        Returns
        -------
        Tensor
            As `loss` returns it.
        """
        if self.requests is None:
            recording = RecordingNoise(noise)
            loss = self.loss(batch, recording)
            self.requests = recording.requests
            self._compile(batch)
            if self.program is None:
                _free_failed_graph()
            return loss
        if self.program is None:
            return self.loss(batch, noise)
        drawn = tuple(getattr(noise, kind)(*shape) for kind, shape in self.requests)
        try:
            return self.program(batch, *drawn)
        except Exception as error:  # noqa: BLE001 -- a compiler fails in many ways
            self._give_up(error)
        _free_failed_graph()
        return self.loss(batch, ReplayedNoise(drawn))

    def _compile(self, batch: Batch) -> None:
        loss = self.loss

        def program(batch: Batch, *drawn: Tensor) -> Tensor:
            return loss(batch, ReplayedNoise(drawn))

        # PyTorch compiles one code object a limited number of times: each training gets a copy
        code = program.__code__.replace(co_name=f"program_{id(self)}")
        own = FunctionType(code, program.__globals__, closure=program.__closure__)
        compiled = torch.compile(own, dynamic=False, fullgraph=True, **self.options)
        trial = [torch.full(shape, 0.5, device=batch.x.device) for _, shape in self.requests or ()]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # the backward pass is compiled at its first call
                compiled(batch, *trial).sum().backward()
                # a loss with changing Python state would be compiled again at every step
                with _fail_on_recompile():
                    compiled(batch, *trial)
        except Exception as error:  # noqa: BLE001 -- a compiler fails in many ways
            self._give_up(error)
            return
        finally:
            for parameter in self.parameters:
                parameter.grad = None
        self.program = compiled

    def _give_up(self, error: Exception) -> None:
        logging.getLogger(__name__).debug("not compiled: %s", error)
        self.program = None


class RecordingNoise(Noise):
    """Draws from another source and records the requests.

    Parameters
    ----------
    noise : Noise
        The source.
    """

    def __init__(self, noise: Noise) -> None:
        self.noise, self.device = noise, noise.device
        self.requests: list[tuple[str, tuple[int, ...]]] = []

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers of this shape."""
        self.requests.append(("normal", shape))
        return self.noise.normal(*shape)

    def uniform(self, *shape: int) -> Tensor:
        """Numbers of this shape in [0, 1)."""
        self.requests.append(("uniform", shape))
        return self.noise.uniform(*shape)


class ReplayedNoise(Noise):
    """Returns tensors that were drawn before, in order.

    Parameters
    ----------
    tensors : tuple of Tensor
        One for each request.
    """

    def __init__(self, tensors: tuple[Tensor, ...]) -> None:
        self.tensors = iter(tensors)

    def normal(self, *shape: int) -> Tensor:
        """The next tensor."""
        del shape
        return next(self.tensors)

    def uniform(self, *shape: int) -> Tensor:
        """The next tensor."""
        del shape
        return next(self.tensors)


def _free_failed_graph() -> None:
    """Free the gradient graph that a compiler error still references.

    The error's frames and the graph form reference cycles. Gradient accumulators of the graph
    belong to the stream they were made on and must not be reused in a captured CUDA graph.
    """
    gc.collect()


def _fail_on_recompile() -> AbstractContextManager[Any]:
    """Let a function that would be compiled again raise, in versions of PyTorch that support it."""
    if not hasattr(torch.compiler, "set_stance"):
        return nullcontext()
    stance: AbstractContextManager[Any] = torch.compiler.set_stance("fail_on_recompile")
    return stance
