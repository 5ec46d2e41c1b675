"""The measures of ranked lists, as trec_eval defines them, from the ranks of the judged documents alone.

No measure looks at an unjudged document other than by counting it, so a ranking comes here as its hits: the
judged documents that were retrieved, with rank and grade. Hits of query q lie at judged_starts[q] onwards,
n_hits[q] of them, in ranking order; its judged grades, retrieved or not, lie at
judged_starts[q]:judged_starts[q + 1], highest first. A negative grade means in the pool but not judged: never
relevant, no gain, and unseen by bpref and by `judged_only`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from genm._math.elementary import logarithm2
from genm._math.parallel import kernel, over_ranges
from genm._typing import Floats, Ints

AP, P, R, NDCG, RR, RPREC, BPREF, JUDGED, SUCCESS, IPREC = range(10)
"""What column 0 of a plan may hold."""

NO_CUTOFF = 2**62
Grades = NDArray[np.int32]


def measure_values(
    plan: Ints, recall: Floats, judged_starts: Ints, judged: Grades, hits: tuple[Ints, Ints, Grades], depth: Ints
) -> Floats:
    """Return the (queries, measures) values.

    A row of `plan` is (kind, cutoff, rel, judged_only, exponential gain), `recall` holds IPrec's levels, `hits` is
    (n_hits, rank, grade) and `depth` the number of documents retrieved for each query.
    """
    n_hits, rank, grade = hits
    judged_starts = np.require(judged_starts, np.int64, ("C", "W"))
    depth = np.require(depth, np.int64, ("C", "W"))
    values = np.zeros((len(depth), len(plan)))

    def work(low: int, high: int) -> None:
        _values(low, high, plan, recall, judged_starts, judged, n_hits, rank, grade, depth, values)

    over_ranges(work, np.diff(judged_starts) * len(plan))
    return values


@kernel
def _gain(grade: int, exponential: int) -> float:
    return math.ldexp(1.0, grade) - 1.0 if exponential else float(grade)


@kernel
def _values(
    low: int,
    high: int,
    plan: Ints,
    recall: Floats,
    judged_starts: Ints,
    judged: Grades,
    n_hits: Ints,
    rank: Ints,
    grade: Grades,
    depth: Ints,
    values: Floats,
) -> None:
    """Write the values of queries low..high.

    Every sum is built up whatever the measure is: hits are few, and one short loop compiles in a fraction of the
    time that ten loops would take.
    """
    for q in range(low, high):
        for m in range(len(plan)):
            kind, cutoff, rel = plan[m, 0], plan[m, 1], plan[m, 2]
            judged_only, exponential = plan[m, 3], plan[m, 4]
            n_relevant = n_nonrelevant = 0
            ideal = 0.0
            for i in range(judged_starts[q], judged_starts[q + 1]):
                g = judged[i]
                if g >= rel:
                    n_relevant += 1
                elif g >= 0:
                    n_nonrelevant += 1
                at = i - judged_starts[q]
                if g > 0 and at < cutoff:
                    ideal += _gain(g, exponential) / logarithm2(at + 2.0)
            needed = int(recall[m] * n_relevant + 0.9)
            if kind == RPREC:
                cutoff = n_relevant

            seen = found = passed = 0
            precisions = dcg = preferred = reciprocal = highest = 0.0
            for h in range(judged_starts[q], judged_starts[q] + n_hits[q]):
                g = grade[h]
                if judged_only and g < 0:
                    continue
                seen += 1
                r = seen if judged_only else rank[h]
                if r > cutoff:
                    seen -= 1
                    break
                if g > 0:
                    dcg += _gain(g, exponential) / logarithm2(r + 1.0)
                if g >= rel:
                    found += 1
                    precision = found / r
                    precisions += precision
                    if found == 1:
                        reciprocal = precision
                    if found >= needed:
                        highest = max(highest, precision)
                    # nobody can be passed by more non-relevant documents than bpref looks at
                    if passed > 0:
                        preferred += 1.0 - min(passed, n_relevant) / min(n_nonrelevant, n_relevant)
                    else:
                        preferred += 1.0
                elif g >= 0:
                    passed += 1

            value = 0.0
            if kind == NDCG:
                if ideal > 0.0:
                    value = dcg / ideal
            elif kind == JUDGED:
                if depth[q] > 0:
                    value = seen / min(cutoff, depth[q])
            elif kind == P:
                value = found / cutoff
            elif found > 0:
                if kind == AP:
                    value = precisions / n_relevant
                elif kind == RR:
                    value = reciprocal
                elif kind == BPREF:
                    value = preferred / n_relevant
                elif kind == SUCCESS:
                    value = 1.0
                elif kind == IPREC:
                    value = highest
                else:  # R and Rprec
                    value = found / n_relevant
            values[q, m] = value
