"""Writing of safetensors files, one tensor at a time.

The functions of the safetensors library hold a copy of all tensors, or write a temporary file of
their own in the folder, which a killed process leaves behind. Their errors do not say which file.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Names of data types in the format.
DTYPES = {
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
    "bool": "BOOL",
}
# The data start at a multiple of so many bytes.
ALIGNMENT = 8


def write_tensors(path: Path, tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write tensors and arrays to a safetensors file.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    # the largest numbers first, so that each tensor is aligned
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name in names:
        shape, dtype = tensors[name].shape, tensors[name].dtype
        # the name of a PyTorch data type is "torch.float32"
        kind = DTYPES[str(dtype).removeprefix("torch.")]
        start, end = end, end + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in names:
            file.write(_bytes(tensors[name]).data)


def _bytes(tensor: Any) -> NDArray[np.uint8]:
    """Return the bytes of a tensor, little-endian; contiguous tensors on a CPU are not copied."""
    array = tensor if isinstance(tensor, np.ndarray) else tensor.detach().cpu().numpy()
    flat = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(-1)
    return flat.view(np.uint8)
