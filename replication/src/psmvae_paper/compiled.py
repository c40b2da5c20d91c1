"""The loss of a step as one compiled program: fewer, larger kernels for long trainings on a GPU."""

from __future__ import annotations

import gc
import logging
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from psmvae.models.batch import Batch
from psmvae.nn.noise import Noise

Loss = Callable[[Batch, Noise], Tensor]


class Heard(Noise):
    """Passes requests on to another source, and remembers them."""

    def __init__(self, noise: Noise) -> None:
        self.noise, self.device = noise, noise.device
        self.asked: list[tuple[str, tuple[int, ...]]] = []

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers."""
        self.asked.append(("normal", shape))
        return self.noise.normal(*shape)

    def uniform(self, *shape: int) -> Tensor:
        """Numbers in [0, 1)."""
        self.asked.append(("uniform", shape))
        return self.noise.uniform(*shape)


class Drawn(Noise):
    """Gives out what was drawn before, in the order in which it is asked for."""

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


class Compiled:
    """A loss that PyTorch's compiler has made one program of, where it can.

    Random numbers are drawn before the program runs, by the same source and in the same order as
    without it: a seed means the same. What cannot be compiled (a user's mask model may do anything;
    a machine may have no compiler) is called as it is; the log says so at its lowest level.

    Parameters
    ----------
    loss : callable
        ``(batch, noise) -> loss``; always for batches of the same shape.
    parameters : list of Parameter
        What it depends on; none of them has a gradient yet when it is first called.
    **options
        Of `torch.compile`.
    """

    def __init__(self, loss: Loss, parameters: list[nn.Parameter], **options: Any) -> None:
        self.loss, self.parameters, self.options = loss, parameters, options
        self.asked: list[tuple[str, tuple[int, ...]]] | None = None
        self.program: Callable[..., Tensor] | None = None

    def __call__(self, batch: Batch, noise: Noise) -> Tensor:
        """The loss of each row."""
        if self.asked is None:
            heard = Heard(noise)
            loss = self.loss(batch, heard)
            self.asked = heard.asked
            self._compile(batch)
            if self.program is None:
                forget_what_failed()
            return loss
        if self.program is None:
            return self.loss(batch, noise)
        drawn = tuple(getattr(noise, kind)(*shape) for kind, shape in self.asked)
        try:
            return self.program(batch, *drawn)
        except Exception as error:  # noqa: BLE001 -- see below
            self._give_up(error)
        forget_what_failed()
        return self.loss(batch, Drawn(drawn))

    def _compile(self, batch: Batch) -> None:
        loss = self.loss

        def program(batch: Batch, *drawn: Tensor) -> Tensor:
            return loss(batch, Drawn(drawn))

        # PyTorch compiles one piece of code a few times only, and every training is another case:
        # each has a copy of its own
        code = program.__code__.replace(co_name=f"program_{id(self)}")
        own = FunctionType(code, program.__globals__, closure=program.__closure__)
        compiled = torch.compile(own, dynamic=False, fullgraph=True, **self.options)
        tried = [torch.full(shape, 0.5, device=batch.x.device) for _, shape in self.asked or ()]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # backward passes are compiled when they are first asked for
                compiled(batch, *tried).sum().backward()
                # a mask model that counts its calls, say, would be compiled again at every step
                with never_again():
                    compiled(batch, *tried)
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


def forget_what_failed() -> None:
    """Free what an error of the compiler still holds, once it has been dealt with.

    Its frames refer to one another and to the graph of the gradients, whose last nodes belong to
    the stream they were made on: in a captured step they would be strangers.
    """
    gc.collect()


def never_again() -> AbstractContextManager[Any]:
    """Let what would have to be compiled again raise, where this PyTorch can tell."""
    if not hasattr(torch.compiler, "set_stance"):
        return nullcontext()
    stance: AbstractContextManager[Any] = torch.compiler.set_stance("fail_on_recompile")
    return stance
