"""The version, where every layer can read it without importing another."""

__version__ = "0.1.0"
