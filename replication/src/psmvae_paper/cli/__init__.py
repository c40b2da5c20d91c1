"""The command line: ``psmvae-paper list``, ``run``, ``show``, ``compare`` and ``page``."""

from psmvae_paper.cli.app import main

__all__ = ["main"]
