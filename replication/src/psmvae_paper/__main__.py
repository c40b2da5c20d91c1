"""``python -m psmvae_paper`` is ``psmvae-paper``."""

import sys

from psmvae_paper.cli import main

if __name__ == "__main__":
    sys.exit(main())
