"""Features of one query's result lists, which any engine has at query time: the shape of each ranker's top.

For each ranker, over the normalised scores of the first `TOP` documents that it returned:

| feature | value |
|---|---|
| gap | the first score less the second |
| spread | the standard deviation |
| entropy | of the scores above the list's lowest, as shares of their sum (Renyi's, of order 2) |
| overlap | the share of these documents that stand in the tops of the other rankers, averaged over them |

One more looks at the whole list: agreement, the correlation of the ranker's normalised scores with the sum of the
others' over the documents that it returned.
"""

import numpy as np

from genm._math.elementary import logarithms
from genm._math.parallel import kernel, over_ranges, part
from genm._typing import Bools, Floats, Ints

TOP = 10
"""How many documents of each list are looked at."""
LIST_FEATURES = ("gap", "spread", "entropy", "overlap", "agreement")


def list_features(scores: Floats, retrieved: Bools, starts: Ints) -> Floats:
    """Return the (queries, rankers, 5) features of every query's lists; those of an empty list are 0."""
    scores = np.require(scores, np.float64, ("C", "W"))
    retrieved = np.require(retrieved, np.bool_, ("C", "W"))
    starts = np.require(starts, np.int64, ("C", "W"))
    out = np.zeros((len(starts) - 1, scores.shape[1], len(LIST_FEATURES)))
    costs = np.diff(starts) * scores.shape[1] + 1
    over_ranges(lambda low, high: _features(low, high, scores, retrieved, starts, out), costs)
    out[:, :, 2] = -logarithms(np.where(out[:, :, 2] > 0.0, out[:, :, 2], 1.0))
    return out


@part()
def _agreement(k: int, first: int, last: int, scores: Floats, retrieved: Bools) -> float:
    """Return the correlation of a ranker's scores with the sum of the others', over the documents it returned."""
    n, mean, mean_rest = 0, 0.0, 0.0
    for i in range(first, last):
        if retrieved[i, k]:
            n += 1
            mean += scores[i, k]
            for j in range(scores.shape[1]):
                mean_rest += scores[i, j] if j != k else 0.0
    if n < 2:
        return 0.0
    mean, mean_rest = mean / n, mean_rest / n
    own, others, both = 0.0, 0.0, 0.0
    for i in range(first, last):
        if retrieved[i, k]:
            mine, rest = scores[i, k] - mean, -mean_rest
            for j in range(scores.shape[1]):
                rest += scores[i, j] if j != k else 0.0
            own += mine * mine
            others += rest * rest
            both += mine * rest
    return both / np.sqrt(own) / np.sqrt(others) if own > 0.0 and others > 0.0 else 0.0


@kernel
def _features(low: int, high: int, scores: Floats, retrieved: Bools, starts: Ints, out: Floats) -> None:
    n_rankers = scores.shape[1]
    best = np.empty((n_rankers, TOP), np.int64)
    sizes = np.empty(n_rankers, np.int64)
    for q in range(low, high):
        for k in range(n_rankers):
            n, lowest = 0, np.inf
            for i in range(starts[q], starts[q + 1]):
                if not retrieved[i, k]:
                    continue
                value = scores[i, k]
                lowest = min(lowest, value)
                if n == TOP and value <= scores[best[k, n - 1], k]:
                    continue
                at = n if n < TOP else TOP - 1
                n = min(n + 1, TOP)
                while at > 0 and scores[best[k, at - 1], k] < value:
                    best[k, at] = best[k, at - 1]
                    at -= 1
                best[k, at] = i
            sizes[k] = n
            if n == 0:
                continue
            total, above, squares = 0.0, 0.0, 0.0
            for j in range(n):
                value = scores[best[k, j], k]
                total += value
                above += value - lowest
                squares += (value - lowest) ** 2
            mean, variance = total / n, 0.0
            for j in range(n):
                variance += (scores[best[k, j], k] - mean) ** 2
            out[q, k, 0] = scores[best[k, 0], k] - scores[best[k, 1], k] if n > 1 else 0.0
            out[q, k, 1] = np.sqrt(variance / n)
            out[q, k, 2] = squares / above**2 if above > 0.0 else 1.0 / n
        for k in range(n_rankers):
            for other in range(n_rankers):
                if other == k or sizes[k] == 0:
                    continue
                shared = 0
                for j in range(sizes[k]):
                    for i in range(sizes[other]):
                        if best[k, j] == best[other, i]:
                            shared += 1
                out[q, k, 3] += shared / sizes[k] / (n_rankers - 1)
        for k in range(n_rankers):
            out[q, k, 4] = _agreement(k, starts[q], starts[q + 1], scores, retrieved)
