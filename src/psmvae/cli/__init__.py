"""The command line: ``psmvae impute``, ``fit``, ``sets``, ``info``, ``simulate`` and ``demo``."""

from psmvae.cli.app import main
from psmvae.cli.run import run_app

__all__ = ["main", "run_app"]
