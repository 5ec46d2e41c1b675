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


@kernel(makes_arrays=True)
def _features(low: int, high: int, scores: Floats, retrieved: Bools, starts: Ints, out: Floats) -> None:
    """Read each list once: its top by insertion, and the sums that its correlation needs.

    best, tops: rows and scores of the top of each list. x is a list's own score, r the sum of the others'.
    """
    n_rankers = scores.shape[1]
    best = np.empty((n_rankers, TOP), np.int64)
    top = np.empty(TOP)
    sizes = np.empty(n_rankers, np.int64)
    longest = 0
    for q in range(low, high):
        longest = max(longest, starts[q + 1] - starts[q])
    totals = np.empty(longest)
    own_rows = np.empty(longest + 1, np.int64)
    n_tops = np.empty(longest, np.int64)  # in how many tops each document stands
    for q in range(low, high):
        first, last = starts[q], starts[q + 1]
        for i in range(first, last):
            total = 0.0
            for k in range(n_rankers):
                total += scores[i, k]
            totals[i - first] = total
            n_tops[i - first] = 0
        for k in range(n_rankers):
            n, length, least, enters = 0, 0, np.inf, -np.inf
            sum_x, sum_r, sum_xx, sum_rr, sum_xr = 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(first, last):  # without a branch, which no processor could foresee
                own_rows[length] = i
                length += retrieved[i, k]
            for j in range(length):
                i = own_rows[j]
                x = scores[i, k]
                r = totals[i - first] - x
                least = min(least, x)
                sum_x += x
                sum_r += r
                sum_xx += x * x
                sum_rr += r * r
                sum_xr += x * r
                if n == TOP and x <= enters:
                    continue
                at = n if n < TOP else TOP - 1
                n = min(n + 1, TOP)
                while at > 0 and top[at - 1] < x:
                    best[k, at] = best[k, at - 1]
                    top[at] = top[at - 1]
                    at -= 1
                best[k, at] = i
                top[at] = x
                enters = top[n - 1]
            sizes[k] = n
            if n == 0:
                continue
            total, above, squares, variance = 0.0, 0.0, 0.0, 0.0
            for j in range(n):
                n_tops[best[k, j] - first] += 1
                total += top[j]
                above += top[j] - least
                squares += (top[j] - least) ** 2
            for j in range(n):
                variance += (top[j] - total / n) ** 2
            out[q, k, 0] = top[0] - top[1] if n > 1 else 0.0
            out[q, k, 1] = np.sqrt(variance / n)
            out[q, k, 2] = squares / above**2 if above > 0.0 else 1.0 / n
            own = sum_xx - sum_x**2 / length
            others = sum_rr - sum_r**2 / length
            if own > 1e-12 * sum_xx and others > 1e-12 * sum_rr:  # less is what rounding leaves
                out[q, k, 4] = (sum_xr - sum_x * sum_r / length) / np.sqrt(own) / np.sqrt(others)
        for k in range(n_rankers):
            shared = 0
            for j in range(sizes[k]):
                shared += n_tops[best[k, j] - first] - 1
            if shared:
                out[q, k, 3] = shared / sizes[k] / (n_rankers - 1)
