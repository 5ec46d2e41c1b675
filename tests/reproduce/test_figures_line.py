"""Two rankers: what is plotted is P1 and P2 as the oracles give them, and the steps are all there."""

import numpy as np
import pytest
from reproduced import capture, collection, exact_map, smooth_map

from genm.errors import InputError
from genm.reproduce.figures.objective import (
    BETAS,
    SIGMOID_BETA,
    draw_objective,
    draw_sigmoid,
    draw_smoothing,
    pair_of,
    steps_inside,
)

SAMPLED = (0, 137, 500, 999, 1000)


@pytest.fixture(scope="module")
def aligned():
    return collection().aligned


@pytest.fixture(scope="module")
def pair(aligned):
    return pair_of(aligned)


def test_the_pair_is_the_papers_or_the_last_two(pair):
    assert pair.rankers == ("ldi", "plsi")
    assert pair_of(collection(rankers=("LDI", "pLSI", "c", "d")).aligned).rankers == ("LDI", "pLSI")
    assert pair_of(collection(rankers=("a", "b", "c")).aligned).rankers == ("c", "b")
    with pytest.raises(InputError, match=r"expected at least two rankers; found a\."):
        pair_of(collection(rankers=("a",)).aligned)


@pytest.mark.needs("matplotlib")
def test_p1_is_plotted_at_every_thousandth(aligned, pair, monkeypatch):
    figures = capture(monkeypatch)
    drawing = draw_objective(pair, "MED")
    x, y = figures[0].axes[0].lines[0].get_data()
    np.testing.assert_allclose(x, np.arange(1001) / 1000)
    for at in SAMPLED:
        assert y[at] == pytest.approx(exact_map(aligned, pair.rankers, [x[at], 1 - x[at]]), abs=1e-12)
    assert f"{max(y):.4f}" in drawing.caption
    assert "weight of ldi (plsi has the rest)" in drawing.svg


@pytest.mark.needs("matplotlib")
def test_the_narrow_window_has_every_step(aligned, pair, monkeypatch):
    figures = capture(monkeypatch)
    draw_objective(pair, "MED")
    close = figures[0].axes[2]
    [stairs] = close.patches
    values, edges, _ = stairs.get_data()
    assert len(values) > 1
    for value, low, high in zip(values, edges[:-1], edges[1:], strict=True):
        middle = 0.5 * (low + high)
        assert value == pytest.approx(exact_map(aligned, pair.rankers, [middle, 1 - middle]), abs=1e-9)


def test_steps_inside_join_equal_neighbours_and_lose_none(pair):
    steps = pair.steps()
    edges, values = steps_inside(steps, (0.2, 0.7))
    assert (edges[0], edges[-1]) == (0.2, 0.7)
    assert (np.diff(edges) > 0).all()
    assert (np.diff(values) != 0).all()
    for t in np.linspace(0.2003, 0.6997, 40):
        whole = steps.values[np.searchsorted(steps.breakpoints, t, side="right") - 1]
        assert values[np.searchsorted(edges, t, side="right") - 1] == whole


@pytest.mark.needs("matplotlib")
def test_p2_is_plotted_for_each_beta(aligned, pair, monkeypatch):
    figures = capture(monkeypatch)
    drawing = draw_smoothing(pair, "MED")
    lines = {line.get_label(): line.get_data() for line in figures[0].axes[0].lines}
    for beta in BETAS:
        x, y = lines[f"P2, β = {beta:.0f}"]
        for at in SAMPLED:
            assert y[at] == pytest.approx(smooth_map(aligned, pair.rankers, [x[at], 1 - x[at]], beta), abs=1e-9)
        assert f"β = {beta:.0f} chooses {x[np.argmax(y)]:.3f}" in drawing.caption
    np.testing.assert_array_equal(lines["P1: MAP itself"][1], pair.exact)


@pytest.mark.needs("matplotlib")
def test_the_linear_approximation_is_the_tangent_between_its_ends(monkeypatch):
    figures = capture(monkeypatch)
    drawing = draw_sigmoid()
    above, below = figures[0].axes
    lines = {line.get_label(): line.get_data() for line in above.lines}
    x, f = lines["sigmoid f"]
    np.testing.assert_allclose(f, 1.0 / (1.0 + np.exp(SIGMOID_BETA * x)), atol=1e-12)
    x, straight = lines["linear approximation"]
    assert straight[x < -2 / SIGMOID_BETA - 1e-9].min() == 1.0
    assert straight[x > 2 / SIGMOID_BETA + 1e-9].max() == 0.0
    slopes = {line.get_label(): line.get_data() for line in below.lines}
    x, slope = slopes["slope of f"]
    np.testing.assert_allclose(slope[1:-1], np.gradient(f, x)[1:-1], atol=0.5)
    assert min(slopes["of the linear approximation"][1]) == -SIGMOID_BETA / 4
    assert "24%" in drawing.caption  # 2 / (1 + e^2)
