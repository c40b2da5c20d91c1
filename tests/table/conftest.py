"""Tables for the tests of this folder."""

import pytest


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def make(request):
    """A function from a dict of lists (None where missing) to a frame of each library."""
    library = pytest.importorskip(request.param)
    if request.param == "pyarrow":
        return library.table
    return library.DataFrame


@pytest.fixture
def csv(tmp_path):
    """Write text (or bytes) to a file and give its path."""

    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
