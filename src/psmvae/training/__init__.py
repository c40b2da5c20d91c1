"""Training of the deep models.

- `loop`: the training loop, with `early_stopping`, `time_budget`, `interrupt` and `pretrain`;
- `recipe`: the protocols between the loop and a family of models, implemented in `latent_recipe`
  and `gan_recipe`;
- `calibration`: what a latent variable model estimates from validation cells;
- `data`, `validation`: the training table, its validation cells and their error;
- `weights`, `adam`, `step`: one optimisation step of all members at once;
- `progress`: what is reported to callbacks.
"""

from psmvae.training.progress import Progress

__all__ = ["Progress"]
