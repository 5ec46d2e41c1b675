"""How likely an unjudged document is to be relevant, and what that leaves open in the difference of two systems.

A logistic model of the documents' ranks and the judgments so far, with an effect of each query,

    logit p = x . b + u_q,    b ~ N(b_0, 1 / precision),    u_q ~ N(0, QUERY_SPREAD^2),

fitted by Newton's method to the judged documents; b_0 applies where nothing is judged. Judgments that were asked
for because of the documents' ranks do not bias the fit, since the ranks are what the model conditions on.

The features decide which system the model favours. A model that follows the fused rank says that fusion is better
before anything is judged. So the model starts with the mean logarithm of the ranks alone, which is the same when
two systems are swapped; how the systems differ has a coefficient of 0 until judgments show another one.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from genm._math.expected_ap import expected_ap, expected_size
from genm._math.linear_algebra import weighted_mean
from genm._math.scaling import rank_lists
from genm._typing import Bools, Floats, Ints
from genm.align import UNJUDGED, Aligned

AT_RANK_1 = 0.5
"""The logit of relevance at rank 1 before any judgment."""
PER_LOG_RANK = -0.8
"""The change of the logit by one natural logarithm of the rank, down to rank KNEE."""
PER_LOG_RANK_BELOW = -1.3
"""The same below rank KNEE. With these, p is .62 at rank 1, .21 at rank 10 and .01 at rank 100."""
KNEE = 10.0
LAST_DIFFERENCE = 20.0
"""For systems that are compared, ranks below this one do not differ: what the judged top shows about a list says
little about its end, and half of a difference in AP could come from there."""
QUERY_SPREAD = 1.0
"""Standard deviation of a query's effect: queries have few or many relevant documents."""
INTERCEPT_PRECISION = 1.0
SLOPE_PRECISION = 8.0
BELOW_PRECISION = 5.0
DIFFERENCE_PRECISION = 10.0
RANKER_PRECISION = 2.0
"""1 / variance of the coefficients before any judgment. Intercepts and slopes vary about so much over the five
collections of docs/judging.md. Top and bottom have slopes of their own: judged documents are mostly at the top, and
a flat top must not promise many relevant documents far below."""
MODEL_ERROR = 3.5
"""By how much the error of unjudged documents exceeds what the model says: relevance does not fall off with the
rank as the model has it. Chosen so that 95% intervals held in 95% of the cases of the study's first draws."""
LEAST_QUERIES = 5
"""Queries with a document judged relevant that learning needs."""
_STEPS = 25
_TOLERANCE = 1e-8


