"""Sentences say what the figures allow and no more."""

from dataclasses import replace

import numpy as np
import pytest
from problems import made_up

from genm.explain import measure_worth, sentences
from genm.explain.agreement import Agreement
from genm.explain.losses import Figure, about_ranker, signed
from genm.explain.subset_choice import Choice
from genm.explain.text import about_choice


@pytest.fixture(scope="module")
def worth():
    return measure_worth(made_up(5, quality=(0.8, 0.8, 0.0), n_queries=40))


def part(worth, low, high, p):
    loss = Figure((low + high) / 2, low, high, low, high)
    return replace(worth.rankers[0], name="x", loss=loss, p=p)


@pytest.mark.parametrize(
    ("low", "high", "p", "begins"),
    [
        (
            0.02,
            0.04,
            0.001,
            "Keep x: beside the others it is worth +0.0300 AP (joint 95% interval +0.0200 to +0.0400).",
        ),
        (0.02, 0.04, 0.2, "Keep x"),
        (
            -0.01,
            0.004,
            0.5,
            "Leave out x: that costs nothing (-0.0030 AP, joint 95% interval -0.0100 to +0.0040; less than 0.005",
        ),
        (-0.01, 0.006, 0.5, "x: too few queries to tell what it is worth beside the others (-0.0020 AP"),
        (-0.04, -0.02, 0.001, "Leave out x: the others do better without it, by 0.0300 AP"),
        (0.001, 0.003, 0.001, "Keep x"),
    ],
)
def test_rankers(worth, low, high, p, begins):
    assert about_ranker(worth, part(worth, low, high, p)).startswith(begins)


def test_what_is_worth_nothing_is_not_what_nobody_could_tell(worth):
    """The verdict rests on the interval that holds for all rankers together."""
    narrow = part(worth, -0.01, 0.004, 0.5)
    wide = replace(narrow, loss=replace(narrow.loss, joint_high=0.02))
    assert "costs nothing" in about_ranker(worth, narrow)
    assert "too few queries" in about_ranker(worth, wide)


def test_two_that_could_go_do_not_go_together(worth):
    free = [replace(part(worth, -0.01, 0.001, 0.5), name=name) for name in ("x", "y")]
    said = sentences(replace(worth, rankers=(*free, worth.rankers[0])))
    assert (
        "That holds for each of x and y by itself, not for all together: they may stand in for each other." in said
    )


def test_twins_are_named(worth):
    alike = Agreement(("a", "b"), np.array([[1, 0.97], [0.97, 1]]), (10, 100), np.full((2, 2, 2), 0.8))
    assert "a and b rank almost alike: rank correlation 0.97, 80% of their top 10 in common." in sentences(
        replace(worth, agreement=alike)
    )


def test_a_ranker_given_twice_is_said_to_be_one(worth):
    same = Agreement(("a", "b"), np.ones((2, 2)), (10, 100), np.ones((2, 2, 2)))
    assert "a and b rank alike, document by document: one of them can carry the weight of both." in sentences(
        replace(worth, agreement=same)
    )


def test_one_other_is_called_by_its_name(worth):
    two = replace(worth, rankers=(part(worth, 0.02, 0.04, 0.001), replace(worth.rankers[1], name="y")))
    assert about_ranker(two, two.rankers[0]).startswith("Keep x: beside y it is worth")
    better = part(worth, -0.04, -0.02, 0.001)
    assert about_ranker(two, better).startswith("Leave out x: y does better without it")


def test_nothing_has_no_sign_to_speak_of():
    assert signed(-0.00001) == signed(0.0) == "+0.0000"
    assert signed(-0.00012) == "-0.0001"


def test_choices(worth):
    few = Choice("greedy", ("a",), 0.5, -0.001, 0.41, 0.004, 7)
    assert about_choice(worth, few).endswith(
        "not significantly worse (paired Wilcoxon and t-test, p = 0.41 at 0.05, greedy search); "
        "chosen out of 7 subsets, it loses at most 0.0040."
    )
    assert "it may lose up to 0.0300: more queries would tell" in about_choice(worth, replace(few, bound=0.03))
    every = replace(few, rankers=("a", "b", "c"))
    assert about_choice(worth, every).startswith("All 3 stay: each of the 6 smaller choices looked at, taken by")
    assert "each of the 7 smaller choices" in about_choice(worth, replace(every, how="exhaustive"))
    assert about_choice(worth, few).startswith("a alone is enough: AP 0.5000")
    assert about_choice(worth, replace(few, rankers=("a", "b"))).startswith("a and b are enough: AP 0.5000")
    assert about_choice(worth, replace(few, bound=0.03)).startswith("a alone may be enough: AP 0.5000")


def test_a_made_up_case(worth):
    said = " ".join(sentences(worth))
    assert "Keep r0" in said
    assert "Keep r1" in said
    assert "r0 and r1 may be enough: AP" in said
    assert "greedy" not in said  # both searches agree, and one sentence is enough
