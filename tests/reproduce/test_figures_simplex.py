"""Three rankers: the map is exact MAP, its best is proved, and the ways are those of the fusers."""

import numpy as np
import pytest
from reproduced import collection, exact_map

from genm.learn import BarrierFuser, NewtonFuser
from genm.reproduce.figures.simplex import STEPS, draw_simplex, heat_image, landscape_of, paths_from, simplex_grid


@pytest.fixture(scope="module")
def aligned():
    return collection().aligned


@pytest.fixture(scope="module")
def landscape(aligned):
    return landscape_of(aligned)


def test_the_three_best_alone_are_taken_in_their_order(aligned, landscape):
    alone = {name: exact_map(aligned, [name], [1.0]) for name in aligned.rankers}
    worst = min(alone, key=alone.__getitem__)
    assert landscape.rankers == tuple(name for name in aligned.rankers if name != worst)


def test_the_grid_covers_the_simplex_once():
    grid = simplex_grid(5)
    assert len(grid) == 21 == len(np.unique(grid, axis=0))
    np.testing.assert_allclose(grid.sum(axis=1), 1.0)


def test_the_map_is_exact_map_and_nothing_exceeds_the_bound(aligned, landscape):
    assert len(landscape.exact) == (STEPS + 1) * (STEPS + 2) // 2
    for at in (0, 17, 2500, 5000, 5150):
        wanted = exact_map(aligned, landscape.rankers, landscape.weights[at])
        assert landscape.exact[at] == pytest.approx(wanted, abs=1e-12)
    assert landscape.optimum.value == pytest.approx(
        exact_map(aligned, landscape.rankers, landscape.optimum.weights), abs=1e-12
    )
    assert landscape.optimum.upper - landscape.optimum.value <= 0.0011


def test_the_image_shows_a_plane_as_a_plane():
    grid = simplex_grid(STEPS)
    image = heat_image(grid @ np.array([3.0, 1.0, 7.0]), STEPS, 60)
    height, width = image.shape
    x, y = np.meshgrid((np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height)
    third, second = y, x - 0.5 * y
    first = 1.0 - second - third
    inside = ~np.isnan(image)
    np.testing.assert_array_equal(inside, (first >= 0) & (second >= 0))
    np.testing.assert_allclose(image[inside], (3 * first + second + 7 * third)[inside], atol=1e-9)


def test_ways_begin_at_their_start_and_end_where_the_fuser_ends(landscape):
    paths = paths_from(np.eye(3), landscape.aligned)
    assert [path.method for path in paths[::3]] == ["gEnM.BAT", "gEnM.IP", "gEnM.ON", "exact"]
    for path in paths:
        np.testing.assert_allclose(path.weights.sum(axis=1), 1.0)
        if path.method != "gEnM.IP":  # which starts inside
            np.testing.assert_allclose(path.weights[0], np.eye(3)[path.start])
    for fuser, method in ((NewtonFuser, "gEnM.BAT"), (BarrierFuser, "gEnM.IP")):
        end = fuser(beta=200.0, starts=np.eye(3)).fit(landscape.aligned).weights_
        ends = [path.weights[-1] for path in paths if path.method == method]
        assert min(np.abs(end - other).max() for other in ends) < 0.02


@pytest.mark.needs("matplotlib")
def test_the_caption_says_what_the_drawing_shows(landscape):
    drawing = draw_simplex(landscape, "MED")
    assert all(f"only {name}" in drawing.svg for name in landscape.rankers)
    assert all(method in drawing.svg for method in ("gEnM.BAT", "gEnM.IP", "gEnM.ON", "exact", "best of all"))
    assert f"{len(landscape.exact):,} weights" in drawing.caption
    assert "data:image/png;base64," in drawing.svg
