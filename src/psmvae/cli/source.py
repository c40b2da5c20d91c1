"""Where the fitted imputer of a command comes from."""

from __future__ import annotations

from dataclasses import dataclass, field

from psmvae.cli.methods import check_options
from psmvae.cli.options import ModelFiles, ModelOptions, RunOptions
from psmvae.cli.terminal import UsageError


@dataclass(frozen=True)
class ModelSource:
    """Where the fitted imputer comes from: a file, or the table at hand.

    Parameters
    ----------
    options : ModelOptions
        What to fit, where there is no file.
    run : RunOptions
        How to compute, in both cases.
    files : ModelFiles
        The file, or where to write the model that was fitted.
    """

    options: ModelOptions
    run: RunOptions
    files: ModelFiles = field(default_factory=ModelFiles)

    def __post_init__(self) -> None:
        """Refuse options that a given model has already decided, or the method does not have."""
        options = self.options
        options.check_modelled(self.run.ignore or ())
        if self.files.model is None:
            where = f"--method {options.chosen()}"
            check_options(options.chosen(), options.given() + self.run.given(), where=where)
            return
        fixed = [] if options.method is None else ["--method"]
        fixed += options.given()
        fixed += [] if self.files.save_model is None else ["--save-model"]
        if fixed:
            message = f"{', '.join(fixed)}: not with --model, which is fitted already"
            raise UsageError(message)
