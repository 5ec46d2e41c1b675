"""Interleaving is fair, and its test may be looked at as often as one likes."""

import math

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from genm.serve.interleaving import credit, sequential_test, team_draft

rankings = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)


@given(rankings, rankings, st.integers(1, 10), st.text(max_size=5))
def test_the_list_takes_turns_and_repeats_nothing(first, second, top, seed):
    shown, teams = team_draft(first, second, top, seed)
    assert len(shown) == len(set(shown)) == min(top, len(set(first) | set(second)))
    assert (shown, teams) == team_draft(first, second, top, seed)
    for doc_id, team in zip(shown, teams, strict=True):
        assert doc_id in (first, second)[team]
    picked = [0, 0]
    for number, team in enumerate(teams):
        picked[team] += 1
        rest = set(second if team == 0 else first) - set(shown[:number])
        assert abs(picked[0] - picked[1]) <= 1 or not rest


def test_who_begins_is_a_fair_coin():
    begins = [team_draft("abc", "bca", 3, f"seed-{n}")[1][0] for n in range(2000)]
    assert 0.45 < np.mean(begins) < 0.55


def test_credit_goes_to_the_side_with_more_clicks():
    shown, teams = ["a", "b", "c"], [0, 1, 0]
    assert credit(shown, teams, ["a"]) == 1
    assert credit(shown, teams, ["b"]) == -1
    assert credit(shown, teams, ["a", "b"]) == 0
    assert credit(shown, teams, []) == 0


def test_the_e_value_is_the_mixture_worked_by_hand():
    """Three wins: the mean of (2p)^3 over Beta(1/2, 1/2) is 8 * (1/2 * 3/2 * 5/2) / (1 * 2 * 3)."""
    found = sequential_test([1, 0, 1, 1])
    assert found.e_value == pytest.approx(8 * (0.5 * 1.5 * 2.5) / 6)
    assert found.p_value == pytest.approx(1 / found.e_value)
    assert (found.wins, found.losses, found.ties, found.share) == (3, 0, 1, 1.0)


def test_no_clicks_say_nothing():
    found = sequential_test([])
    assert (found.e_value, found.p_value, found.share, found.interval) == (1.0, 1.0, None, (0.0, 1.0))
    assert found.verdict() == "no difference shown so far"


def test_equal_versions_are_seldom_told_apart_however_often_one_looks():
    rng = np.random.default_rng(7)
    wrong = sum(sequential_test(rng.choice([-1, 1], 400).tolist()).p_value <= 0.05 for _ in range(300))
    assert wrong <= 0.05 * 300 + 3 * math.sqrt(300 * 0.05 * 0.95)


def test_a_better_version_is_found():
    rng = np.random.default_rng(8)
    found = sequential_test(rng.choice([-1, 1], 400, p=(0.35, 0.65)).tolist())
    assert found.verdict() == "the first is better"
    assert found.interval[0] > 0.5
    turned = sequential_test([-1] * 30)
    assert turned.verdict() == "the second is better"
    assert turned.interval[1] < 0.5
