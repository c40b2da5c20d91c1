"""The paper's experiments, each run, shown and compared by one command.

Examples
--------
>>> from psmvae_paper import EXPERIMENTS, METHODS
>>> list(EXPERIMENTS)[:3]
['rmse20', 'rmse80', 'printed20']
>>> METHODS["psmvae-b"].label
'PSMVAE(b) K=1'
"""

from psmvae_paper.catalogue import EXPERIMENTS, find_experiment
from psmvae_paper.cell import Cell
from psmvae_paper.experiment import Experiment
from psmvae_paper.methods import METHODS, Method, find_method
from psmvae_paper.records import load_records
from psmvae_paper.runner import run

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
