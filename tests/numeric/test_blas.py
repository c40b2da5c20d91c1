"""One thread of BLAS in a block, and the threads that it may use outside."""

import numpy as np  # noqa: F401 (loads BLAS)
from threadpoolctl import threadpool_info, threadpool_limits

from psmvae._blas import one_blas_thread


def threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_blas_has_one_thread_in_the_block_and_as_many_as_before_after_it():
    with threadpool_limits(3, "blas"):
        with one_blas_thread() as n_threads:
            assert threads() == {1}
            assert n_threads == 3
        assert threads() == {3}


def test_a_block_in_a_block_gives_the_threads_outside_of_both():
    with threadpool_limits(2, "blas"), one_blas_thread(), one_blas_thread() as n_threads:
        assert n_threads == 2
        assert threads() == {1}
