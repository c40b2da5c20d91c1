"""The demo: a simulated trial with known true values, imputed by several methods."""

from psmvae.demo.files import check_folder, make_report, write_files
from psmvae.demo.study import Scores, Study, run_study

__all__ = ["Scores", "Study", "check_folder", "make_report", "run_study", "write_files"]
