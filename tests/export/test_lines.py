import random

import numpy as np
import pytest
from export.cases import model

from genm.align import Aligned, align_runs
from genm.export import export_model, measured_loss
from genm.export.lines import nearest_lines
from genm.read import run_from_dict
from genm.records import Normalizer, Run


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
