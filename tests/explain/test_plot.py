"""The picture holds every ranker, in the order of its worth, and repeats to the byte."""

import xml.etree.ElementTree as ET

import pytest
from problems import made_up

from genm.explain import draw_worth, measure_worth


@pytest.mark.needs("matplotlib")
def test_every_ranker_is_drawn_and_read_aloud():
    worth = measure_worth(made_up(5, quality=(0.3, 0.9), n_queries=12))
    drawn = draw_worth(worth)
    assert drawn == draw_worth(worth)
    words = [e.text for e in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert words.count("r0") == words.count("r1") == 1
    assert f"Share of the ensemble's {worth.value:.3f} AP" in words
    assert f"{worth.rankers[1].loss.value:+.3f}" in words
    assert f"Shapley values of AP: r1 {worth.rankers[1].shapley.value:.3f}, r0" in drawn


@pytest.mark.needs("matplotlib")
def test_a_worth_below_nothing_is_drawn_too():
    worth = measure_worth(made_up(5, quality=(1.0, 0.0), n_queries=4), margin=0.0)
    assert "<svg" in draw_worth(worth)
