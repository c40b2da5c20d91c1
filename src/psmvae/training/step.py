"""Repeated training steps, captured as a CUDA graph on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from psmvae.nn.noise import Noise
from psmvae.nn.streams import stream_of_thread
from psmvae.training.shard import Shard
from psmvae.training.weights import Weights

# Steps without a graph before one is captured. They allocate workspaces and handles, which is not
# allowed during capture.
EAGER_STEPS = 3

# the gradient of the rows ``(member, row)`` of a batch, with their noise
Gradient = Callable[[Tensor, Noise], None]


def training_step(
    gradient: Gradient,
    update: Callable[[], None],
    weights: Weights,
    noise: Noise,
    stream: torch.cuda.Stream | None,
    shard: Shard,
) -> Callable[[Tensor], None]:
    """Make a training step: the gradient of ``weights`` for a batch, and their update.

    In data-parallel training the gradients are averaged in between, outside of captured graphs.
    """

    def whole(rows: Tensor) -> None:
        gradient(rows, noise)
        update()

    if shard.size == 1:
        return Stepper(whole, noise, stream)

    def part(rows: Tensor) -> None:
        gradient(shard.rows(rows), shard.noise(noise, rows.shape[1]))

    def update_after(rows: Tensor) -> None:
        del rows
        update()

    first, last = Stepper(part, noise, stream), Stepper(update_after, noise, stream)

    def step(rows: Tensor) -> None:
        first(rows)
        if weights.flat.grad is not None:
            shard.average(weights.flat.grad, rows.shape[1])
        last(rows)

    return step


class Stepper:
    """Call a training step repeatedly; on a GPU, capture it once as a CUDA graph and replay it.

    A step of the paper's model is some 260 short kernels and takes 9.6 ms on an H200; replayed as a
    graph it takes 0.5 ms (benchmarks/gpu.py). A step that cannot be captured, for example because a
    user's mask model reads a value on the host, is called without a graph.

    All steps of a training on a GPU run on one ``stream``: gradient accumulators belong to the
    stream they were created on, so steps on different streams would have to wait for each other.
    The rows ``(member, row)`` always have the same shape, and ``noise`` is the only source of
    random numbers.
    """

    def __init__(
        self, step: Callable[[Tensor], None], noise: Noise, stream: torch.cuda.Stream | None = None
    ) -> None:
        self.step, self.noise, self.stream = step, noise, stream
        self.n_eager_steps = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.rows: Tensor | None = None
        self.captures = noise.device.type == "cuda"

    def __call__(self, rows: Tensor) -> None:
        """Perform a step."""
        if self.graph is None and self.captures and self.n_eager_steps >= EAGER_STEPS:
            self._capture(rows)
        if self.graph is not None and self.rows is not None:
            self.rows.copy_(rows)
            self.graph.replay()
            return
        self.n_eager_steps += 1
        if not self.captures:
            self.step(rows)
            return
        # steps before a capture must not run on the default stream
        stream = self.stream = self.stream or stream_of_thread(self.noise.device, "training")
        stream.wait_stream(torch.cuda.current_stream(self.noise.device))
        with torch.cuda.stream(stream):
            self.step(rows)
        torch.cuda.current_stream(self.noise.device).wait_stream(stream)

    def _capture(self, rows: Tensor) -> None:
        """Capture a step as a graph, or note that it cannot be captured."""
        self.rows = rows.clone()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.noise.generator)
        state = self.noise.generator.get_state()
        try:
            with torch.cuda.graph(graph, stream=self.stream):
                self.step(self.rows)
        except RuntimeError:
            torch.cuda.synchronize()
            self.captures = False
            # the generator stays registered with the failed capture and cannot be used any more
            self.noise.restart(state)
            return
        self.graph = graph
