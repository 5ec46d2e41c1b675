"""What every subset of the rankers reaches on queries that its weights were not learned from."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genm._math.linear_algebra import weighted_mean
from genm._math.parallel import n_threads
from genm.align import Aligned, select_rankers
from genm.errors import InputError
from genm.evaluate import Measure
from genm.evidence.crossval import check_folds, cross_validate, measure_queries
from genm.explain.refits import SharedRefits
from genm.explain.views import members_of
from genm.learn.auto import make_fuser
from genm.progress import Progress, silent

Array = NDArray[np.float64]

SHARED = ("auto", "bat")
"""Methods whose refits share work; the others learn every subset from scratch."""


class SubsetValues:
    """Cross-validated values of subsets, learned when they are first asked for and kept.

    A subset is an integer with a bit for each ranker. The empty one returns no document and is worth 0. All subsets
    are measured on the same folds.
    """

    def __init__(
        self,
        aligned: Aligned,
        *,
        method: str = "auto",
        measure: Measure,
        folds: int = 5,
        seed: int = 0,
        progress: Progress = silent,
    ) -> None:
        n = len(aligned.queries)
        self.aligned, self.measure, self.method = aligned, measure, method
        self.folds, self.seed = check_folds(min(folds, max(n, 2)), n), seed
        self._progress = progress
        self._known: dict[int, Array] = {0: np.zeros(n)}
        self._refits: SharedRefits | None = None
        self._make: Callable[[], Any] = lambda: make_fuser(method, **_options(method, measure))
        self._make()  # refuses an unknown method, or a measure it cannot maximise, before the work
        if method in SHARED:
            self._refits = SharedRefits(aligned, measure, folds=self.folds, seed=seed, hold_back=method == "auto")

    @property
    def everyone(self) -> int:
        """The subset of all rankers."""
        return (1 << len(self.aligned.rankers)) - 1

    @property
    def n_learned(self) -> int:
        """How many subsets have been learned and measured so far."""
        return len(self._known) - 1

    def names(self, subset: int) -> tuple[str, ...]:
        """Return the names of a subset's rankers."""
        return tuple(self.aligned.rankers[k] for k in members_of(subset))

    def per_query(self, subset: int) -> Array:
        """Return the held-out value of every query."""
        if subset not in self._known:
            self.learn([subset])
        return self._known[subset]

    def mean(self, subset: int) -> float:
        """Return the held-out mean over the queries, with their weights."""
        return weighted_mean(self.per_query(subset), self.aligned.query_weights)

    def learn(self, subsets: Iterable[int]) -> None:
        """Learn those that are not known yet, large and small in turn: how long the rest takes can then be told."""
        todo = sorted(set(subsets) - set(self._known))
        wrong = [subset for subset in todo if not 0 <= subset <= self.everyone]
        if wrong:
            raise InputError(f"subset {wrong[0]}: expected an integer from 0 to {self.everyone}, a bit per ranker.")
        todo = [todo[i] for i in np.random.default_rng(0).permutation(len(todo)).tolist()]
        done, at_once = 0, max(AT_ONCE, n_threads())
        while done < len(todo):
            self._progress("learning subsets", done, len(todo))
            some = todo[done : done + at_once]
            values = self._refits.values(some) if self._refits else [self._from_scratch(one) for one in some]
            self._known.update(zip(some, values, strict=True))
            done += len(some)
        if todo:
            self._progress("learning subsets", len(todo), len(todo))

    def _from_scratch(self, subset: int) -> Array:
        some = select_rankers(self.aligned, self.names(subset))
        if len(some.rankers) == 1:  # nothing to learn
            return measure_queries(some, np.ones(1), self.measure)
        return cross_validate(some, self._make, self.measure, folds=self.folds, seed=self.seed).per_query


AT_ONCE = 8
"""Subsets that are learned side by side, at least; between them the progress is told."""


def _options(method: str, measure: Measure) -> dict[str, Any]:
    return {} if method == "uns" else {"measure": measure, "level": measure.rel}
