"""Training of the deep models.

- `loop`: the training loop, with `pretrain` and `stopping`;
- `recipe`: the protocols between the loop and a family of models, implemented in `latent_recipe`
  and `gan_recipe`;
- `calibration`: what a latent variable model estimates from validation cells;
- `data`: the training table and its validation cells;
- `weights`, `adam`, `step`: one optimisation step of all members at once;
- `progress`: what is reported to callbacks.
"""

from psmvae.training.progress import Progress

__all__ = ["Progress"]
