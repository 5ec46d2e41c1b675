"""What the kernels do with one tile or one list of relevant documents, whatever the measure.

Fused scores are summed from the first ranker to the last without contraction, as `weighted_sum` does, so that
documents that are tied in a run are tied here to the last bit.
"""

import numpy as np
from numpy.typing import NDArray

from genm._math.parts import part

Array = NDArray[np.float64]


@part()
def fuse_tile(scores: NDArray[np.floating], tile: int, weights: Array, s: Array) -> None:
    """Set s to the fused scores of 64 documents."""
    weight = weights[0]
    for d in range(64):
        s[d] = weight * scores[tile, 0, d]
    for k in range(1, len(weights)):
        weight = weights[k]
        for d in range(64):
            s[d] += weight * scores[tile, k, d]


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


@part("nnan", "nsz")
def range_of(s: Array) -> tuple[float, float]:
    """Return the least and greatest of 64 numbers, none NaN (which lets the compiler use vector lanes)."""
    least, greatest = s[0], s[0]
    for d in range(64):
        least = s[d] if s[d] < least else least
        greatest = s[d] if s[d] > greatest else greatest
    return least, greatest


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
