"""Climb along exact lines: from given weights to weights that no single line improves."""

from itertools import combinations

import numpy as np

from genm._math.exact.line_search import TOLERANCE, Room, line_profile, value_at
from genm._math.exact.rank_gains import Floats, Problem


def climb(problem: Problem, start: Floats, *, n_random: int = 0, seed: int = 0) -> tuple[Floats, float]:
    """Return weights on the simplex, and their value, that no line through them improves.

    The lines are: one ranker against all others, one ranker against one other, and `n_random` directions drawn
    anew in each round. The result is never worse than the start.
    """
    weights = start / start.sum()
    value, generator = value_at(problem, weights), np.random.default_rng(seed)
    room: Room = []
    while True:
        before = value
        for direction in _directions(weights, n_random, generator):
            low, high = _span(weights, direction)
            if high - low < 1e-9:
                continue
            found = line_profile(problem, weights, direction, low, high, room=room)
            if found.value > value + TOLERANCE:
                moved = np.maximum(weights + found.middle * direction, 0.0)
                moved /= moved.sum()
                here = value_at(problem, moved)
                if here > value:  # rows that all but tie may fall the other way once rounded
                    weights, value = moved, here
        if value <= before + TOLERANCE:
            return weights, value


def _directions(weights: Floats, n_random: int, generator: np.random.Generator) -> list[Floats]:
    """Return the directions of one round; each sums to 0, so that the weights go on summing to 1."""
    K, found = len(weights), []
    if K > 2:
        for k in range(K):
            others = np.delete(weights, k).sum()
            away = -weights / others if others > 0 else np.full(K, -1.0 / (K - 1))
            away[k] = 1.0
            found.append(away)
    for k, other in combinations(range(K), 2):
        pair = np.zeros(K)
        pair[k], pair[other] = 1.0, -1.0
        found.append(pair)
    for _ in range(n_random):
        drawn = generator.standard_normal(K)
        found.append(drawn - drawn.mean())
    return found


def _span(weights: Floats, direction: Floats) -> tuple[float, float]:
    """Return how far one can go both ways before a weight becomes negative."""
    falling, rising = direction < 0, direction > 0
    high = float(np.min(weights[falling] / -direction[falling])) if falling.any() else 0.0
    low = float(np.max(-weights[rising] / direction[rising])) if rising.any() else 0.0
    return low, high
