"""Tables by name: those of the paper, two that ship with scikit-learn, a simulated trial."""

from psmvae.datasets.dataset import Dataset
from psmvae.datasets.download import DownloadError
from psmvae.datasets.loading import load, names

__all__ = ["Dataset", "DownloadError", "load", "names"]
