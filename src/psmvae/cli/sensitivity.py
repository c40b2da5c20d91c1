"""``psmvae sensitivity``: shift imputed values until the conclusion of an analysis turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psmvae.cli import long_file
from psmvae.cli.files import is_text_file, write_text
from psmvae.cli.formula import formula_analysis
from psmvae.cli.formula_options import choose_format
from psmvae.cli.messages import remedies_as_options
from psmvae.cli.options import check_known
from psmvae.cli.pooled_table import ESTIMATES, formatted, show_number, show_p_value
from psmvae.cli.terminal import UsageError
from psmvae.sensitivity.inference import choose_term
from psmvae.sensitivity.tipping import tipping_point
from psmvae.table.paths import atomic_path
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from pathlib import Path

    from psmvae.cli.pooled_table import Columns
    from psmvae.cli.sensitivity_options import SensitivityOptions
    from psmvae.cli.terminal import Terminal
    from psmvae.sensitivity import TippingPoint


def sensitivity(options: SensitivityOptions, terminal: Terminal) -> None:
    """Write the pooled estimates for every shift, and where the conclusion turns."""
    long_file.check_paths(options.table, [options.output, options.plot], force=options.force)
    if options.plot is not None:
        _check_matplotlib()
    mi = long_file.read_long(
        options.table, options.na, derived=options.formulas, levels=options.levels
    )
    names = mi.original.column_names
    check_known("--column", [options.column], names)
    check_known("--by", [options.by] if options.by else [], names)
    analysis = formula_analysis(options.formula, options.family.value, names)
    first = analysis(mi[0])
    long_file.note_response(first, terminal)
    long_file.warn_of_rows_left_out([first], mi.original.num_rows)
    with (
        remedies_as_options(text_file=is_text_file(options.table)),
        terminal.working("Fitting"),
    ):
        result = tipping_point(
            mi,
            analysis,
            options.column,
            options.deltas,
            by=options.by,
            term=named_term(list(first.params.index), options.term),
            operation=options.operation,
            alpha=1 - options.conf_level,
            random_state=options.seed,
        )
    how = choose_format(options.format, options.output)
    summary = result.summary().to_pydict()
    text = formatted(summary, _columns(summary), how, conf_level=options.conf_level)
    if how == "csv":
        # a CSV file has the estimates only
        terminal.line(result.sentence())
    else:
        text += f"\n{result.sentence()}\n"
    write_text(text, options.output, terminal, force=options.force)
    if options.plot is not None:
        _draw(result, options.plot)
        terminal.say(f"wrote {options.plot}")


def _columns(summary: dict[str, Any]) -> Columns:
    """Return the columns of a readable table: the shifts first."""
    deltas = [name for name in summary if name.startswith("delta")]
    return {
        **{name.replace("_", " ", 1): (name, lambda value: f"{value:g}") for name in deltas},
        **ESTIMATES,
        "p": ("p_value", show_p_value),
        "change": ("change", show_number),
        "conclusion holds": ("holds", lambda value: "yes" if value else "no"),
    }


def named_term(terms: list[str], given: str | None) -> str:
    """Return the term of --term, or the only one that is of interest."""
    try:
        return choose_term(terms, given)
    except ValueError as error:
        wrong = "name the term of interest" if given is None else f"there is no term {given!r}"
        raise UsageError(f"--term: {wrong}; the formula has {quoted(terms)}") from error


def _check_matplotlib() -> None:
    """Refuse --plot without matplotlib, before any time is spent."""
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError as error:
        raise ImportError("--plot needs matplotlib: pip install 'psmvae[plot]'") from error


def _draw(result: TippingPoint, path: Path) -> None:
    # without pyplot, which has global state and may start a window system
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    result.plot(figure.subplots())
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lower().removeprefix("."), dpi=130)
