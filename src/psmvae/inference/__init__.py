"""Training objectives and posterior inference, from a model's log densities."""
