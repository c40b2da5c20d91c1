"""One small file a model: its factors and what it says of a batch."""
