"""Whether the memory suffices to train a model, checked before training."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# Models of fewer columns are small, and their memory is not checked.
MANY_COLUMNS = 1000
# float32 weights, gradients, two moments of Adam, running average, best weights, and one copy more.
BYTES_PER_PARAMETER = 4 * 7


def check_memory(n_parameters: int, n_columns: int, device: torch.device) -> None:
    """Raise ValueError if the parameters of a model do not fit into memory while it is trained."""
    needed, available = n_parameters * BYTES_PER_PARAMETER, available_memory(device)
    if available is not None and needed > available:
        raise ValueError(
            f"training with {n_columns:,} columns needs {needed / 2**30:.1f} GiB of memory for "
            f"{n_parameters:,} parameters, and {available / 2**30:.1f} GiB are available; select "
            "columns, use a smaller network (network=Network(width=32, depth=1)), or use "
            "MeanImputer"
        )


def available_memory(device: torch.device) -> int | None:
    """Return the bytes that are available on a device; None if this is unknown."""
    if device.type == "cuda":
        import torch

        # PyTorch keeps freed memory for its own later use, which the driver counts as used
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + kept
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None
