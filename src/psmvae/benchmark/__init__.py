"""The paper's experiments, each run, shown and compared by one command.

Examples
--------
>>> from psmvae.benchmark import EXPERIMENTS, METHODS
>>> list(EXPERIMENTS)[:3]
['rmse20', 'rmse80', 'printed20']
>>> METHODS["psmvae-b"].label
'PSMVAE(b) K=1'
"""

from psmvae.benchmark.catalogue import EXPERIMENTS, find_experiment
from psmvae.benchmark.cell import Cell
from psmvae.benchmark.experiment import Experiment
from psmvae.benchmark.methods import METHODS, Method, find_method
from psmvae.benchmark.records import load_records
from psmvae.benchmark.runner import run

__all__ = [
    "EXPERIMENTS",
    "METHODS",
    "Cell",
    "Experiment",
    "Method",
    "find_experiment",
    "find_method",
    "load_records",
    "run",
]
