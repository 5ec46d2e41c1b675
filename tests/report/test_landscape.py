"""The measure over the weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import made_up

from genm.evaluate import evaluate_aligned, parse_measure
from genm.learn.exact import weights_without
from genm.report.landscape import PLATEAU_LOSS, Landscape, join_steps


@pytest.fixture(scope="module")
def land() -> Landscape:
    return Landscape(made_up(0, n_queries=8, n_docs=30), parse_measure("AP"), np.array([0.5, 0.3, 0.2]))


def test_lines_hold_the_measure_at_every_weight(land) -> None:
    aligned = made_up(0, n_queries=8, n_docs=30)
    for k, line in enumerate(land.lines()):
        others, points = weights_without(land.weights, k), np.array(line["points"])
        assert line["exact"]
        assert points[0] == 0.0
        assert points[-1] == 1.0
        wide = np.flatnonzero(np.diff(points) > 1e-9)
        for i in np.random.default_rng(k).choice(wide, 12):
            t = 0.5 * (points[i] + points[i + 1])
            weights = (1 - t) * others + t * np.eye(3)[k]
            found = evaluate_aligned(aligned, weights, "AP").values.mean()
            assert line["values"][i] == pytest.approx(found, abs=line["tolerance"] + 1e-9)
        assert line["best"][2] >= max(line["values"]) - line["tolerance"] - 1e-12
        assert line["value"] == pytest.approx(land.here)


def test_within_the_plateau_no_more_is_lost_than_it_says(land) -> None:
    for k, (low, high) in enumerate(land.plateaus()):
        assert low <= land.weights[k] <= high
        for t in np.linspace(low, high, 7)[1:-1]:
            weights = (1 - t) * weights_without(land.weights, k) + t * np.eye(3)[k]
            assert land.value(weights) >= land.here - PLATEAU_LOSS - 1e-9


def test_the_map_is_measured_at_its_points(land) -> None:
    ternary = land.ternary()
    assert len(ternary["values"]) == 325
    at = ternary["weights"].index([0.5, 0.25, 0.25])
    assert ternary["values"][at] == land.value(np.array([0.5, 0.25, 0.25]))
    assert ternary["values"][ternary["best"]] == max(ternary["values"])


@pytest.mark.parametrize("measure", ["Bpref", "Judged@5", "IPrec@0.4"])
def test_every_measure_has_exact_steps(measure: str) -> None:
    aligned = made_up(0, n_queries=4, n_docs=30)
    aligned.relevance[(aligned.relevance != 1) & (np.arange(len(aligned.doc)) % 3 == 0)] = 0
    land = Landscape(aligned, parse_measure(measure), np.array([0.5, 0.3, 0.2]))
    line = land.lines()[0]
    assert line["exact"]
    assert len(line["values"]) > 3
    others = weights_without(land.weights, 0)
    for left, right, value in zip(line["points"], line["points"][1:], line["values"], strict=False):
        middle = 0.5 * (left + right)
        assert land.value((1 - middle) * others + middle * np.eye(3)[0]) == pytest.approx(value, abs=1e-9)
    assert land.plateaus() is not None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 40), st.integers(1, 5))
def test_joined_steps_stay_within_their_tolerance(seed, n, most, n_levels) -> None:
    rng = np.random.default_rng(seed)
    points = np.concatenate(([0.0], np.sort(rng.integers(0, 40, n - 1) / 40.0), [1.0]))
    values = rng.integers(0, n_levels, n) / 10.0 + rng.random() * 0.1
    kept, heights, tolerance = join_steps(points, values, most)
    assert len(heights) <= max(most, 1)
    assert (kept[0], kept[-1]) == (0.0, 1.0)
    for i in np.flatnonzero(np.diff(points) > 0):
        middle = 0.5 * (points[i] + points[i + 1])
        found = heights[min(int(np.searchsorted(kept, middle, side="right")) - 1, len(heights) - 1)]
        assert abs(found - values[i]) <= tolerance + 1e-12
    if len(np.unique(values)) == 1:
        assert (len(heights), tolerance) == (1, 0.0)
