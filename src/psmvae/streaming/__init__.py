"""Imputation of tables in files that need not fit into memory."""

from psmvae.sources.files import FileTable
from psmvae.streaming.part import Job, PartError, PartResult, impute_part

__all__ = ["FileTable", "Job", "PartError", "PartResult", "impute_part"]
