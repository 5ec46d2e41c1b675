"""Shapley values: what each player of a game adds, averaged over the orders in which all could have joined.

A game says what every set of players is worth; a set is an integer whose bit k tells whether player k is in it.
Worths may be numbers or arrays, one number for each query: the values then come query by query, and their mean is
the value of the mean (Shapley 1953 calls this additivity).
"""

from collections.abc import Callable, Iterator
from math import comb

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Game = Callable[[int], Array]


def shapley_values(n_players: int, game: Game) -> Array:
    """Return (players, ...) values by going through every set of players: exact, 2^n worths are asked for."""
    worth = [np.asarray(game(members), np.float64) for members in range(1 << n_players)]
    values = np.zeros((n_players, *worth[0].shape))
    for members in range(1 << n_players):
        share = (
            1.0 / (n_players * comb(n_players - 1, members.bit_count())) if members.bit_count() < n_players else 0.0
        )
        for player in range(n_players):
            if not members >> player & 1:
                values[player] += share * (worth[members | 1 << player] - worth[members])
    return values


def sampled_orders(n_players: int, n_orders: int, seed: int) -> list[NDArray[np.int64]]:
    """Return random orders of the players, every second one the one before it read backwards.

    Who comes early in an order comes late in the other, so what is added in the two varies less on average than in
    two that know nothing of each other (antithetic sampling).
    """
    rng = np.random.default_rng(seed)
    orders: list[NDArray[np.int64]] = []
    while len(orders) < n_orders:
        drawn = rng.permutation(n_players)
        orders += [drawn, drawn[::-1]]
    return orders


def sets_on_the_way(order: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Yield (player, members before, members after) as the players join in this order."""
    before = 0
    for player in order.tolist():
        after = before | 1 << player
        yield player, before, after
        before = after


def sampled_values(n_players: int, game: Game, orders: list[NDArray[np.int64]]) -> Array:
    """Return (pairs of orders, players, ...) what each player added, averaged over an order and its reverse.

    Their mean over the first axis estimates the Shapley values, and what they vary by tells how well. Every pair
    keeps the sum: all players together get what the whole is worth, less the empty set's worth.
    """
    shape = np.asarray(game(0)).shape
    added = np.zeros((len(orders) // 2, n_players, *shape))
    for number, order in enumerate(orders):
        for player, before, after in sets_on_the_way(order):
            added[number // 2, player] += 0.5 * (game(after) - game(before))
    return added
