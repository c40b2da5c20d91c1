"""Tables for the tests of this folder."""

import pytest


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def make(request):
    """A function from a dict of lists (None where missing) to a frame of each library."""
    library = pytest.importorskip(request.param)
    if request.param == "pyarrow":
        return library.table
    return library.DataFrame
