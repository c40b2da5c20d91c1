"""Tables by name: those of the paper, two that ship with scikit-learn, a simulated trial."""

from psmvae_paper.datasets.dataset import Dataset
from psmvae_paper.datasets.download import DownloadError
from psmvae_paper.datasets.loading import load, names

__all__ = ["Dataset", "DownloadError", "load", "names"]