class Features(NamedTuple):
    """What the model knows of every row, and its coefficients before any judgment."""

    columns: Floats
    """(rows, F), the first column 1."""
    before: Floats
    """(F) the coefficients before any judgment."""
    precision: Floats
    """(F) 1 / variance of the coefficients around `before`."""

    @classmethod
    def of(cls, log_ranks: list[Floats], precision: float, last: float = np.inf) -> "Features":
        """Return the features of lists: their mean log rank above and below KNEE, and how each list differs.

        The last list has no column of its own: the differences sum to 0. `precision` is that of the differences;
        ranks below `last` do not differ.
        """
        mean = np.mean(log_ranks, axis=0)
        near = [np.minimum(one, np.log(last)) for one in log_ranks]
        differences = [one - np.mean(near, axis=0) for one in near[:-1]]
        n, knee = len(differences), np.log(KNEE)
        above, below = np.minimum(mean, knee), np.maximum(mean - knee, 0.0)
        return cls(
            np.column_stack((np.ones(len(mean)), above, below, *differences)),
            np.array([AT_RANK_1, PER_LOG_RANK, PER_LOG_RANK_BELOW, *[0.0] * n]),
            np.array([INTERCEPT_PRECISION, SLOPE_PRECISION, BELOW_PRECISION, *[precision] * n]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Relevance:
    """Probabilities of relevance of all rows of aligned runs."""

    p: Floats
    """(rows) 1 or 0 where judged, or the judgment's own probability if it has one; else the model's."""
    judged: Bools
    """(rows) whether the document is judged."""
    query_variance: Floats
    """(queries) the variance of the query's effect, given the judgments: what all its documents share."""
    coefficients: Floats
    """(F) those of `Features`."""
    covariance: Floats
    """(F, F) of the coefficients, given the judgments."""

    @property
    def variance(self) -> Floats:
        """(rows) p (1 - p): 0 where a judgment is certain."""
        return np.asarray(self.p * (1.0 - self.p))


def log_ranks(starts: Ints, ranks: Ints) -> Floats:
    """Return the natural logarithm of ranks; a document that a list lacks comes after all of the query's."""
    last = np.repeat(np.diff(starts), np.diff(starts)) + 1
    return np.asarray(np.log(np.where(ranks > 0, ranks, last)))


def ranker_features(aligned: Aligned) -> Features:
    """Return the features of all rankers' lists: what learning weights uses."""
    ranks = rank_lists(aligned.raw, aligned.retrieved, aligned.starts).astype(np.int64)
    lists = [log_ranks(aligned.starts, ranks[:, k]) for k in range(len(aligned.rankers))]
    return Features.of(lists, RANKER_PRECISION)


def system_features(aligned: Aligned, ranks: list[Ints]) -> Features:
    """Return the features of systems that are compared, given by the ranks of all rows."""
    return Features.of([log_ranks(aligned.starts, one) for one in ranks], DIFFERENCE_PRECISION, LAST_DIFFERENCE)


def is_judged(aligned: Aligned) -> Bools:
    """Return, for each row, whether its document is judged."""
    if not aligned.labelled:
        return np.zeros(len(aligned.doc), np.bool_)
    return np.asarray(aligned.relevance != UNJUDGED)


def lists_relevant_only(aligned: Aligned, *, level: int = 1) -> bool:
    """Return whether the judgments name relevant documents only, as those of many test collections do.

    Then nothing is known of how relevance falls off, and an unjudged document is best taken as not relevant.
    """
    if not aligned.labelled or aligned.probability is not None:
        return False
    grades = np.concatenate((aligned.relevance[is_judged(aligned)], aligned.unretrieved))
    return bool((grades >= level).all()) and int((aligned.n_relevant(level) > 0).sum()) >= LEAST_QUERIES


def judged_probability(aligned: Aligned, *, level: int = 1) -> Floats:
    """Return, for each row, how likely its judgment makes it that the document is relevant; NaN without one.

    A certain judgment is 1 for grades from `level` on, else 0. Judgments that say how likely relevance is
    (`Qrels.probability`) count by that.
    """
    certain = np.where(is_judged(aligned), aligned.relevance >= level, np.nan)
    if aligned.probability is None:
        return certain
    return np.where(np.isnan(aligned.probability), certain, aligned.probability)


def estimate_relevance(aligned: Aligned, features: Features, *, level: int = 1) -> Relevance:
    """Fit the model to the judged rows and return the probabilities of all rows."""
    judged = is_judged(aligned)
    lengths = np.diff(aligned.starts)
    query = np.repeat(np.arange(len(lengths)), lengths)
    rows = np.flatnonzero(judged)
    relevant = judged_probability(aligned, level=level)[rows]
    chosen = features._replace(columns=features.columns[rows])
    b, u, variance, covariance = _fit(chosen, query[rows], relevant, len(lengths))
    p = _sigmoid(_linear(features.columns, b) + u[query])
    p[rows] = relevant
    return Relevance(p, judged, variance, b, covariance)


class ExpectedDifference(NamedTuple):
    """The difference of two systems where unjudged documents may be relevant."""

    per_query: Floats
    """Of expected AP."""
    mean: float
    error: float
    """The standard error that is due to unjudged documents."""
    if_nonrelevant: float
    """The mean difference if every unjudged document counts as not relevant."""
    relevance: Relevance


def known_relevant(aligned: Aligned, level: int = 1) -> Floats:
    """Return each query's number of documents judged relevant that no run holds."""
    query = np.repeat(np.arange(len(aligned.queries)), np.diff(aligned.unretrieved_starts))
    return np.bincount(query, aligned.unretrieved >= level, len(aligned.queries)).astype(np.float64)


def expected_difference(
    aligned: Aligned,
    ranks: tuple[Ints, Ints],
    features: Features,
    level: int = 1,
    relevance: Relevance | None = None,
) -> ExpectedDifference:
    """Return how much better the first of two systems is, given by the ranks of all rows (0: not in its list).

    Unjudged documents count by their probability, so a difference of AP becomes one of expected AP. Its variance
    has three parts: the unjudged documents themselves, p (1 - p); the effect of each query on all its documents;
    and the coefficients of the model, which all queries share. All vanish when every document is judged. Together
    they are enlarged by MODEL_ERROR, which was measured. Judgments that are not certain add their own p (1 - p).
    `relevance` saves the time to estimate it.
    """
    if relevance is None:
        relevance = estimate_relevance(aligned, features, level=level)
    others = known_relevant(aligned, level)
    starts, n_queries = aligned.starts, len(aligned.queries)
    query = np.repeat(np.arange(n_queries), np.diff(starts))
    size = expected_size(starts, relevance.p, others)
    first, second = (expected_ap(starts, one, relevance.p, size) for one in ranks)
    share = aligned.query_weights / aligned.query_weights.sum()
    influence = first.influence - second.influence
    pull = influence * relevance.variance
    of_judgments = float((share[query] ** 2 * pull * influence)[relevance.judged].sum())
    pull[relevance.judged] = 0.0
    own = np.bincount(query, pull * influence, n_queries)
    shared = np.bincount(query, pull, n_queries) ** 2 * relevance.query_variance
    slope = np.array([(pull * share[query] * column).sum() for column in features.columns.T])
    of_model = float((slope * (relevance.covariance * slope).sum(axis=1)).sum())
    variance = float((share**2 * (own + shared)).sum()) + of_model
    known = np.where(relevance.judged, relevance.p, 0.0)
    known_size = expected_size(starts, known, others)
    plain = [expected_ap(starts, one, known, known_size).value for one in ranks]
    per_query = first.value - second.value
    return ExpectedDifference(
        per_query,
        weighted_mean(per_query, aligned.query_weights),
        (MODEL_ERROR**2 * max(variance, 0.0) + of_judgments) ** 0.5,
        weighted_mean(plain[0] - plain[1], aligned.query_weights),
        relevance,
    )


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))


