"""What the kernels do with one tile or one list of relevant documents, whatever the measure.

Fused scores are summed from the first ranker to the last without contraction, as `weighted_sum` does, so that
documents that are tied in a run are tied here to the last bit.
"""

import numpy as np
from numpy.typing import NDArray

from genm._math.lanes import higher, highest, load, lower, lowest, store
from genm._math.parts import part

Array = NDArray[np.float64]


@part()
def fuse_tile(scores: NDArray[np.floating], tile: int, weights: Array, s: Array) -> None:
    """Set s to the fused scores of 64 documents."""
    weight, begins = weights[0], 64 * len(weights) * tile
    for d in range(0, 64, 8):
        store(s, d, weight * load(scores, begins + d))
    for k in range(1, len(weights)):
        weight, begins = weights[k], begins + 64
        for d in range(0, 64, 8):
            store(s, d, load(s, d) + weight * load(scores, begins + d))


@part()
def bound_tile(
    low: NDArray[np.floating], high: NDArray[np.floating], tile: int, weights: Array
) -> tuple[float, float]:
    """Return numbers between which all fused scores of the tile lie.

    Rounding never turns an order around, and the sum runs as in `fuse_tile`, so this holds to the last bit.
    """
    least, greatest = 0.0, 0.0
    for k in range(len(weights)):
        weight = weights[k]
        if weight >= 0.0:
            least += weight * low[tile, k]
            greatest += weight * high[tile, k]
        else:
            least += weight * high[tile, k]
            greatest += weight * low[tile, k]
    return least, greatest


@part()
def range_of(s: Array) -> tuple[float, float]:
    """Return the least and greatest of 64 numbers, none NaN."""
    least, greatest = load(s, 0), load(s, 0)
    for d in range(8, 64, 8):
        x = load(s, d)
        least, greatest = lower(least, x), higher(greatest, x)
    return lowest(least), highest(greatest)


@part()
def order_relevant(
    scores: NDArray[np.floating], first: int, n: int, weights: Array, s: Array, order: NDArray[np.int64], at: int
) -> None:
    """Fuse the relevant documents first:first+n and sort them: s downwards, then position upwards (shell sort).

    Scores and order go to the places from `at` on.
    """
    for j in range(n):
        total = weights[0] * scores[first + j, 0]
        for k in range(1, len(weights)):
            total += weights[k] * scores[first + j, k]
        s[at + j] = total
        order[at + j] = j
    gap = 1
    while gap < n:
        gap = 3 * gap + 1
    while gap > 1:
        gap //= 3
        for i in range(at + gap, at + n):
            value, place, hole = s[i], order[i], i
            while hole >= at + gap and (
                s[hole - gap] < value or (s[hole - gap] == value and order[hole - gap] > place)
            ):
                s[hole] = s[hole - gap]
                order[hole] = order[hole - gap]
                hole -= gap
            s[hole] = value
            order[hole] = place


@part()
def first_below(s: Array, j: int, low: int, high: int, b: float, x: float, distance: float) -> int:
    """Return the first j in low:high (s falling) with b (x - s_j) > distance, or high.

    Walks there from the given j, usually the answer for the tile before, which is close.
    """
    if j < low:
        j = low
    if j > high:
        j = high
    while j < high and not b * (x - s[j]) > distance:
        j += 1
    while j > low and b * (x - s[j - 1]) > distance:
        j -= 1
    return j
