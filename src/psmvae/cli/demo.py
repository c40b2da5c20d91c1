"""``psmvae demo``: run the demonstration and print its comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from psmvae.cli.streams import StdoutConsole
from psmvae.demo import check_folder, make_report, run_study, write_files
from psmvae.simulate.trial import OUTCOME

if TYPE_CHECKING:
    from pathlib import Path

    from psmvae.cli.terminal import Terminal
    from psmvae.demo import Study

_PATIENTS = 800
# With --quick: every step runs, but the model is not trained to convergence.
_QUICK_PATIENTS, _QUICK_EPOCHS = 200, 4
_ABOUT_MASK_MODEL = (
    "PSMVAE compares for each column whether its own value explains what is missing. The mean and "
    "MICE assume that values are missing at random."
)


def demo(folder: Path, *, seed: int, quick: bool, device: str, terminal: Terminal) -> None:
    """Run the demo, write its files and print its comparison on standard output."""
    check_folder(folder)
    n, max_epochs = (_QUICK_PATIENTS, _QUICK_EPOCHS) if quick else (_PATIENTS, None)
    terminal.say(f"Simulating a trial of {n} patients and imputing its missing cells")
    with terminal.training() as callback:
        study = run_study(n=n, seed=seed, max_epochs=max_epochs, device=device, callback=callback)
    with terminal.steps() as progress:
        report = make_report(study, validate=not quick, progress=progress)
    paths = write_files(study, report, folder)
    console = StdoutConsole()
    console.print(_comparison(study))
    console.print(Text(_ABOUT_MASK_MODEL))
    console.print(Text(study.imputer.mechanism_.sentence(OUTCOME)))
    for one in study.estimates:
        interval = f"95 % interval {one.conf_low:.1f} to {one.conf_high:.1f}"
        value = f"{one.estimate:.1f} ({interval}; complete data {one.truth:.1f})"
        console.print(Text(f"Pooled over {len(study.mi)} imputations, {one.term}: {value}."))
    terminal.say(f"PSMVAE took {study.seconds:.0f} s")
    terminal.say(f"wrote {', '.join(str(path) for path in paths)}")


def _comparison(study: Study) -> Table:
    trial = study.trial
    table = Table(
        title=f"Imputation of a trial with {len(trial.m)} patients and "
        f"{(~trial.m).sum()} missing cells",
        caption="RMSE in standard deviations, bias in points of the 0-100 score",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("method")
    table.add_column("RMSE,\nall missing cells", justify="right")
    table.add_column("RMSE, outcome\nafter bad-outcome\ndropout", justify="right")
    table.add_column("bias of the\nmean outcome", justify="right")
    for score in study.scores:
        errors = (score.rmse, score.rmse_outcome)
        rmse = ["–" if error is None else f"{error:.3f}" for error in errors]
        table.add_row(score.method, *rmse, f"{score.bias:+.2f}")
    return table
