"""The paper's experiments."""

from __future__ import annotations

from dataclasses import replace

from psmvae_paper.experiment import Experiment

# The rows of the paper's two main tables, and the library's default imputer.
ROWS = (
    "psmvae-a",
    "psmvae-b",
    "psmvae-b-10000",
    "psmvae-none",
    "dlgm",
    "hivae",
    "vae",
    "miwae",
    "miwae-10000",
    "not-miwae",
    "gain",
    "mice",
    "mice-sample",
    "missforest",
    "mean",
    "psmvae",
)
# The methods of the figures over rates and sizes.
FEW = ("psmvae-a", "psmvae-b-10000", "not-miwae", "mice", "psmvae")
BOTH = ("mcar", "mnar")
SETS = ("psmvae-a", "psmvae-b", "hivae-mask", "psmvae")
MULTIPLE = ("psmvae-a", "psmvae-b", "mice-sample", "psmvae")
# The paper's figure has K = 10,000. A curve has forty points, so it is measured with 1,000 draws.
CURVE_DRAWS = 1_000
CURVE = ("psmvae-b-10000", "psmvae-rate", "psmvae-a", "not-miwae", "miwae-10000")
PI = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
ALL_RATES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)

_INPAINTING = Experiment(
    name="inpainting",
    title="Digits of 8 x 8 pixels with missing pixels filled in",
    source="Figure of the supplement (image inpainting), on small images",
    datasets=("digits",),
    mechanisms=("mcar",),
    rates=(0.2, 0.8),
    methods=("psmvae-b", "gain"),
    seeds=(0,),
    measure="inpaint",
    epochs=500,
    sweep=((("batch_size", 512),),),
    own=(("psmvae-b", (("pi", 0.0),)),),
)

_RMSE20 = Experiment(
    name="rmse20",
    title="Error of single imputation at 20 % missing",
    source="Table of RMSE at 20 %",
    datasets=("adult", "letter", "wine"),
    mechanisms=BOTH,
    rates=(0.2,),
    methods=ROWS,
)

_RMSE80 = Experiment(
    name="rmse80",
    title="Error of single imputation at 80 % missing",
    source="Table of RMSE at 80 %",
    datasets=("breast", "credit", "spam"),
    mechanisms=BOTH,
    rates=(0.8,),
    methods=ROWS,
)

_SETS = Experiment(
    name="pattern-sets",
    title="Accuracy of two learned pattern sets",
    source="Table of pattern-set accuracy",
    datasets=("breast", "wine", "spam"),
    mechanisms=("mnar", "mnar-mcar"),
    rates=(0.2,),
    methods=SETS,
    measure="sets",
    sweep=((("n_sets", 2),),),
)


def _on_paper_masks(experiment: Experiment, name: str) -> Experiment:
    """The same experiment on the masks of the paper."""
    title = f"{experiment.title}, on the paper's own masks"
    return replace(experiment, name=name, title=title, masks="paper")


_ALL = (
    _RMSE20,
    _RMSE80,
    _on_paper_masks(_RMSE20, "printed20"),
    _on_paper_masks(_RMSE80, "printed80"),
    Experiment(
        name="grid",
        title="Error of single imputation, every data set at both rates",
        source="Tables of RMSE, and the cells the paper leaves out",
        datasets=("adult", "letter", "wine", "breast", "credit", "spam"),
        mechanisms=BOTH,
        rates=(0.2, 0.8),
        methods=ROWS,
    ),
    _SETS,
    _on_paper_masks(_SETS, "printed-sets"),
    Experiment(
        name="multiple",
        title="Test accuracy of a classifier trained on 20 imputations",
        source="Table of the supplement (multiple imputation)",
        datasets=("breast",),
        mechanisms=BOTH,
        rates=(0.2, 0.8),
        methods=MULTIPLE,
        measure="multiple",
    ),
    Experiment(
        name="curve",
        title="Error while training",
        source="Figure of RMSE over iteration steps",
        datasets=("breast",),
        mechanisms=("mnar",),
        rates=(0.8,),
        methods=CURVE,
        measure="curve",
        max_draws=CURVE_DRAWS,
        axis="steps",
    ),
    Experiment(
        name="pi",
        title="Error by π', the chance that an observed value says nothing about x_mis",
        source="Figure of the supplement (π')",
        datasets=("breast", "wine"),
        mechanisms=BOTH,
        rates=(0.2, 0.8),
        methods=("psmvae-b-10000",),
        sweep=tuple((("pi", pi),) for pi in PI),
        axis="pi",
    ),
    Experiment(
        name="rate",
        title="Error by missing rate",
        source="Figure of the supplement (missing rate)",
        datasets=("credit",),
        mechanisms=BOTH,
        rates=ALL_RATES,
        methods=FEW,
        axis="rate",
    ),
    Experiment(
        name="rows",
        title="Error by number of rows",
        source="Figure of the supplement (number of observations)",
        datasets=("credit",),
        mechanisms=BOTH,
        rates=(0.2,),
        methods=FEW,
        n_rows=(2_000, 5_000, 10_000, 15_000, 20_000),
        axis="n_rows",
    ),
    Experiment(
        name="columns",
        title="Error by number of columns",
        source="Figure of the supplement (number of variables)",
        datasets=("credit",),
        mechanisms=BOTH,
        rates=(0.2,),
        methods=FEW,
        n_columns=(3, 6, 9, 12, 15),
        axis="n_columns",
    ),
    _INPAINTING,
    replace(
        _INPAINTING,
        name="inpainting-mnist",
        title="Digits of 28 x 28 pixels with missing pixels filled in",
        source="Figure of the supplement (image inpainting)",
        datasets=("mnist",),
    ),
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}


def find_experiment(name: str) -> Experiment:
    """Return an experiment by its name.

    Parameters
    ----------
    name : str
        A key of `EXPERIMENTS`.

    Returns
    -------
    Experiment
        The experiment in full size.

    Raises
    ------
    ValueError
        If the name is unknown; the message lists the known ones.

    Examples
    --------
    >>> find_experiment("rmse20").datasets
    ('adult', 'letter', 'wine')
    >>> find_experiment("rmse30")
    Traceback (most recent call last):
        ...
    ValueError: unknown experiment 'rmse30'; known are rmse20, rmse80, ...
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; known are {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
