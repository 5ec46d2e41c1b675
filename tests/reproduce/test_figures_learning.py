"""Learning curves: sixteen starts, zeros included, and what is plotted is what the fusers noted."""

import numpy as np
import pytest
from reproduced import capture, collection, smooth_map

from genm.reproduce.figures.learning import LEAST, MOST, binary_starts, draw_learning, learning_curves


@pytest.fixture(scope="module")
def aligned():
    return collection().aligned


@pytest.fixture(scope="module")
def curves(aligned):
    return learning_curves(aligned)


def test_all_binary_starts_come_zeros_first():
    starts = binary_starts(4)
    assert len(np.unique(starts, axis=0)) == len(starts) == 16
    assert starts[0].tolist() == [0, 0, 0, 0]
    assert starts[1].tolist() == [1, 0, 0, 0]
    assert starts[-1].tolist() == [1, 1, 1, 1]
    assert len(binary_starts(7)) == 9


def test_curves_begin_at_their_start_and_last_ten_iterations(curves):
    for by_start in curves.steps.values():
        for start, steps in zip(curves.starts, by_start, strict=True):
            assert steps[0].weights == tuple(start)
            assert LEAST <= steps[-1].iteration <= MOST
            assert [step.iteration for step in steps] == list(range(len(steps)))


def test_the_online_objective_is_p4_under_free_weights(aligned, curves):
    for s in (0, 3, 15):
        last = curves.steps["gEnM.ON"][s][-1]
        assert last.objective == pytest.approx(smooth_map(aligned, aligned.rankers, last.weights, 200.0), abs=1e-9)
    assert any(sum(steps[-1].weights) != pytest.approx(1.0, abs=0.01) for steps in curves.steps["gEnM.ON"])


@pytest.mark.needs("matplotlib")
def test_every_start_has_its_panel_with_both_methods(curves, monkeypatch):
    figures = capture(monkeypatch)
    drawing = draw_learning(curves, "MED")
    panels = [axes for axes in figures[0].axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in panels][:2] == ["(0; 0; 0; 0)", "(1; 0; 0; 0)"]
    assert len(panels) == 16
    assert len(drawing.svg) < 150_000
    for s, axes in enumerate(panels):
        shown = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
        for method, by_start in curves.steps.items():
            assert shown[method] == [step.objective for step in by_start[s]]
    ends = [steps[-1].objective for steps in curves.steps["UnsEnM"]]
    assert f"UnsEnM ends between {min(ends):.3f} and {max(ends):.3f}" in drawing.caption
