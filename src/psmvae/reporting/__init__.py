"""A page that shows what is missing, why, what was imputed, and what follows.

Three steps, each a function of the one before: ``data`` makes the dictionary of `schema`,
``drawing`` draws its parts on matplotlib axes, and the page puts both into one HTML file.
"""

from psmvae.reporting.report import Report, report

__all__ = ["Report", "report"]
