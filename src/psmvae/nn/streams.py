"""Independent parts of a model side by side on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def fork(run: Callable[[], Tensor], *inputs: Tensor) -> Callable[[], Tensor]:
    """Start ``run`` beside what follows; calling the result waits for it.

    Only while a GPU's work is being captured: kernels of a few microseconds leave most of a GPU
    idle, and as branches of a graph they overlap. Elsewhere, and in a compiled program, it is
    simply run.

    Parameters
    ----------
    run : callable
        Makes a tensor.
    inputs : Tensor
        What it reads, which must not be given up before it has.
    """
    alone = torch.compiler.is_compiling() or not inputs[0].is_cuda
    if alone or not torch.cuda.is_current_stream_capturing():
        result = run()
        return lambda: result
    here, aside = torch.cuda.current_stream(), torch.cuda.Stream()
    aside.wait_stream(here)
    with torch.cuda.stream(aside):
        made = run()
    for tensor in inputs:
        tensor.record_stream(aside)

    def join() -> Tensor:
        here.wait_stream(aside)
        made.record_stream(here)
        return made

    return join
