"""The command line: ``psmvae impute``, ``analyse``, ``fit``, ``sets``, ``info`` and others."""

from psmvae.cli.app import main
from psmvae.cli.run import run_app

__all__ = ["main", "run_app"]
