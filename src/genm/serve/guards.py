"""What keeps bad feedback from doing harm: recent judged queries, limits per client, and a test for drift.

Each guard depends on stored events alone, never on the moment at which it is asked, so that a replay of the events
comes to the same decisions.
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from genm._typing import Floats
from genm.align import Aligned
from genm.evaluate import AlignedEvaluator
from genm.ids import Ids

NANO = 1_000_000_000
"""Moved weight is counted in whole billionths: sums of integers do not depend on their order."""

LEAST_MOVE = NANO // 1000
"""Weights learned anew that may move less than this are not worth a version."""

_MINUTES = 60


def merge_queries(parts: Sequence[Aligned]) -> Aligned:
    """Return single queries as one alignment. The ids of documents are left out: no measure reads them."""
    sizes = [len(part.relevance) for part in parts]
    scores = np.concatenate([part.scores for part in parts])
    without_raw = all(part.raw is part.scores for part in parts)
    left = [len(part.unretrieved) for part in parts]
    return replace(
        parts[0],
        queries=Ids.of(map(str, range(len(parts)))),
        starts=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        doc=np.concatenate([part.doc for part in parts]),
        raw=scores if without_raw else np.concatenate([part.raw for part in parts]),
        retrieved=np.concatenate([part.retrieved for part in parts]),
        scores=scores,
        relevance=np.concatenate([part.relevance for part in parts]),
        unretrieved_starts=np.concatenate(([0], np.cumsum(left))).astype(np.int64),
        unretrieved=np.concatenate([part.unretrieved for part in parts]),
        query_weights=np.concatenate([part.query_weights for part in parts]),
        probability=None,
    )


def average_precisions(queries: Sequence[Aligned], weights: Floats, level: int) -> list[float]:
    """Return each judged query's exact AP under the weights."""
    if not queries:
        return []
    measured = AlignedEvaluator(merge_queries(queries), f"AP(rel={level})").values(weights)
    return [float(value) for value in measured[:, 0]]


class RecentQueries:
    """The newest judged queries: what an update is tried on before it is promoted."""

    def __init__(self, size: int, level: int) -> None:
        self.level = level
        self._queries: deque[Aligned] = deque(maxlen=size)
        self._evaluator: AlignedEvaluator | None = None

    def __len__(self) -> int:
        return len(self._queries)

    def queries(self) -> list[Aligned]:
        """Return the queries, the oldest first."""
        return list(self._queries)

    def add(self, queries: Sequence[Aligned]) -> None:
        """Add queries in their order; the oldest ones leave where there are too many."""
        size = self._queries.maxlen or 0
        for query in queries[-size:]:
            # a copy: the arrays may be parts of those of a whole request, which must not stay in memory
            tables = {name: getattr(query, name).copy() for name in ("raw", "retrieved", "scores")}
            self._queries.append(replace(query, **tables))
        self._evaluator = None

    def mean_ap(self, weights: Floats) -> float | None:
        """Return the mean AP of the weights on these queries."""
        if not self._queries:
            return None
        if self._evaluator is None:
            self._evaluator = AlignedEvaluator(merge_queries(self._queries), f"AP(rel={self.level})")
        return float(self._evaluator.values(weights)[:, 0].mean())


class Influence:
    """How far each client's events have moved the weights during the last hour, by minutes."""

    def __init__(self) -> None:
        self._moved: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._pruned = 0

    def allows(self, clients: Iterable[str], received: int, moved: int, limit: float | None) -> bool:
        """Tell whether all these clients may move the weights that far; `received` is in milliseconds."""
        if limit is None:
            return True
        return all(self.used(client, received) + moved <= limit * NANO for client in clients)

    def used(self, client: str, received: int) -> int:
        """Return the billionths that the client has used in the hour before."""
        minute = received // 60_000
        of_client = self._moved.get(client, {})
        return sum(moved for at, moved in of_client.items() if minute - _MINUTES < at <= minute)

    def add(self, clients: Iterable[str], received: int, moved: int) -> None:
        """Count a movement of the weights."""
        minute = received // 60_000
        for client in clients:
            of_client = self._moved[client]
            of_client[minute] = of_client.get(minute, 0) + moved
        if minute > self._pruned:
            self._prune(minute)

    def _prune(self, minute: int) -> None:
        self._pruned = minute
        for client in list(self._moved):
            of_client = self._moved[client]
            for at in [at for at in of_client if at <= minute - 2 * _MINUTES]:
                del of_client[at]
            if not of_client:
                del self._moved[client]


def moved_distance(before: Floats, after: Floats) -> int:
    """Return the total variation distance of two vectors of weights in billionths, rounded up."""
    return math.ceil(0.5 * float(np.abs(after - before).sum()) * NANO)


def latest_change(values: Sequence[float], delta: float = 0.002) -> int | None:
    """Return where the mean of the values changed, or None: ADWIN's test over every cut of the window.

    Bifet and Gavaldà (2007): a cut counts if the means of its two sides differ by more than their bound, which
    holds for all cuts together with a chance of error of `delta`. Returns the cut that exceeds its bound by most.
    """
    window = np.asarray(values, np.float64)
    n = len(window)
    if n < 10:
        return None
    left = np.arange(5, n - 4)
    sums = np.cumsum(window)
    first, second = sums[left - 1] / left, (sums[-1] - sums[left - 1]) / (n - left)
    size = 1.0 / (1.0 / left + 1.0 / (n - left))
    log = math.log(2.0 * math.log(n) / delta)
    bound = np.sqrt(2.0 / size * float(window.var()) * log) + 2.0 / (3.0 * size) * log
    excess = np.abs(first - second) - bound
    best = int(np.argmax(excess))
    return int(left[best]) if excess[best] > 0.0 else None


class RequestRate:
    """A token bucket per client: `rate` requests a second, twice as many at once."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait(self, client: str, now: float) -> float:
        """Return 0 and count the request, or the seconds after which it may be sent again."""
        if self.rate <= 0.0:
            return 0.0
        left, at = self._buckets.get(client, (2.0 * self.rate, now))
        left = min(2.0 * self.rate, left + (now - at) * self.rate)
        if left < 1.0:
            return (1.0 - left) / self.rate
        self._buckets[client] = (left - 1.0, now)
        if len(self._buckets) > 10_000:
            full = [name for name, (_, seen) in self._buckets.items() if now - seen > 2.0]
            for name in full:
                del self._buckets[name]
        return 0.0
