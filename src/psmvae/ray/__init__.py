"""Fit and impute on a Ray cluster; ``pip install "psmvae[ray]"``.

- `impute`: files or a Ray Dataset, by actors of Ray Data;
- `fit`: data-parallel training with Ray Train;
- `fit_many`: independent fits, for example to bootstrap samples.

The functions use the cluster that ``ray.init`` has connected to. Without one they do what Ray does
by itself: connect to the address in ``RAY_ADDRESS``, or start Ray on this machine. The other
machines of a cluster need psmvae too.
"""

from psmvae.ray.imputing import impute
from psmvae.ray.many import fit_many
from psmvae.ray.train import fit

__all__ = ["fit", "fit_many", "impute"]
