"""Expected average precision of rankings whose documents are relevant with known probabilities.

p is a document's probability of relevance (1 or 0 where it is judged), r its rank in a list, 0 where the list lacks
it. Relevance is taken as independent given p. The expected sum of precisions at relevant documents is then

    SP = sum over documents i of p_i / r_i * (1 + sum of p_j over the j above i),

and expected AP is approximated by SP / D, where D is the expected number of relevant documents given that there is
one: E[R] / P(R > 0). Where every document is judged this is average precision itself. A document's influence is the
derivative of SP in its p (Carterette, Allan and Sitaraman, Minimal test collections, SIGIR 2006, call it the
document's weight):

    dSP / dp_i = (1 + sum of p_j above i) / r_i + sum of p_j / r_j over the j below i.
"""

from typing import NamedTuple

import numpy as np

from genm._math.elementary import exponential
from genm._math.parallel import kernel, over_ranges
from genm._math.sorting import rank_order
from genm._typing import Floats, Ints

LEAST_PROBABILITY = 0.01
"""The smoothed form leaves out the precision at documents that are less likely to be relevant than this."""


class Expected(NamedTuple):
    """Expected average precision of each query, and what each document could change."""

    value: Floats
    """(queries) expected AP."""
    influence: Floats
    """(rows) the derivative of the query's value in the document's probability."""


def ranks_of(starts: Ints, scores: Floats) -> Ints:
    """Return each row's rank (from 1) by score downwards; ties by the rows' order, which is that of trec_eval."""
    order = rank_order(starts, scores, np.zeros(len(scores), np.int32))
    lengths = np.diff(starts)
    ranks = np.empty(len(scores), np.int64)
    ranks[order] = np.arange(1, len(scores) + 1) - np.repeat(starts[:-1], lengths)
    return ranks


def expected_size(starts: Ints, p: Floats, n_others: Floats) -> Floats:
    """Return (queries) the expected number of relevant documents given that there is at least one.

    `n_others` counts documents that are known to be relevant and in no list. 1 for a query that surely has none.
    """
    total = _sums(p, starts) + n_others
    with np.errstate(divide="ignore"):
        none = np.where(n_others > 0.0, 0.0, np.exp(_sums(np.log1p(-np.minimum(p, 1.0)), starts)))
    return np.maximum(np.divide(total, 1.0 - none, out=np.ones(len(total)), where=none < 1.0), 1.0)


def expected_ap(starts: Ints, ranks: Ints, p: Floats, size: Floats) -> Expected:
    """Return expected AP of lists that are given by the ranks of the rows; `size` is from `expected_size`."""
    lengths = np.diff(starts)
    query = np.repeat(np.arange(len(lengths)), lengths)
    present = np.flatnonzero(ranks > 0)
    place = starts[:-1][query[present]] + ranks[present] - 1
    ordered = np.zeros(len(p))
    ordered[place] = p[present]
    rank = np.ones(len(p))
    rank[place] = ranks[present]
    above = _before(ordered, starts)
    at = (1.0 + above) / rank
    shares = ordered / rank
    below = np.repeat(_sums(shares, starts), lengths) - _before(shares, starts) - shares
    value = _sums(ordered * at, starts) / size
    influence = -np.repeat(value, lengths)
    influence[present] += (at + below)[place]
    return Expected(value, influence / np.repeat(size, lengths))


def _sums(values: Floats, starts: Ints) -> Floats:
    """Return the sum of each query's values."""
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.bincount(query, values, len(starts) - 1).astype(np.float64)


def _before(values: Floats, starts: Ints) -> Floats:
    """Return, for each row, the sum of the values before it in its query."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    return np.asarray(sums[:-1] - np.repeat(sums[starts[:-1]], np.diff(starts)))


def smooth_expected_ap(
    starts: Ints, scores: Floats, p: Floats, size: Floats, queries: Ints, weights: Floats, beta: float
) -> tuple[Floats, Floats]:
    """Return the smoothed expected AP of some queries and its gradient in the weights of the rankers.

    As in Problem P4 a step of the rank becomes a sigmoid of sharpness beta (Eq. 5), and the count of relevant
    documents above becomes the sum of their probabilities times the same sigmoids.
    """
    values, gradients = np.zeros(len(queries)), np.zeros((len(queries), scores.shape[1]))
    lengths = np.diff(starts)[queries]

    def work(low: int, high: int) -> None:
        _smooth(low, high, starts, scores, p, size, queries, weights, beta, values, gradients)

    over_ranges(work, lengths * 40)
    return values, gradients


@kernel(makes_arrays=True)
def _smooth(
    low: int, high: int, starts: Ints, scores: Floats, p: Floats, size: Floats, queries: Ints, weights: Floats,
    beta: float, values: Floats, gradients: Floats,
) -> None:  # fmt: skip
    n_rankers = scores.shape[1]
    d_rank, d_count = np.empty(n_rankers), np.empty(n_rankers)
    for at in range(low, high):
        q = queries[at]
        begin, end = starts[q], starts[q + 1]
        fused = np.zeros(end - begin)
        for i in range(begin, end):
            for k in range(n_rankers):
                fused[i - begin] += weights[k] * scores[i, k]
        for i in range(begin, end):
            if p[i] < LEAST_PROBABILITY:
                continue
            rank, count = 1.0, 1.0
            d_rank[:] = 0.0
            d_count[:] = 0.0
            for j in range(begin, end):
                x = beta * (fused[i - begin] - fused[j - begin])
                if j == i or x > 40.0:
                    continue
                if x < -40.0:
                    rank += 1.0
                    count += p[j]
                    continue
                g = 1.0 / (1.0 + exponential(x))
                rank += g
                count += p[j] * g
                slope = -beta * g * (1.0 - g)
                for k in range(n_rankers):
                    change = slope * (scores[i, k] - scores[j, k])
                    d_rank[k] += change
                    d_count[k] += p[j] * change
            share = p[i] / size[q]
            values[at] += share * count / rank
            for k in range(n_rankers):
                gradients[at, k] += share * (d_count[k] - count / rank * d_rank[k]) / rank
