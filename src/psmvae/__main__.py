"""``python -m psmvae``: the command line without the installed script."""

import sys

from psmvae.cli import main

if __name__ == "__main__":
    sys.exit(main())
