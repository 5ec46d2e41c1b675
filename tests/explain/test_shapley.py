"""Shapley values have the four properties that define them, and equal what the definition says, order by order."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm.explain.shapley import sampled_orders, sampled_values, sets_on_the_way, shapley_values

N_QUERIES = 3


def game(n_players: int, seed: int):
    """Any game at all: a worth for every set of players, query by query."""
    table = np.random.default_rng(seed).normal(size=(1 << n_players, N_QUERIES))
    return lambda members: table[members]


def by_definition(n_players, worth):
    """The mean over all orders of what each player adds."""
    values, orders = np.zeros((n_players, N_QUERIES)), list(permutations(range(n_players)))
    for order in orders:
        members = 0
        for player in order:
            values[player] += (worth(members | 1 << player) - worth(members)) / len(orders)
            members |= 1 << player
    return values


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 5), st.integers(0, 10**6))
def test_equal_to_all_orders(n_players, seed):
    worth = game(n_players, seed)
    assert np.allclose(shapley_values(n_players, worth), by_definition(n_players, worth))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 7), st.integers(0, 10**6))
def test_everything_is_shared_out(n_players, seed):
    worth = game(n_players, seed)
    whole = worth((1 << n_players) - 1) - worth(0)
    assert np.allclose(shapley_values(n_players, worth).sum(axis=0), whole)


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_who_adds_nothing_gets_nothing_and_changes_nothing(n_players, seed):
    inner = game(n_players, seed)
    low = (1 << n_players) - 1
    values = shapley_values(n_players + 1, lambda members: inner(members & low))
    assert np.allclose(values[n_players], 0.0)
    assert np.allclose(values[:n_players], shapley_values(n_players, inner))


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_who_adds_the_same_gets_the_same(n_players, seed):
    inner = game(n_players, seed)

    def twins(members):  # the last two players stand in for each other
        last = 1 << n_players - 1
        other = 1 << n_players
        return inner(members & ~other | (last if members & other else 0))

    values = shapley_values(n_players + 1, twins)
    assert np.allclose(values[n_players], values[n_players - 1])


def test_values_of_sums_are_sums_of_values():
    one, other = game(4, 1), game(4, 2)
    both = shapley_values(4, lambda members: 2.0 * one(members) - other(members))
    assert np.allclose(both, 2.0 * shapley_values(4, one) - shapley_values(4, other))


def test_a_case_worked_by_hand():
    """A left glove and two right ones: a pair is worth 1, so the left glove gets 2/3."""
    worth = {0: 0, 1: 0, 2: 0, 4: 0, 3: 1, 5: 1, 6: 0, 7: 1}
    values = shapley_values(3, lambda members: np.float64(worth[members]))
    assert values == pytest.approx([2 / 3, 1 / 6, 1 / 6])


def test_orders_come_with_their_reverse():
    orders = sampled_orders(6, 10, seed=3)
    assert len(orders) == 10
    for there, back in zip(orders[::2], orders[1::2], strict=True):
        assert sorted(there) == list(range(6))
        assert there.tolist() == back.tolist()[::-1]
    assert [list(sets_on_the_way(np.array([1, 0])))] == [[(1, 0, 2), (0, 2, 3)]]


def test_sampling_shares_everything_out_and_comes_close():
    worth = game(5, 9)
    exact = shapley_values(5, worth)
    errors = []
    for n_orders in (20, 2000):
        added = sampled_values(5, worth, sampled_orders(5, n_orders, seed=0))
        assert np.allclose(added.sum(axis=1), worth(31) - worth(0))
        errors.append(np.abs(added.mean(axis=0) - exact).max())
        told = added.std(axis=0, ddof=1) / np.sqrt(len(added))
        assert (np.abs(added.mean(axis=0) - exact) < 4.5 * told).all()
    assert errors[1] < errors[0] / 3
