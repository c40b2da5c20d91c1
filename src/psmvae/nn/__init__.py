"""Networks, likelihoods of the columns, factors of the models and mask models."""
