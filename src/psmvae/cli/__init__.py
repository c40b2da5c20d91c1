"""The command line: ``psmvae impute``, ``fit``, ``sets``, ``info``, ``simulate`` and ``demo``."""

from psmvae.cli.app import main

__all__ = ["main"]
