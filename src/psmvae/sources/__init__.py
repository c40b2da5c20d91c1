"""Tables that need not fit into memory: files, data sets, lazy frames, iterators of frames."""

from psmvae.sources.opening import Source, is_source, open_source

__all__ = ["Source", "is_source", "open_source"]
