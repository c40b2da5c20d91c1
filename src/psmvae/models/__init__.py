"""The models: their factors, and the log densities of a batch of rows."""
