"""Bad tables and bad parameters: errors that say what was wrong, and nothing is lost."""

import datetime as dt
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from psmvae import Network, PSMVAEImputer, SelfMask
from psmvae.nn.mask import LatentMask

METHODS = [
    "transform",
    "sample",
    "predict_set",
    "predict_set_proba",
    "score_samples",
    "score",
    "effective_sample_size",
]


@pytest.fixture(scope="module")
def fitted(quick, mixed):
    return quick().fit(pl.DataFrame(mixed))


@pytest.fixture(scope="module")
def frame(mixed):
    return pl.DataFrame(mixed)


BAD_TABLES = {
    "infinity": (np.array([[1.0, np.inf], [2.0, 3.0]]), ValueError, "'x1'.*infinity.*1 of 2 rows"),
    "minus infinity": (
        pd.DataFrame({"a": [1.0, -np.inf, -np.inf]}),
        ValueError,
        "'a'.*infinity.*2 of 3 rows",
    ),
    "no rows": (np.empty((0, 3)), ValueError, r"0 sample\(s\)"),
    "no rows in a frame": (pl.DataFrame({"a": []}), ValueError, r"0 sample\(s\)"),
    "no columns": (np.empty((3, 0)), ValueError, r"0 feature\(s\)"),
    "no columns in a frame": (pd.DataFrame(index=range(3)), ValueError, r"0 feature\(s\)"),
    "one axis": (np.zeros(3), ValueError, "Expected 2D array, got 1D"),
    "three axes": (np.zeros((2, 2, 2)), ValueError, "Expected 2D array, got 3D"),
    "a series": (pd.Series([1.0, 2.0]), ValueError, "Expected 2D"),
    "names twice": (
        pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "a"]),
        ValueError,
        "must be unique.*'a'",
    ),
    "names twice as text": (pd.DataFrame({1: [1.0], "1": [2.0]}), ValueError, "must be unique"),
    "names of two types": (pd.DataFrame({1: [1.0], "a": [2.0]}), TypeError, "string names"),
    "nothing observed": (np.full((3, 2), np.nan), ValueError, "every cell is missing"),
    "dates": (
        pd.DataFrame({"a": [1.0], "when": [dt.datetime(2020, 1, 1)]}),
        TypeError,
        "'when'.*no kind.*days since",
    ),
    "dates in polars": (
        pl.DataFrame({"a": [1.0], "when": [dt.date(2020, 1, 1)]}),
        TypeError,
        "'when'.*no kind",
    ),
    "dates in pyarrow": (
        pa.table({"when": [dt.timedelta(1)], "a": [1.0]}),
        TypeError,
        "'when'.*no kind",
    ),
    "dates as objects": (
        pd.DataFrame({"when": pd.Series([dt.date(2020, 1, 1)], dtype=object)}),
        TypeError,
        "'when'.*date",
    ),
    "two bad columns": (
        pl.DataFrame({"when": [dt.date(2020, 1, 1)], "list": [[1]]}),
        TypeError,
        "'when'.*\n.*'list'",
    ),
    "lists": (pl.DataFrame({"many": [[1, 2]]}), TypeError, "'many'"),
    "a mixture": (
        pd.DataFrame({"mix": ["a", 1, 2.0]}, dtype=object),
        TypeError,
        "'mix' mixes types: .*str",
    ),
    "complex": (np.array([[1 + 2j]]), ValueError, "Complex data not supported"),
    "sparse": (sparse.csr_array(np.eye(2)), TypeError, "sparse.*toarray"),
    "lazy": (pl.LazyFrame({"a": [1.0]}), TypeError, "collect"),
    "masked": (np.ma.masked_array(np.eye(2)), TypeError, "masked arrays"),
    "ragged": ([[1.0, 2.0], [3.0]], ValueError, "same length"),
    "text": ("patients.csv", TypeError, "got builtins.str"),
    "nothing": (None, TypeError, "got builtins.NoneType"),
    "a dict": ({"a": [1.0]}, TypeError, "got builtins.dict"),
    "a number": (3.0, TypeError, "got builtins.float"),
    "too many levels": (
        pl.DataFrame({"id": [f"p{i}" for i in range(1001)]}),
        ValueError,
        "'id'.*1001 levels",
    ),
}


@pytest.mark.parametrize("what", BAD_TABLES)
def test_a_table_that_cannot_be_fitted(quick, what):
    table, error, message = BAD_TABLES[what]
    imputer = quick()
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        imputer.fit(table)
    assert not [name for name in vars(imputer) if name.endswith("_")]


