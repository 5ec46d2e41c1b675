"""The weighted sum of K rankers' scores, the same to the last bit wherever it is computed.

Each row is summed from the first ranker to the last, one product at a time, so that rows with equal scores stay
tied: a matrix product may round the same row differently depending on where it stands.
"""

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import kernel, over_ranges

_BLOCK = 4096


def weighted_sum(scores: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum over k of weights[k] * scores[:, k]."""
    scores = np.require(scores, np.float64, ("C", "W"))
    weights = np.require(weights, np.float64, ("C", "W"))
    fused = np.empty(len(scores))
    n_blocks = -(-len(scores) // _BLOCK)

    def work(low: int, high: int) -> None:
        _sum_rows(low * _BLOCK, min(high * _BLOCK, len(scores)), scores, weights, fused)

    over_ranges(work, np.full(n_blocks, _BLOCK * len(weights), np.int64))
    return fused


@kernel
def _sum_rows(
    low: int, high: int, scores: NDArray[np.float64], weights: NDArray[np.float64], fused: NDArray[np.float64]
) -> None:
    for i in range(low, high):
        total = 0.0
        for k in range(len(weights)):
            total += weights[k] * scores[i, k]
        fused[i] = total
