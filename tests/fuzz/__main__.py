"""Fit, complete, save and describe odd tables with every imputer.

Case k of a run with seed s has the seed s + k, so that one case is reproduced by its own seed::

    python -m fuzz --n 10000 --seed 0
    python -m fuzz --n 1 --seed 1234
"""

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from fuzz.run import run_block

BLOCK = 50


def main():
    """Run the cases and print the faults; the exit code is 1 if there are any."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    began = time.perf_counter()
    seeds = range(options.seed, options.seed + options.n)
    blocks = [seeds[k : k + BLOCK] for k in range(0, len(seeds), BLOCK)]
    n_faults = 0
    for n_done, faults in _results(blocks, options.jobs):
        for fault in faults:
            print(fault, flush=True)
        n_faults += len(faults)
        if n_done % 500 == 0 and n_done < options.n:
            print(f"{n_done:,} cases, {n_faults:,} faults", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - began
    print(f"{options.n:,} cases, {n_faults:,} faults, {seconds:.0f} s")
    return int(n_faults > 0)


def _results(blocks, jobs):
    """Yield the number of finished cases and the faults of each block."""
    n_done = 0
    if jobs == 1 or len(blocks) == 1:
        for block in blocks:
            n_done += len(block)
            yield n_done, run_block(block)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        waiting = {pool.submit(run_block, block): block for block in blocks}
        for future in as_completed(waiting):
            block = waiting[future]
            n_done += len(block)
            try:
                yield n_done, future.result()
            except BrokenProcessPool:
                yield n_done, [f"make fuzz SEED={block[0]} N={len(block)}  # the process died"]


if __name__ == "__main__":
    sys.exit(main())
