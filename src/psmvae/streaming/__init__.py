"""Imputation of tables in files that need not fit into memory."""

from psmvae.sources.files import FileTable
from psmvae.streaming.manifest import ManifestError
from psmvae.streaming.part import Job, PartError, PartResult, impute_part
from psmvae.streaming.run import PartDone, RunResult, impute_files

__all__ = [
    "FileTable",
    "Job",
    "ManifestError",
    "PartDone",
    "PartError",
    "PartResult",
    "RunResult",
    "impute_files",
    "impute_part",
]
