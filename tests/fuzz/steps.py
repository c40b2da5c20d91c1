"""Everything that a fuzzed imputer is asked to do."""

import copy
import json
import pickle
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import sklearn.base

import psmvae
from fuzz.columns import INTEGERS
from fuzz.invariants import check_completed, require
from fuzz.libraries import LIBRARIES, content, layout, names, shape
from psmvae.table import TableError, read_table, write_table


def equal(one, other):
    """Whether two tables have the same layout and cells."""
    return layout(one) == layout(other) and content(one) == content(other)


def completed(case, imputer, table):
    """Complete the table once, twice and many times."""
    filled = imputer.transform(table)
    check_completed(case, table, filled)
    require(equal(imputer.transform(table), filled), "transform differs when repeated")
    drawn = imputer.sample(table, n=2)
    for one in drawn:
        check_completed(case, table, one)
    again = imputer.sample(table, n=2)
    require(all(map(equal, drawn, again)), "sample differs when repeated")
    for one in imputer.sample(table, n=1, random_state=7):
        check_completed(case, table, one)


def scores(case, imputer, table):
    """Call the methods that return one number or row of numbers for each row."""
    n = shape(table)[0]
    if hasattr(imputer, "score_samples"):
        require(np.isfinite(imputer.score_samples(table)).all(), "score_samples is not finite")
        require(np.isfinite(imputer.score(table)), "score is not finite")
        size = imputer.effective_sample_size(table)
        require(size.shape[0] == n and np.isfinite(size).all(), "effective_sample_size")
    if hasattr(imputer, "predict_set_proba"):
        probabilities = imputer.predict_set_proba(table)
        require(np.allclose(probabilities.sum(1), 1.0, atol=1e-6), "probabilities of sets")
        require(imputer.predict_set(table).shape == (n,), "predict_set")
        imputer.describe_sets()


def words(case, imputer, table):
    """Describe and print the imputer; markup in names is escaped."""
    text = json.dumps(imputer.describe(), allow_nan=False)
    require(json.loads(text)["model"] == type(imputer).__name__, "describe")
    page = imputer._repr_html_() if hasattr(imputer, "_repr_html_") else ""
    page += imputer._repr_mimebundle_().get("text/html", "")
    require("<b>n</b>" not in page and "<b>x</b>" not in page, "markup is not escaped")
    repr(imputer), str(imputer)
    require(len(imputer.get_feature_names_out()) == shape(table)[1], "get_feature_names_out")
    if getattr(imputer, "mechanism_", None) is not None:
        mechanism = imputer.mechanism_
        str(mechanism), repr(mechanism), mechanism.summary()
        for name in mechanism.findings:
            mechanism.sentence(name)
    if hasattr(imputer, "convergence"):
        imputer.convergence().summary()


