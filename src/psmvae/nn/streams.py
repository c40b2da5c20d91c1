"""CUDA streams: one for training steps, and some for parallel branches of a captured graph."""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch
from torch import Tensor

_streams = threading.local()


def stream_of_thread(device: torch.device, name: str) -> torch.cuda.Stream:
    """Return the stream of this name, the same at every call in a thread.

    PyTorch keeps a cuBLAS workspace for every stream that has run a matrix product, 65 MB on an
    H200. With a new stream for each fit, these workspaces came to 2 GB (benchmarks/soak.py).
    """
    made: dict[str, torch.cuda.Stream] = vars(_streams)
    # "cuda" is the current device
    key = f"{name} {device} {torch.cuda.current_device()}"
    if key not in made:
        made[key] = torch.cuda.Stream(device)
    return made[key]


def fork(name: str, run: Callable[[], Tensor], *inputs: Tensor) -> Callable[[], Tensor]:
    """Run a function, on a separate stream ``name`` while a CUDA graph is captured.

    The small kernels of a training step leave most of a GPU idle, so independent factors overlap.
    """
    sequential = torch.compiler.is_compiling() or not inputs[0].is_cuda
    if sequential or not torch.cuda.is_current_stream_capturing():
        result = run()
        return lambda: result
    main, branch = torch.cuda.current_stream(), stream_of_thread(inputs[0].device, name)
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