class TestTransform:
    @pytest.mark.parametrize("method", METHODS)
    def test_names_that_are_new_or_gone(self, fitted, frame, method):
        ask = getattr(fitted, method)
        with pytest.raises(ValueError, match="unseen at fit time: 'mass'"):
            ask(frame.rename({"weight": "mass"}))
        with pytest.raises(ValueError, match="yet now missing: 'weight'"):
            ask(frame.drop("weight"))
        with pytest.raises(ValueError, match="unseen at fit time: 'more'"):
            ask(frame.with_columns(more=pl.lit(1.0)))

    @pytest.mark.parametrize("make", [pl.DataFrame, pa.table, pd.DataFrame])
    def test_the_order_is_repaired(self, fitted, mixed, make):
        turned = {name: mixed[name] for name in sorted(mixed, reverse=True)}
        one, other = fitted.transform(make(mixed)), fitted.transform(make(turned))
        # the columns stay where the user put them
        names = [str(name) for name in getattr(other, "column_names", other.columns)[:]]
        assert names == list(turned)
        for name in mixed:
            assert list(one[name]) == list(other[name])
        for ask in (fitted.score_samples, fitted.predict_set_proba, fitted.effective_sample_size):
            assert ask(make(mixed)).tobytes() == ask(make(turned)).tobytes()

    @pytest.mark.parametrize("method", METHODS)
    def test_another_number_of_columns(self, quick, numbers, method):
        imputer = quick().fit(numbers)
        with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4 features"):
            getattr(imputer, method)(numbers[:, :3])

    def test_another_number_of_columns_with_names(self, quick, numbers):
        imputer = quick().fit(numbers)
        with pytest.raises(ValueError, match="feature"):
            imputer.transform(pd.DataFrame(numbers[:, :3], columns=list("abc")))

    @pytest.mark.parametrize("method", METHODS)
    def test_another_type(self, fitted, frame, method):
        ask = getattr(fitted, method)
        with pytest.raises(TypeError, match=r"'weight' was fitted on numbers.*now holds strings"):
            ask(frame.with_columns(pl.col("weight").cast(pl.String)))
        with pytest.raises(TypeError, match=r"'arm' was fitted on strings.*now holds numbers"):
            ask(frame.with_columns(arm=pl.col("weight")))
        with pytest.raises(TypeError, match="'weight' is of type Date"):
            ask(frame.with_columns(weight=pl.lit(dt.date(2020, 1, 1))))

    @pytest.mark.parametrize("method", METHODS)
    def test_infinity(self, fitted, frame, method):
        with pytest.raises(ValueError, match="'weight' contains infinity"):
            getattr(fitted, method)(frame.with_columns(weight=pl.lit(float("inf"))))

    @pytest.mark.parametrize("method", METHODS)
    def test_no_rows(self, fitted, frame, method):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            getattr(fitted, method)(frame.head(0))

    @pytest.mark.parametrize("method", METHODS)
    def test_unseen_levels(self, fitted, frame, method):
        odd = frame.with_columns(arm=pl.Series(["none", "all", *frame["arm"][2:]]))
        with pytest.raises(
            ValueError, match=r"'arm' has 'none', 'all' in 2 rows.*unseen='missing'"
        ):
            getattr(fitted, method)(odd)

    def test_unseen_levels_as_missing(self, quick, frame):
        imputer = quick(unseen="missing").fit(frame)
        odd = frame.with_columns(arm=pl.Series(["none", "all", *frame["arm"][2:]]))
        empty = frame.with_columns(arm=pl.Series([None, None, *frame["arm"][2:]], dtype=pl.String))
        for one, other in zip(
            [imputer.transform(odd), *imputer.sample(odd, n=2)],
            [imputer.transform(empty), *imputer.sample(empty, n=2)],
            strict=True,
        ):
            # an observed cell is not touched, though the model cannot read it
            assert one["arm"][:2].to_list() == ["none", "all"]
            assert one.drop("arm").equals(other.drop("arm"))
            assert one["arm"].null_count() == 0
        assert imputer.score_samples(odd).tobytes() == imputer.score_samples(empty).tobytes()

    def test_nothing_is_lost(self, fitted, frame):
        before = fitted.transform(frame)
        with pytest.raises(ValueError, match="missing"):
            fitted.transform(frame.drop("weight"))
        assert fitted.transform(frame).equals(before)


class TestFailedFit:
    def test_what_was_learned_before_stays(self, quick, numbers):
        imputer = quick().fit(numbers)
        before = imputer.transform(numbers)
        with pytest.raises(ValueError, match="infinity"):
            imputer.fit(np.array([[np.inf]]))
        imputer.set_params(mask_model=SelfMask(["income"]))
        with pytest.raises(ValueError, match="income"):
            imputer.fit(numbers[:, :2])
        assert imputer.n_features_in_ == 4
        assert imputer.transform(numbers).tobytes() == before.tobytes()

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
    def test_a_callback_that_raises(self, quick, numbers, error):
        def stop(progress):
            raise error("enough")

        imputer = quick()
        with pytest.raises(error, match="enough"):
            imputer.fit(numbers, callback=stop)
        assert not [name for name in vars(imputer) if name.endswith("_")]
        assert imputer.fit(numbers).transform(numbers).shape == numbers.shape


