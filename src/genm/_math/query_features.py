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
from genm._math.parallel import kernel, over_ranges
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


@kernel
def _features(low: int, high: int, scores: Floats, retrieved: Bools, starts: Ints, out: Floats) -> None:
    """Read each row once: tops by insertion, and the sums that the correlations need.

    best, tops: rows and scores of the top of each list; sums: lowest score, then x, r, x x, r r and x r summed over
    the documents of the list, x its own score and r the sum of the others'.
    """
    n_rankers = scores.shape[1]
    best = np.empty((n_rankers, TOP), np.int64)
    tops = np.empty((n_rankers, TOP))
    sizes = np.empty(n_rankers, np.int64)
    lengths = np.empty(n_rankers, np.int64)
    sums = np.empty((n_rankers, 6))
    for q in range(low, high):
        sizes[:] = 0
        lengths[:] = 0
        sums[:] = 0.0
        sums[:, 0] = np.inf
        for i in range(starts[q], starts[q + 1]):
            total = 0.0
            for k in range(n_rankers):
                total += scores[i, k]
            for k in range(n_rankers):
                if not retrieved[i, k]:
                    continue
                x = scores[i, k]
                r = total - x
                lengths[k] += 1
                sums[k, 0] = min(sums[k, 0], x)
                sums[k, 1] += x
                sums[k, 2] += r
                sums[k, 3] += x * x
                sums[k, 4] += r * r
                sums[k, 5] += x * r
                n = sizes[k]
                if n == TOP and x <= tops[k, TOP - 1]:
                    continue
                at = n if n < TOP else TOP - 1
                sizes[k] = min(n + 1, TOP)
                while at > 0 and tops[k, at - 1] < x:
                    best[k, at] = best[k, at - 1]
                    tops[k, at] = tops[k, at - 1]
                    at -= 1
                best[k, at] = i
                tops[k, at] = x
        n_tops = np.zeros(starts[q + 1] - starts[q], np.int64)  # in how many tops each document stands
        for k in range(n_rankers):
            for j in range(sizes[k]):
                n_tops[best[k, j] - starts[q]] += 1
        for k in range(n_rankers):
            n = sizes[k]
            if n == 0:
                continue
            total, above, squares, variance = 0.0, 0.0, 0.0, 0.0
            for j in range(n):
                total += tops[k, j]
                above += tops[k, j] - sums[k, 0]
                squares += (tops[k, j] - sums[k, 0]) ** 2
            for j in range(n):
                variance += (tops[k, j] - total / n) ** 2
            out[q, k, 0] = tops[k, 0] - tops[k, 1] if n > 1 else 0.0
            out[q, k, 1] = np.sqrt(variance / n)
            out[q, k, 2] = squares / above**2 if above > 0.0 else 1.0 / n
            shared = 0
            for j in range(n):
                shared += n_tops[best[k, j] - starts[q]] - 1
            out[q, k, 3] = shared / n / (n_rankers - 1) if n_rankers > 1 else 0.0
            m = lengths[k]
            own = sums[k, 3] - sums[k, 1] ** 2 / m
            others = sums[k, 4] - sums[k, 2] ** 2 / m
            if own > 1e-12 * sums[k, 3] and others > 1e-12 * sums[k, 4]:  # less is what rounding leaves
                out[q, k, 4] = (sums[k, 5] - sums[k, 1] * sums[k, 2] / m) / np.sqrt(own) / np.sqrt(others)
