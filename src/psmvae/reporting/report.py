"""`psmvae.report` and what it returns."""

from __future__ import annotations

import copy
import json
import os
import tempfile
import textwrap
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from psmvae.table.paths import AnyPath, atomic_path, check_place

if TYPE_CHECKING:
    from psmvae.reporting.figures import Figure
    from psmvae.reporting.schema import ReportData

__all__ = ["Report", "report"]

_WIDTH = 100


class Report:
    """A report on missing data and its imputation; made by `psmvae.report`.

    In a notebook it shows itself. Printing it gives five sentences.

    Parameters
    ----------
    data : dict
        The data of the report, as `json` returns it.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from psmvae import report
    >>> rng = np.random.default_rng(0)
    >>> df = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    >>> df.loc[df["a"] > 1, "b"] = np.nan
    >>> made = report(df, title="Three columns")
    >>> made.json()["table"]["n_incomplete_columns"]
    1
    >>> made.html()[:15]
    '<!DOCTYPE html>'
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = cast("ReportData", data)

    def json(self) -> dict[str, Any]:
        """Return the data of the report.

        Returns
        -------
        dict
            Plain values that JSON can hold; `psmvae.reporting.schema` documents the fields. A copy.
        """
        return copy.deepcopy(dict(self._data))

    def html(self) -> str:
        """Return the report as a page.

        Returns
        -------
        str
            An HTML document that loads nothing from anywhere and is readable without JavaScript.

        Raises
        ------
        ImportError
            If jinja2 or matplotlib is not installed; ``pip install "psmvae[report]"``.
        """
        from psmvae.reporting.page import to_html

        return to_html(self._data, self._figures)

    def html_snippet(self) -> str:
        """Return the report as a fragment of HTML, for a notebook or another page.

        Returns
        -------
        str
            An element with a shadow root: its styles and scripts do not reach the page around it,
            nor another report. Each call gives the element a new identifier.

        Raises
        ------
        ImportError
            If jinja2 or matplotlib is not installed; ``pip install "psmvae[report]"``.
        """
        from psmvae.reporting.page import to_snippet

        return to_snippet(self._data, self._figures)

    def markdown(self) -> str:
        """Return the report as Markdown, without pictures.

        Returns
        -------
        str
            The sections of the page as text and tables.
        """
        from psmvae.reporting.markdown import to_markdown

        return to_markdown(self._data)

    def write_html(self, path: AnyPath) -> None:
        """Write the page of `html` to a file.

        Parameters
        ----------
        path : path
            The file. An existing one is replaced when the new one is complete.

        Raises
        ------
        TableError
            If the path is a folder, or its folder does not exist or is not writable.
        """
        check_place(path, force=True)
        _write(self.html(), path)

    def write_json(self, path: AnyPath) -> None:
        """Write the data of `json` to a file.

        Parameters
        ----------
        path : path
            The file. An existing one is replaced when the new one is complete.

        Raises
        ------
        TableError
            If the path is a folder, or its folder does not exist or is not writable.
        """
        check_place(path, force=True)
        _write(self._json_text(), path)

    def _json_text(self) -> str:
        return json.dumps(self._data, indent=1, allow_nan=False) + "\n"

    def open(self) -> Path:
        """Write the page to a temporary file and open it in a browser.

        Returns
        -------
        Path
            The file, readable by the user only. It is not removed.
        """
        page = self.html()
        file, name = tempfile.mkstemp(prefix="psmvae-report-", suffix=".html")
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            stream.write(page)
        path = Path(name)
        webbrowser.open(path.as_uri())
        return path

    def __repr__(self) -> str:
        lines = [self._data["title"]]
        for sentence in self._data["summary"]["sentences"]:
            lines += textwrap.wrap(
                sentence, _WIDTH, initial_indent="- ", subsequent_indent="  ",
                break_on_hyphens=False,
            )  # fmt: skip
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.html_snippet()

    @cached_property
    def _figures(self) -> dict[str, Figure]:
        check_installed()
        from psmvae.reporting.figures import figures

        return figures(self._data)


def report(
    X: Any,
    *,
    imputer: Any = None,
    mi: Any = None,
    analyses: Any = None,
    sensitivity: Any = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    title: str = "Missing data",
    max_columns: int = 60,
    max_rows: int = 10_000,
    validate: bool = True,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Report on the missing data of a table and its imputation: one page.

    It shows what is missing, why it may be, what was imputed, whether to believe it, what follows,
    and how to write it up. Parts that were not given are left out.

    Parameters
    ----------
    X : DataFrame or array of shape (n_rows, n_columns)
        The incomplete table, as the imputers read it.
    imputer : imputer, optional
        Fitted on the table. Its comparison of mechanisms is shown, and it is validated on cells
        that are held out.
    mi : MultipleImputation, optional
        The imputations that are shown. Without them, five are drawn from `imputer`.
    analyses : Analyses or PooledResults, optional
        Analyses of the imputations, whose pooled estimates are shown.
    sensitivity : TippingPoint or AssumptionComparison or sequence of them, optional
        Sensitivity analyses.
    pairs : sequence of pairs of str, optional
        Numeric columns of scatter plots, such as ``[("age", "income")]``. By default the two with
        the strongest correlation in the first imputation, of those with imputed cells.
    title : str, default="Missing data"
        Title of the page.
    max_columns : int, default=60
        So many columns, those with the highest missing rates, are shown in full; the others are
        rows of a table.
    max_rows : int, default=10_000
        Little's test, the predictors of missing cells and scatter plots use at most so many rows,
        drawn at random. Counts, rates, patterns and ranges use all rows. The validation has limits
        of its own: 5,000 rows and 40,000 cells.
    validate : bool, default=True
        Whether `imputer` is fitted again without some cells, to compare its imputations with them.
    random_state : int, default=0
        Seed of the samples and of the validation. Imputations that are made here are drawn with
        the seed of `imputer`.
    progress : callable, optional
        Called with the name of each step before it begins.

    Returns
    -------
    Report
        With ``.write_html(path)``, ``.open()``, ``.html()``, ``.json()`` and ``.markdown()``.

    Raises
    ------
    NotFittedError
        If `imputer` is not fitted.
    ValueError
        If `imputer` has other columns than `X`, `mi` is of another table, or a column of `pairs` is
        unknown or not numeric.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from psmvae.reporting.report import report
    >>> rng = np.random.default_rng(0)
    >>> df = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    >>> df.loc[df["a"] > 1, "b"] = np.nan
    >>> len(report(df).json()["summary"]["sentences"])
    5
    """
    from psmvae.reporting.data.collect import collect

    return Report(
        collect(
            X,
            imputer=imputer,
            mi=mi,
            analyses=analyses,
            sensitivity=sensitivity,
            pairs=pairs,
            title=title,
            max_columns=max_columns,
            max_rows=max_rows,
            validate=validate,
            random_state=random_state,
            progress=progress,
        )
    )


def check_installed() -> None:
    """Raise ImportError, which names the extra, unless the packages that a page needs are there."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401, ICN001
    except ImportError as error:
        message = f'a page needs {error.name}: pip install "psmvae[report]"'
        raise ImportError(message, name=error.name) from error


def _write(text: str, path: AnyPath) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
