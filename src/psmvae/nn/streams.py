"""Parallel branches in a captured CUDA graph."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def fork(run: Callable[[], Tensor], *inputs: Tensor) -> Callable[[], Tensor]:
    """Run a function, on a separate stream while a CUDA graph is captured.

    The small kernels of a training step leave most of a GPU idle, so independent factors overlap.
    """
    sequential = torch.compiler.is_compiling() or not inputs[0].is_cuda
    if sequential or not torch.cuda.is_current_stream_capturing():
        result = run()
        return lambda: result
    main, branch = torch.cuda.current_stream(), torch.cuda.Stream()
    branch.wait_stream(main)
    with torch.cuda.stream(branch):
        made = run()
    for tensor in inputs:
        tensor.record_stream(branch)

    def join() -> Tensor:
        main.wait_stream(branch)
        made.record_stream(main)
        return made

    return join
