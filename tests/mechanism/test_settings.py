"""What a user may say in SelfMask."""

import numpy as np
import pytest

from psmvae import SelfMask


@pytest.mark.parametrize("name", ["columns", "shadow"])
def test_one_string_is_not_a_list_of_columns(name):
    with pytest.raises(TypeError, match=r"list of column names.*did you mean \['income'\]"):
        SelfMask(**{name: "income"})
    with pytest.raises(TypeError, match=f"{name} to be a list of column names"):
        SelfMask(**{name: 3})


@pytest.mark.parametrize("name", ["columns", "shadow"])
def test_an_empty_list_of_columns_is_refused(name):
    with pytest.raises(ValueError, match=f"at least one name in {name}; None stands for all"):
        SelfMask(**{name: []})


def test_sign_and_shape_are_checked():
    with pytest.raises(ValueError, match="sign to be 'high' or 'low', got 'up'"):
        SelfMask(sign="up")
    with pytest.raises(ValueError, match=r"shape to be one of .*'smooth'.*, got 'cubic'"):
        SelfMask(shape="cubic")


def test_a_slope_has_a_sign_of_its_own():
    with pytest.raises(ValueError, match="takes sign or slope, not both"):
        SelfMask(sign="low", slope=(0.0, 0.5))


@pytest.mark.parametrize("slope", ["0.5", "12", object(), [1.0, "a"], {"mean": 1}])
def test_a_slope_that_is_no_number_is_refused(slope):
    with pytest.raises(TypeError, match="slope to be a number or"):
        SelfMask(slope=slope)


@pytest.mark.parametrize("slope", [np.nan, np.inf, (0.5, np.nan), (0.5, -1), (1.0,), (1, 2, 3), ()])
def test_a_slope_that_makes_no_sense_is_refused(slope):
    with pytest.raises(ValueError, match="slope to be a number or"):
        SelfMask(slope=slope)


def test_slopes_are_stored_as_numbers():
    assert SelfMask(slope=1).slope_prior == (1.0, 0.0)
    assert SelfMask(slope=[1, 2]).slope == (1.0, 2.0)
    assert SelfMask(slope=np.float32(0.5)).slope_prior == (0.5, 0.0)
    assert SelfMask().slope_prior is None


def test_settings_are_equal_by_value_and_hold_tuples():
    assert SelfMask(columns=["a", "b"]) == SelfMask(columns=("a", "b"))
    assert SelfMask(columns=(c for c in "ab")).columns == ("a", "b")
    assert hash(SelfMask(columns=["a"], shadow=["b"])) is not None
