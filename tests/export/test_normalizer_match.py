import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm.export.normalizer_match import at_zero, canonical, line_of, match, nearest
from genm.export.stepwise import normalized
from genm.export.target import Technique
from genm.records import Normalizer

PLAIN = Technique("minmax", Normalizer("minmax"))


def test_what_a_kind_does_not_read_is_no_difference() -> None:
    assert match(Normalizer("minmax", k=3.0, ddof=1.0), PLAIN).differences == ()
    assert match(Normalizer("minmax", lower=2.0, lower_mode="ignore"), PLAIN).differences == ()
    assert canonical(Normalizer("none", constant=0.25)) == canonical(Normalizer("none"))
    assert canonical(Normalizer("none", floor=0.5)).floor_at == 0.5


def test_every_difference_is_named() -> None:
    found = match(Normalizer("minmax", constant=0.5, missing="minimum"), PLAIN)
    assert found.differences == (
        "gives a list of equal scores 0.5, not 1",
        "gives a document that the ranker lacks the list's lowest score, not 0",
    )


def test_bounds_only_in_the_modes_that_are_known() -> None:
    bounded = Technique("min_max", Normalizer("minmax"), bounds=frozenset({"clip"}))
    assert match(Normalizer("minmax", lower=1.0, lower_mode="clip"), bounded).differences == ()
    found = match(Normalizer("minmax", upper=1.0), bounded)
    assert found.differences == ("has the upper bound in the mode apply, not clip",)


def test_a_slope_needs_no_offset_and_goes_up() -> None:
    slope = Technique("none", Normalizer("none"), line="slope")
    assert match(Normalizer("none", scale=3.0), slope).differences == ()
    assert "adds 1 to every score" in match(Normalizer("none", shift=1.0), slope).differences[0]
    assert "a slope of -2" in match(Normalizer("none", scale=-2.0), slope).differences[0]
    assert "lacks 0.5, not 0" in match(Normalizer("none", missing=0.5), slope).differences[0]


def test_the_same_kind_is_nearer_than_a_shorter_list_of_differences() -> None:
    techniques = (Technique("sigmoid", Normalizer("sigmoid")), PLAIN)
    assert nearest(Normalizer("minmax", constant=0.5, floor=0.1), techniques).technique.word == "minmax"


@given(
    st.sampled_from(
        [Normalizer("none", scale=2.0, shift=1.0), Normalizer("affine", lower=-1.0, upper=3.0, scale=0.5)]
    ),
    st.floats(-50, 50),
)
def test_a_line_is_the_normaliser(normalizer: Normalizer, score: float) -> None:
    line = line_of(normalizer)
    assert line is not None
    assert line[0] * score + line[1] == pytest.approx(normalized({"d": score}, normalizer)["d"])


@pytest.mark.parametrize(
    "normalizer",
    [
        Normalizer("minmax"),
        Normalizer("none", floor=0.0),
        Normalizer("affine", lower=0.0, upper=1.0, lower_mode="clip"),
    ],
)
def test_what_bends_is_no_line(normalizer: Normalizer) -> None:
    assert line_of(normalizer) is None


def test_what_0_becomes() -> None:
    assert at_zero(Normalizer("sigmoid", scale=2.0, shift=0.1)) == pytest.approx(1.1)
    assert at_zero(Normalizer("atan", shift=0.1)) == pytest.approx(0.1)
    assert at_zero(Normalizer("affine", lower=1.0, upper=3.0)) == pytest.approx(-0.5)
    assert at_zero(Normalizer("minmax")) is None
