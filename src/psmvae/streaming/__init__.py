"""Imputation of tables in files that need not fit into memory."""

from psmvae.sources.files import FileTable
from psmvae.streaming.manifest import ManifestError
from psmvae.streaming.part import Job, PartError, PartResult, impute_part
from psmvae.streaming.run import Engine, Outcome, PartDone, RunResult, impute_files, one_by_one

__all__ = [
    "Engine",
    "FileTable",
    "Job",
    "ManifestError",
    "Outcome",
    "PartDone",
    "PartError",
    "PartResult",
    "RunResult",
    "impute_files",
    "impute_part",
    "one_by_one",
]
