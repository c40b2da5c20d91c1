"""Global settings that the library must leave as they are."""

import os
import random
import signal
import warnings
from pathlib import Path

import numpy as np
import torch


def global_state():
    """Return the state of random generators, warnings, NumPy, PyTorch and the process."""
    legacy = np.random.get_state()  # noqa: NPY002
    return {
        "random": random.getstate(),
        "numpy.random": (legacy[0], legacy[1].tobytes(), *legacy[2:]),
        "torch random": torch.get_rng_state().numpy().tobytes(),
        "warnings.filters": list(warnings.filters),
        "warnings.showwarning": warnings.showwarning,
        "np.geterr": np.geterr(),
        "np.printoptions": str(np.get_printoptions()),
        "torch dtype": torch.get_default_dtype(),
        "torch device": torch.empty(0, dtype=torch.uint8).device,
        "torch threads": torch.get_num_threads(),
        "torch gradients": torch.is_grad_enabled(),
        "torch deterministic": torch.are_deterministic_algorithms_enabled(),
        "torch matmul": torch.get_float32_matmul_precision(),
        "torch autocast": torch.is_autocast_enabled("cpu"),
        "environment": dict(os.environ),
        "folder": Path.cwd(),
        "interrupt": signal.getsignal(signal.SIGINT),
        "locale": os.environ.get("LANG"),
    }


def changed(before):
    """Return the names of the settings that differ from an earlier state."""
    after = global_state()
    return [name for name, value in before.items() if after[name] != value]
