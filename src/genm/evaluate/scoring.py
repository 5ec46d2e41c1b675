"""From hits to values and notes: what evaluating a run and evaluating aligned scores have in common."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm._math import measures as kinds
from genm._math.hits import Hits, descending, tie_extremes
from genm._math.measures import measure_values
from genm.errors import InputError
from genm.evaluate.measures import Measure, MeasureName
from genm.ids import Ids
from genm.records import Note

Floats = NDArray[np.float64]

_KIND: dict[MeasureName, int] = {
    "AP": kinds.AP,
    "P": kinds.P,
    "R": kinds.R,
    "nDCG": kinds.NDCG,
    "RR": kinds.RR,
    "Rprec": kinds.RPREC,
    "Bpref": kinds.BPREF,
    "Judged": kinds.JUDGED,
    "Success": kinds.SUCCESS,
    "IPrec": kinds.IPREC,
}
_HIGHEST_EXPONENT = 500
"""The highest grade that 2 to its power leaves finite sums for."""


class Plan(NamedTuple):
    """Measures as the kernel reads them."""

    plan: NDArray[np.int64]
    recall: Floats


def plan_measures(measures: tuple[Measure, ...]) -> Plan:
    """Return the measures as arrays."""
    rows = [
        (
            _KIND[m.name],
            kinds.NO_CUTOFF if m.cutoff is None else m.cutoff,
            m.rel,
            m.judged_only,
            m.dcg == "exp-log2",
        )
        for m in measures
    ]
    return Plan(np.array(rows, np.int64), np.array([m.recall or 0.0 for m in measures]))


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The judged queries that are evaluated and, for each, its judged grades from the highest down."""

    queries: Ids
    starts: NDArray[np.int64]
    grades: NDArray[np.int32]

    @classmethod
    def of(cls, queries: Ids, starts: NDArray[np.int64], grades: NDArray[np.int32]) -> "Judged":
        """Take grades in any order."""
        return cls(queries, starts, descending(starts, grades))

    def values(self, plan: Plan, hits: Hits, depth: NDArray[np.int64]) -> Floats:
        """Return the (queries, measures) values of a ranking; `depth` is its length for each query."""
        return measure_values(*plan, self.starts, self.grades, hits[:3], depth)

    def check_gains(self, measures: tuple[Measure, ...]) -> None:
        """Refuse grades that an exponential gain would carry beyond all numbers."""
        highest = int(self.grades.max(initial=0))
        for measure in measures:
            if measure.dcg == "exp-log2" and highest > _HIGHEST_EXPONENT:
                raise InputError(
                    f"measure {measure}: expected grades up to {_HIGHEST_EXPONENT}, found {highest}. "
                    "Use nDCG's default gain, or map the grades to a smaller scale."
                )

    def note_no_relevant(self, measures: tuple[Measure, ...]) -> list[Note]:
        """Say which queries no ranking can score on."""
        rel = min(m.rel for m in measures)
        best = self.grades[self.starts[:-1]]
        empty = np.flatnonzero(best < rel)
        if len(empty) == 0:
            return []
        what = "relevant document" if rel == 1 else f"document of grade {rel} or more"
        text = (
            f"{len(empty)} of {len(self.queries)} judged queries have no {what} and count 0 "
            f"(first: {self.queries[int(empty[0])]})."
        )
        return [Note("no-relevant", len(empty), text)]

    def note_ties(
        self, measures: tuple[Measure, ...], hits: Hits, depth: NDArray[np.int64], subject: str
    ) -> list[Note]:
        """Say how many values rest on the order of documents with equal scores, and how far they could move."""
        extremes = tie_extremes(self.starts, hits)
        if extremes is None:
            return []
        plan = plan_measures(measures)
        kindest, harshest = (self.values(plan, h, depth) for h in extremes)
        moved = kindest != harshest
        touched = np.flatnonzero(moved.any(axis=1))
        if len(touched) == 0:
            return []
        means = zip(measures, harshest.mean(axis=0), kindest.mean(axis=0), strict=True)
        spans = [f"{measure} {span}" for measure, low, high in means if (span := _between(low, high))]
        if not spans:  # no more than the last digits of a sum
            return []
        text = (
            f"{subject}: equal scores touch the values of {len(touched)} of {len(self.queries)} queries "
            f"(first: {self.queries[int(touched[0])]}). They are ranked by doc id downwards, as trec_eval does; "
            f"other orders would put {', '.join(spans)}."
        )
        return [Note("ties", len(touched), text)]


def _between(low: float, high: float) -> str:
    """Write how far a mean could move, in as many places as it takes to see it; empty if eight show nothing."""
    for places in (4, 6, 8):
        if f"{low:.{places}f}" != f"{high:.{places}f}":
            return f"between {low:.{places}f} and {high:.{places}f}"
    return ""
