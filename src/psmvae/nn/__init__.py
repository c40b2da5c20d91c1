"""Networks: layers, the columns' likelihoods, the factors of the model and the mask models."""
