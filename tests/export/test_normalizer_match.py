import random

import numpy as np
import pytest
from export.cases import model
from hypothesis import given
from hypothesis import strategies as st

from genm.align import Aligned, align_runs
from genm.export import export_model, measured_loss
from genm.export.normalizer_match import at_zero, canonical, line_of, match, nearest, nearest_lines
from genm.export.simulation import normalized
from genm.export.target import Technique
from genm.normalizers import Normalizer
from genm.read import run_from_dict
from genm.records import Run

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


def runs() -> dict[str, Run]:
    """A ranker on a large scale and one on a small, which no weights of normalised scores fit as they are."""
    draw = random.Random(9)
    table = {
        name: {f"q{q}": {f"d{i}": scale * draw.random() + lift for i in range(25)} for q in range(20)}
        for name, scale, lift in (("bm25", 40.0, 5.0), ("dense", 0.3, 0.6))
    }
    return {name: run_from_dict(of, name=name) for name, of in table.items()}


def aligned(normalize: str | Normalizer) -> Aligned:
    return align_runs(runs(), normalize=normalize)


def test_a_line_is_found_as_it_is() -> None:
    found = nearest_lines(aligned(Normalizer("affine", lower=-2.0, upper=8.0, scale=3.0)))
    assert found["bm25"] == pytest.approx((0.3, 0.6))
    assert found["dense"] == pytest.approx((0.3, 0.6))


def test_the_slope_is_that_of_least_squares_within_the_queries() -> None:
    table = {"one": {"a": 0.0, "b": 1.0, "c": 4.0}, "two": {"a": 10.0, "b": 12.0}}
    found = nearest_lines(align_runs({"x": run_from_dict(table)}))
    # by hand: minmax gives 0, 1/4, 1 and 0, 1; deviations from the queries' means are (-5/3, -2/3, 7/3) and (-1, 1)
    x, y = np.array([-5 / 3, -2 / 3, 7 / 3, -1, 1]), np.array([-5 / 12, -1 / 6, 7 / 12, -0.5, 0.5])
    slope = float(x @ y / (x @ x))
    assert found["x"] == pytest.approx((slope, 2.25 / 5 - slope * 27 / 5))


def test_equal_scores_and_falling_ones_have_no_line() -> None:
    assert nearest_lines(align_runs({"x": run_from_dict({"q": {"a": 3.0, "b": 3.0}})})) == {}
    assert nearest_lines(aligned(Normalizer("none", scale=-1.0))) == {}


@pytest.mark.parametrize("to", ["qdrant", "redis", "ltr", "solr"])
def test_an_approximate_export_comes_nearer_with_runs(to: str) -> None:
    made = model(Normalizer("minmax"), depth=None if to in ("ltr", "solr") else 100)
    blind = export_model(made, to, approximate=True)
    seeing = export_model(made, to, approximate=True, runs=runs())
    assert seeing.text != blind.text
    assert seeing.text == export_model(made, to, approximate=True, runs=aligned("minmax")).text
    assert measured_loss(made, to, runs()).n_members_changed <= 6  # blind: nearly all 20 follow bm25 alone


def test_an_exact_export_needs_no_runs() -> None:
    made = model(Normalizer("none"))
    assert export_model(made, "qdrant", runs=runs()).text == export_model(made, "qdrant").text
