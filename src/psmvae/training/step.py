"""One step of training, on a GPU captured once and replayed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from psmvae.nn.noise import Noise

# Steps done one operation at a time before a step is captured: they set up what a capture may not.
EAGER_STEPS = 3


class Stepper:
    """Calls ``step(rows)``; on a GPU as one graph, so that launching operations takes no time.

    A step that cannot be captured (a user's mask model may look at its numbers) is simply called.

    Parameters
    ----------
    step : callable
        Does one step for rows ``(member, row)``, always of the same shape.
    noise : Noise
        The one source of random numbers of the step.
    stream : torch.cuda.Stream, optional
        Where the steps of a training are done on a GPU, all on the same: what PyTorch keeps of one
        step for the next belongs to its stream.
    """

    def __init__(
        self,
        step: Callable[[Tensor], None],
        noise: Noise,
        stream: torch.cuda.Stream | None = None,
    ) -> None:
        self.step, self.noise, self.stream = step, noise, stream
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.rows: Tensor | None = None
        self.captures = noise.device.type == "cuda"

    def __call__(self, rows: Tensor) -> None:
        """Do a step."""
        if self.graph is None and self.captures and self.calls >= EAGER_STEPS:
            self._capture(rows)
        if self.graph is not None and self.rows is not None:
            self.rows.copy_(rows)
            self.graph.replay()
            return
        self.calls += 1
        if not self.captures:
            self.step(rows)
            return
        # what is done before a capture must be on another stream than the default one
        stream = self.stream = self.stream or torch.cuda.Stream(self.noise.device)
        stream.wait_stream(torch.cuda.current_stream(self.noise.device))
        with torch.cuda.stream(stream):
            self.step(rows)
        torch.cuda.current_stream(self.noise.device).wait_stream(stream)

    def _capture(self, rows: Tensor) -> None:
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
            # the old generator still counts for the capture that failed
            self.noise.restart(state)
            return
        self.graph = graph