def _linear(X: Floats, b: Floats) -> Floats:
    """Return X b, summed column by column: the same on every machine."""
    total = np.zeros(len(X))
    for i, coefficient in enumerate(b):
        total += X[:, i] * coefficient
    return total


def _fit(features: Features, query: Ints, y: Floats, n_queries: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return coefficients, effects of the queries, their variances and the covariance of the coefficients.

    The queries' block of the Hessian is diagonal, so the Schur complement leaves a system as large as b.
    """
    X, before, precision = features
    b, u, each = before.copy(), np.zeros(n_queries), range(len(before))
    stiffness = 1.0 / QUERY_SPREAD**2
    curvature, matrix = np.full(n_queries, stiffness), np.diag(precision)
    for _ in range(_STEPS if len(y) else 0):
        p = _sigmoid(_linear(X, b) + u[query])
        w = p * (1.0 - p)
        curvature = np.bincount(query, w, n_queries) + stiffness
        slope_u = np.bincount(query, y - p, n_queries) - u * stiffness
        slope_b = np.array([((y - p) * X[:, i]).sum() for i in each]) - precision * (b - before)
        cross = np.array([np.bincount(query, w * X[:, i], n_queries) for i in each])
        matrix = np.diag(precision) + np.array([[(w * X[:, i] * X[:, j]).sum() for j in each] for i in each])
        matrix -= np.array([[(cross[i] * cross[j] / curvature).sum() for j in each] for i in each])
        right = slope_b - np.array([(cross[i] * slope_u / curvature).sum() for i in each])
        step_b = np.linalg.solve(matrix, right)
        step_u = (slope_u - (cross * step_b[:, None]).sum(axis=0)) / curvature
        longest = max(float(np.abs(step_u).max()), float(np.abs(step_b).max()))
        shorter = min(1.0, 4.0 / max(longest, 1e-300))  # a first step may be too long for the sigmoid
        b, u = b + shorter * step_b, u + shorter * step_u
        if longest < _TOLERANCE:
            break
    return b, u, 1.0 / curvature, np.asarray(np.linalg.inv(matrix), np.float64)
