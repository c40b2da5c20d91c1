"""Imputers in threads, processes and copies give the results of one thread in one process."""

import copy
import multiprocessing
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import threadpoolctl
from joblib import Parallel, delayed

from contract.conftest import SHORT
from contract.registry import FAMILIES, IMPUTERS, methods_of

N_THREADS = 4
# MissForest differs from its family in how it is fitted.
NAMES = [*FAMILIES, "MissForest"]


def results(imputer, table):
    """Results of every method, as bytes."""
    return {
        name: np.asarray(getattr(imputer, name)(table)).tobytes() for name in methods_of(imputer)
    }


def fitted_results(name, table):
    return results(IMPUTERS[name]().fit(table), table)


def at_once(calls):
    """Return the results of functions that threads begin to call at the same time."""
    together = threading.Barrier(len(calls))

    def run(call):
        together.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@pytest.fixture(scope="module")
def expected(fitted, numbers):
    """Results in one thread."""
    return {name: results(fitted(name), numbers) for name in NAMES}


class TestThreads:
    @pytest.mark.parametrize("name", NAMES)
    def test_one_imputer_in_many_threads(self, fitted, numbers, expected, name):
        imputer = fitted(name)
        found = at_once([partial(results, imputer, numbers)] * N_THREADS)
        assert found == [expected[name]] * N_THREADS

    def test_different_tables(self, fitted, numbers):
        imputer = fitted("PSMVAE")
        tables = [numbers[k::3] for k in range(3)]
        alone = [results(imputer, table) for table in tables]
        assert at_once([partial(results, imputer, table) for table in tables]) == alone

    @pytest.mark.parametrize("name", NAMES)
    def test_fits_of_one_class(self, numbers, expected, name):
        found = at_once([partial(fitted_results, name, numbers)] * N_THREADS)
        assert found == [expected[name]] * N_THREADS

    def test_fits_of_all_classes(self, numbers, expected):
        found = at_once([partial(fitted_results, name, numbers) for name in NAMES])
        assert dict(zip(NAMES, found, strict=True)) == expected

    def test_settings_of_the_process_are_restored(self, numbers):
        def settings():
            pools = threadpoolctl.threadpool_info()
            n_threads = {pool["filepath"]: pool["num_threads"] for pool in pools}
            return n_threads, list(warnings.filters), warnings.showwarning

        with threadpoolctl.threadpool_limits(2, "blas"):
            before = settings()
            for _ in range(3):
                at_once([partial(fitted_results, "MICE", numbers)] * N_THREADS)
            assert settings() == before


def fit_shortened(name, table):
    """Fit in a process that may be new, where training has its usual length."""
    with pytest.MonkeyPatch.context() as patch:
        for setting, value in SHORT.items():
            patch.setattr(setting, value)
        return fitted_results(name, table)


# a new process imports all libraries
NEW_PROCESS = pytest.mark.slow


class TestJoblib:
    @pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=NEW_PROCESS)])
    def test_fits_and_fitted_imputers(self, fitted, numbers, expected, backend):
        names = ["PSMVAE", "MICE"]
        parallel = Parallel(n_jobs=2, backend=backend)
        found = parallel(delayed(fit_shortened)(name, numbers) for name in names)
        assert dict(zip(names, found, strict=True)) == {name: expected[name] for name in names}
        found = parallel(delayed(results)(fitted("PSMVAE"), numbers) for _ in range(3))
        assert found == [expected["PSMVAE"]] * 3


USED_DURING_IMPORT = """
import sys, threading
import psmvae

reached, done = threading.Event(), threading.Event()

class Pause:
    def find_spec(self, name, path, target=None):
        # a module in the middle of `import torch`
        if name == "torch.random":
            reached.set()
            done.wait(1)

def load():
    reached.wait()
    psmvae.load({path!r})
    done.set()

psmvae.load  # imports what comes before torch
sys.meta_path.insert(0, Pause())
thread = threading.Thread(target=load)
thread.start()
import torch
thread.join()
assert reached.is_set() and done.is_set() and torch.nn.Linear(1, 1) is not None
print("both are done")
"""


@pytest.mark.slow
def test_load_while_another_thread_imports_torch(fitted, python, tmp_path):
    path = tmp_path / "m.safetensors"
    fitted("Mean").save(path)
    assert python(USED_DURING_IMPORT.replace("{path!r}", repr(str(path)))) == "both are done\n"


class TestProcesses:
    @pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=NEW_PROCESS)])
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_fits_and_fitted_imputers(self, fitted, numbers, expected, method):
        imputers = {name: fitted(name) for name in ("PSMVAE", "MICE")}
        # a pool ends its processes even if they hang, as after a fork without care for threads
        with multiprocessing.get_context(method).Pool(1) as pool:
            for name, imputer in imputers.items():
                fit = pool.apply_async(fit_shortened, (name, numbers))
                use = pool.apply_async(results, (imputer, numbers))
                assert [fit.get(timeout=90), use.get(timeout=90)] == [expected[name]] * 2


class TestCopies:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("how", ["pickle", "copy", "deepcopy"])
    def test_copies_are_equal(self, fitted, numbers, expected, name, how):
        imputer = fitted(name)
        copied = {
            "pickle": lambda: pickle.loads(pickle.dumps(imputer)),
            "copy": lambda: copy.copy(imputer),
            "deepcopy": lambda: copy.deepcopy(imputer),
        }[how]()
        assert results(copied, numbers) == expected[name]

    def test_a_deep_copy_is_independent(self, numbers):
        imputer = IMPUTERS["PSMVAE"]().fit(numbers)
        before = results(imputer, numbers)
        copied = copy.deepcopy(imputer)
        for parameter in copied.model_.parameters():
            parameter.data.zero_()
        copied.fit(numbers[:20])
        assert results(imputer, numbers) == before
