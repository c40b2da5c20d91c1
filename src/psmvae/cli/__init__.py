"""The command line: ``psmvae impute``, ``fit``, ``sets``, ``info`` and ``demo``."""

from psmvae.cli.app import main

__all__ = ["main"]