def copies(case, imputer, table):
    """Save and load, pickle, copy and clone: all complete the table alike."""
    filled, drawn = imputer.transform(table), imputer.sample(table, n=1)[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.safetensors"
        imputer.save(path)
        require([each.name for each in path.parent.iterdir()] == [path.name], "other files left")
        loaded = psmvae.load(path)
    others = {"load": loaded, "pickle": pickle.loads(pickle.dumps(imputer))}
    others["deepcopy"] = copy.deepcopy(imputer)
    for how, other in others.items():
        require(equal(other.transform(table), filled), f"transform differs after {how}")
        require(equal(other.sample(table, n=1)[0], drawn), f"sample differs after {how}")
    require(loaded.describe() == imputer.describe(), "describe differs after load")
    clone = sklearn.base.clone(imputer)
    require(not hasattr(clone, "missing_rate_"), "a clone is fitted")


def selected(case, imputer, table):
    """Fill some of the missing cells only."""
    wanted = case.rng.random(shape(table)) < 0.5
    check_completed(case, table, imputer.transform(table, where=wanted), wanted=wanted)


def multiple(case, imputer, table):
    """Multiple imputation, its long format and a shift."""
    result = imputer.impute_multiple(table, m=2)
    missing = np.array([[cell is None for cell in column] for column in content(table)]).T
    empty = np.array([not column.observed for column in case.columns])
    # a derived column is also computed where its own cell is observed and an input was filled
    modelled = [c.name not in case.parameters.get("derived", {}) for c in case.columns]
    require((result.mask == (missing & ~empty))[:, modelled].all(), "mask")
    for one in result:
        check_completed(case, table, one)
    repr(result), result._repr_html_()
    if names(table) is None or getattr(case.library, "labels", "text") != "text":
        return
    again = type(result).from_long(result.to_long())
    require(len(again) == 2, "from_long")
    require(content(again[1]) == content(result[1]), "from_long differs")


def others(case, imputer, table):
    """Tables with other rows, all cells missing, or columns in another order."""
    rng, n = case.rng, case.n_rows
    picked = rng.integers(0, n, size=int(rng.choice([1, 4, n]))).tolist()
    tables = {"rows": [c.take(picked) for c in case.columns]}
    tables["missing"] = [c.take([None, 0]) for c in case.columns]
    for columns in tables.values():
        other = case.library.build(columns)
        check_completed(case, other, imputer.transform(other), strict=False)
        check_completed(case, other, imputer.sample(other, n=1)[0], strict=False)
    if case.library.has_names:
        backwards = case.library.build(case.columns[::-1])
        filled = imputer.transform(backwards)
        reverse = replace(case, columns=case.columns[::-1])
        check_completed(reverse, backwards, filled, strict=False)


def outputs(case, imputer, table):
    """Output in the frames of scikit-learn's set_output."""
    for container in ("pandas", "polars"):
        try:
            filled = copy.deepcopy(imputer).set_output(transform=container).transform(table)
        except TypeError as error:
            # objects that the other library cannot hold
            if "set_output(transform=" not in str(error):
                raise
            continue
        require(type(filled).__module__.startswith(container), f"no frame of {container}")
        require(tuple(filled.shape) == shape(table), "shape of set_output")


def missing(case, imputer, table):
    """Describe the missing values of the table."""
    found = psmvae.missingness(table)
    str(found), found.summary(), found._repr_html_(), json.dumps(found.to_dict())
    _ = found.rates, found.patterns, found.flux


def unknown(case, imputer, table):
    """A level that `fit` did not see is an error or a missing cell."""
    words = [c for c in case.columns if c.dtype == "string" and c.observed]
    if not words:
        return
    at, column = case.columns.index(words[0]), words[0]
    cells = ["never seen", None]
    columns = [replace(c, cells=cells) if c is column else c.take([0, None]) for c in case.columns]
    other = case.library.build(columns)
    if imputer.handle_unknown == "missing":
        filled = content(imputer.transform(other))[at]
        require(filled[0][1] == "never seen" and filled[1] is not None, "unknown level")
        return
    try:
        imputer.transform(other)
    except ValueError as error:
        require("never seen" in str(error), f"the error does not name the level: {error}")
    else:
        require(False, "an unknown level was accepted")


def elsewhere(case, imputer, table):
    """The same columns in the frame of another library."""
    plain = all(c.dtype in PLAIN and c.content != "nothing" for c in case.columns)
    if not case.library.has_names or not plain or getattr(case.library, "labels", "") == "multi":
        return
    library = LIBRARIES[case.rng.choice(["pandas", "pyarrow", "polars"])](case.rng)
    if hasattr(library, "labels"):
        library.labels = "text"
    other = library.build(case.columns)
    moved = replace(case, library=library)
    with warnings.catch_warnings():
        # labels of pandas that are not strings are no names in scikit-learn
        warnings.filterwarnings("ignore", "X has feature names, but")
        check_completed(moved, other, imputer.transform(other))


def files(case, imputer, table):
    """Write the completed table, and read it back."""
    if not case.library.has_names or getattr(case.library, "labels", "text") != "text":
        return
    filled = imputer.transform(table)
    ending = str(case.rng.choice(["csv", "tsv.gz", "parquet", "feather"]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t.{ending}"
        try:
            write_table(filled, path)
        except TableError as error:
            require(str(path) in str(error), f"the error does not name the file: {error}")
            require(not list(Path(folder).iterdir()), "a refused table left a file")
            return
        try:
            again = read_table(path)
        except TableError as error:
            # text files with zero bytes are refused, and one column with a separator in its name
            expected = "zero bytes" in str(error)
            if len(case.columns) == 1 and ending == "tsv.gz":
                expected = expected or "seems to be separated by" in str(error)
            require(expected and str(path) in str(error), str(error))
            return
    require(tuple(again.shape) == shape(table), f"{ending} has shape {again.shape}")
    require(again.column_names == names(table), f"{ending} has other names")


def analysed(case, imputer, table):
    """Analyse imputations, pool the results and shift a column."""
    result = imputer.impute_multiple(table, m=3)
    imputed = [c for c, any_ in zip(case.columns, result.mask.any(0), strict=True) if any_]
    numeric = [c for c in imputed if c.content in ("real", "float32", "far from zero")]
    if not numeric or getattr(case.library, "labels", "text") != "text":
        return
    at = case.columns.index(numeric[0])

    def mean(one):
        values = [float.fromhex(bits[1]) for bits in content(one)[at]]
        return {"mean": (float(np.mean(values)), float(np.var(values)) / len(values) + 1e-9)}

    fits = result.analyse(mean)
    fits.pool(dfcom=20).summary()
    result.how_many(fits, dfcom=20)
    name = numeric[0].name if names(table) else f"x{at}"
    if name in result.info.get("derived", {}):
        return
    shifted = result.shift({name: 1.0})
    require((shifted.mask == result.mask).all(), "shift changed the mask")
    old, new = content(result[0]), content(shifted[0])
    kept = all(
        imputed or was == now
        for before, after, cells in zip(old, new, result.mask.T, strict=True)
        for was, now, imputed in zip(before, after, cells, strict=True)
    )
    require(kept, "shift changed observed cells")


def page(case, imputer, table):
    """Report on the table and the imputer; it takes a second, so few cases do."""
    if case.rng.random() > 0.05:
        return
    made = psmvae.report(table, imputer=imputer, validate=False, title="<b>n</b>")
    text = made.html()
    require("<b>n</b>" not in text and "<b>x</b>" not in text, "markup is not escaped")
    json.dumps(made.json(), allow_nan=False)
    made.markdown()


PLAIN = ("float64", "float32", "bool", "string", *INTEGERS)
STEPS = [completed, scores, words, copies, selected, multiple, others, outputs, missing]
STEPS += [unknown, elsewhere, files, analysed, page]
# What every case does; of the other steps each case does a few.
ALWAYS = [completed]
