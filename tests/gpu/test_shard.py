"""On a GPU: two processes that average gradients between captured graphs fit what one fits."""

import numpy as np
import pytest

from numeric.shard_process import fit_together, imputers, incomplete_table, weights

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def together(tmp_path_factory, environment):
    return fit_together(tmp_path_factory.mktemp("shards"), environment, "cuda")


@pytest.mark.parametrize("name", imputers())
def test_two_processes_fit_what_one_fits(together, name):
    """Gradients differ by the rounding of TF32."""
    imputer = imputers("cuda")[name].fit(incomplete_table())
    found = np.load(together / f"{name}-0.npz")["weights"]
    np.testing.assert_allclose(found, weights(imputer), rtol=0, atol=1e-2)


@pytest.mark.parametrize("name", [*imputers(), "timed"])
def test_all_processes_have_the_same_weights(together, name):
    first, second = (np.load(together / f"{name}-{rank}.npz")["weights"] for rank in range(2))
    np.testing.assert_array_equal(first, second)