WHOLE = [0, -1, 1.5, 2.0, "two", None, True, float("nan")]
BAD_PARAMETERS = {
    "mask_model": ["latnet", "", None, 3, LatentMask, SelfMask, object()],
    "n_sets": WHOLE,
    "n_latent": WHOLE,
    "pi": [-0.1, 1.1, float("nan"), "rates", None, True, [0.5]],
    "n_members": WHOLE,
    "n_draws": WHOLE,
    "kinds": ["real", ["real"], 3, {"x0": "colour"}, {"x9": "real"}, {"x0": 3}, {"x0": None}],
    "unseen": ["ignore", None, 3, True],
    "network": ["big", None, 64, Network],
    "scale": [0, -1.0, float("nan"), float("inf"), "learn", None, True],
    "beta": [0, -1.0, float("nan"), float("inf"), "one", None, True],
    "hide": [-0.1, 1.0, 1.5, float("nan"), "half", None, True],
    "weight_observed": ["yes", None, 1, 0.5],
    "max_epochs": WHOLE,
    "batch_size": WHOLE,
    "learning_rate": [0, -1e-3, float("nan"), float("inf"), "fast", None, True],
    "held_out": [-0.1, 0.6, float("nan"), "some", None, True],
    "patience": WHOLE,
    "device": ["gpu", "cpu:x", "", None, 3, "meta"],
    "random_state": ["zero", -1, 2**32, 1.5, np.random.default_rng(0)],
    "verbose": ["yes", None, 2],
}
CASES = [(name, value) for name, values in BAD_PARAMETERS.items() for value in values]


class TestParameters:
    def test_every_parameter_is_covered(self):
        assert set(BAD_PARAMETERS) == set(PSMVAEImputer().get_params())

    @pytest.mark.parametrize(("name", "value"), CASES, ids=[f"{n}={v!r:.20}" for n, v in CASES])
    def test_out_of_range_or_of_another_type(self, quick, numbers, name, value):
        # the constructor only stores
        imputer = quick(**{name: value})
        spoken = "kind" if name == "kinds" else name
        with pytest.raises((ValueError, TypeError), match=spoken) as caught:
            imputer.fit(numbers)
        if not isinstance(value, type | dict):
            assert repr(value) in str(caught.value)
        assert not [each for each in vars(imputer) if each.endswith("_")]

    def test_ends_of_the_ranges_are_allowed(self, quick, numbers):
        imputer = quick(
            n_sets=np.int64(1),
            n_latent=1,
            pi=1,
            n_draws=1,
            kinds={},
            scale=np.float32(0.5),
            beta=1e-6,
            hide=0,
            weight_observed=np.bool_(1),
            max_epochs=1,
            batch_size=10**6,
            held_out=0.5,
            patience=1,
            random_state=2**32 - 1,
        )
        assert np.isfinite(imputer.fit(numbers).transform(numbers)).all()

    def test_no_cuda_here(self, quick, numbers, monkeypatch):
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        with pytest.raises(ValueError, match=r"device='cuda'.*no CUDA device"):
            quick(device="cuda").fit(numbers)

    def test_kinds_that_do_not_fit(self, quick, frame):
        for kinds, message in [
            ({"arm": "real"}, "'arm' is declared real but holds strings"),
            ({"arm": "binary"}, "'arm' is declared binary but has 3 levels"),
            ({"weight": "integer"}, "'weight' is declared integer but .* not whole"),
        ]:
            with pytest.raises(ValueError, match=message):
                quick(kinds=kinds).fit(frame)

    def test_the_mask_of_a_column_that_is_not_there(self, quick, frame):
        with pytest.raises(ValueError, match=r"SelfMask.*not modelled: \['income'\].*'weight'"):
            quick(SelfMask(["weight", "income"])).fit(frame)
        with pytest.raises(TypeError, match=r"did you mean \['weight'\]"):
            SelfMask("weight")
        with pytest.raises(ValueError, match="integrate"):
            SelfMask(integrate="guess")

    def test_network_out_of_range(self):
        for wrong in ({"width": 0}, {"depth": 0}, {"dropout": 1.0}, {"dropout": -0.1}):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                Network(**wrong)

    def test_paper(self):
        for wrong in ("c", "A", "", None, 1):
            with pytest.raises(ValueError, match=r"model must be one of \['a', 'b'\]"):
                PSMVAEImputer.paper(wrong)
        with pytest.raises(TypeError, match="n_set"):
            PSMVAEImputer.paper("a", n_set=3)
        assert PSMVAEImputer.paper("a", n_sets=3).n_sets == 3

    @pytest.mark.parametrize("n", [0, -1, 1.5, "two", None, True])
    def test_number_of_draws(self, fitted, frame, n):
        with pytest.raises((ValueError, TypeError), match=r"^n must be"):
            fitted.sample(frame, n=n)

    @pytest.mark.parametrize("seed", [-1, "zero", 1.5])
    def test_seed_of_the_draws(self, fitted, frame, seed):
        with pytest.raises(ValueError, match="random_state must be"):
            fitted.sample(frame, n=1, random_state=seed)
