"""``psmvae missingness``: describe the missing cells of a table."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from psmvae.cli.commands import warn_of_codes
from psmvae.cli.files import check_file_output, check_input, is_text_file, read_input, write_text
from psmvae.cli.messages import remedies_as_options
from psmvae.cli.missingness_options import Part, ReportFormat
from psmvae.cli.text_tables import csv_text, markdown
from psmvae.describe import missingness as describe
from psmvae.describe.wording import sections

if TYPE_CHECKING:
    from psmvae.cli.missingness_options import MissingnessOptions
    from psmvae.cli.terminal import Terminal
    from psmvae.describe import MissingnessReport


def missingness(options: MissingnessOptions, terminal: Terminal) -> None:
    """Write the description of a table's missing cells."""
    if options.output is not None:
        check_file_output(options.output, force=options.force, inputs=[options.table])
    check_input(options.table)
    with remedies_as_options(text_file=is_text_file(options.table)):
        table = read_input(options, options.ignore or ()).modelled
        with terminal.working("Comparing columns"):
            found = describe(table, random_state=options.seed)
    if found.n_missing == 0:
        warn_of_codes(table)
    write_text(_formatted(found, options), options.output, terminal, force=options.force)


def _formatted(found: MissingnessReport, options: MissingnessOptions) -> str:
    match options.chosen_format:
        case ReportFormat.JSON:
            return json.dumps(_json(found.to_dict()), indent=2, ensure_ascii=False) + "\n"
        case ReportFormat.CSV:
            return _csv(found, options.part or Part.RATES)
        case ReportFormat.MARKDOWN:
            return _markdown(found)
    return found.summary() + "\n"


def _csv(found: MissingnessReport, part: Part) -> str:
    columns = found.to_dict()[part.value]
    if part is Part.LITTLE:
        columns = {
            name: [", ".join(value) if isinstance(value, tuple) else value]
            for name, value in columns.items()
        }
    return csv_text(
        {name: ["" if _is_nan(v) else v for v in values] for name, values in columns.items()}
    )


def _markdown(found: MissingnessReport) -> str:
    blocks = []
    for part in sections(found.to_dict()):
        blocks.append(f"## {part.title}\n")
        if part.rows:
            blocks.append(markdown(part.rows))
        blocks += [f"{paragraph}\n" for paragraph in part.paragraphs]
    return "\n".join(blocks)


def _json(value: Any) -> Any:
    """Return a value with null for NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_json(one) for one in value]
    return None if _is_nan(value) else value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
