"""Written tensors are read by the safetensors library as they were."""

import numpy as np
import torch
from safetensors import safe_open

from psmvae.imputers.tensor_file import DTYPES, write_tensors


def read(path):
    with safe_open(str(path), framework="pt") as file:
        return file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118


def test_arrays_of_each_type(tmp_path):
    arrays = {name: np.arange(5).astype(name) for name in DTYPES}
    write_tensors(tmp_path / "t.safetensors", arrays, {"a": 'ä, "b"\n'})
    metadata, found = read(tmp_path / "t.safetensors")
    assert metadata == {"a": 'ä, "b"\n'}
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == torch.as_tensor(array).dtype
        np.testing.assert_array_equal(found[name].numpy(), array)


def test_tensors_of_odd_shapes(tmp_path):
    base = torch.arange(24, dtype=torch.float32)
    tensors = {
        "number": torch.tensor(3.5),
        "empty": torch.zeros(0, 3),
        "transposed": base.view(4, 6).T,
        "view": base[::2],
        "expanded": torch.ones(1).expand(3),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "shared": base,
        "array": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "scalar": np.array(7),
    }
    write_tensors(tmp_path / "t.safetensors", tensors, {})
    _, found = read(tmp_path / "t.safetensors")
    for name, tensor in tensors.items():
        expected = tensor if isinstance(tensor, np.ndarray) else tensor.detach().numpy()
        assert found[name].shape == tensor.shape
        np.testing.assert_array_equal(found[name].numpy(), expected)
