"""The record of aligned runs, and functions that select parts of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genm import display
from genm._math.alignment import count_marks
from genm._math.parallel import over_ranges
from genm._math.scaling import scale_lists
from genm.align.coverage import Coverage, coverage_of
from genm.errors import InputError
from genm.ids import Ids
from genm.normalizers import Normalize, Normalizer, kernel_rules, normalizers_for
from genm.records import Note, check_kind, contents

UNJUDGED = np.int32(-(2**31))
"""The value of an unjudged document in `Aligned.relevance`."""
_MANY = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """Scores of K rankers for the same queries and documents, with judgments if there are any.

    The rows of a query are contiguous, rows[starts[q]:starts[q + 1]], and sorted by descending doc id, so that a
    stable sort by score breaks ties as trec_eval does. No kernel needs ids.
    """

    rankers: tuple[str, ...]
    queries: Ids
    docs: Ids
    starts: NDArray[np.int64]
    doc: NDArray[np.int32]
    raw: NDArray[np.float64]
    """(rows, K) scores as the rankers gave them; 0 where `retrieved` is False."""
    retrieved: NDArray[np.bool_]
    """(rows, K) whether the ranker returned the document (within its depth)."""
    scores: NDArray[np.float64]
    """(rows, K) normalised scores with the gaps filled, which the weights multiply."""
    normalizers: tuple[Normalizer, ...]
    depths: tuple[int | None, ...]
    labelled: bool
    """Whether judgments were given."""
    relevance: NDArray[np.int32]
    """Grade of each row, UNJUDGED where there is none."""
    unretrieved_starts: NDArray[np.int64]
    unretrieved: NDArray[np.int32]
    """Grades of judged documents that are in no run, per query; they count in AP's denominator."""
    query_weights: NDArray[np.float64]
    notes: tuple[Note, ...] = ()
    probability: NDArray[np.float64] | None = None
    """How likely each row is relevant by an uncertain judgment; NaN where it is unjudged, or judged for certain.
    None where all judgments are certain."""

    def __repr__(self) -> str:
        """Return the rankers, sizes and normalisers on one line."""
        kinds = ", ".join(dict.fromkeys(map(repr, self.normalizers)))
        size = contents(self.notes, queries=self.queries, rows=self.doc)
        return f"<Aligned {', '.join(self.rankers)}, {'' if self.labelled else 'not '}judged, {kinds}: {size}>"

    def _repr_html_(self) -> str:
        return display.aligned(self)

    def n_relevant(self, level: int = 1) -> NDArray[np.int64]:
        """Return each query's number of documents graded `level` or higher, retrieved or not."""
        return per_query(self.relevance >= level, self.starts) + per_query(
            self.unretrieved >= level, self.unretrieved_starts
        )

    def select(self, positions: NDArray[np.integer]) -> "Aligned":
        """Return the queries at these positions, in this order, as a new Aligned (a copy)."""
        chosen = np.asarray(positions, np.int64)
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(self.queries)):
            raise IndexError(f"positions must lie in 0..{len(self.queries) - 1}")
        starts, rows = _blocks(self.starts, chosen)
        unretrieved_starts, left = _blocks(self.unretrieved_starts, chosen)
        return replace(
            self,
            queries=self.queries.take(chosen),
            starts=starts,
            doc=self.doc[rows],
            raw=self.raw[rows],
            retrieved=self.retrieved[rows],
            scores=self.scores[rows],
            relevance=self.relevance[rows],
            unretrieved_starts=unretrieved_starts,
            unretrieved=self.unretrieved[left],
            query_weights=self.query_weights[chosen],
            probability=None if self.probability is None else self.probability[rows],
        )

    def coverage(self, ranks: NDArray[np.int32] | None = None) -> Coverage:
        """Return what the rankers and the judgments cover, and the scales of the scores.

        `ranks` are those of the rankers' lists, where they are known: (rows, K), 0 where `retrieved` is False.
        """
        return coverage_of(
            rankers=self.rankers,
            starts=self.starts,
            raw=self.raw,
            retrieved=self.retrieved,
            judged=self.relevance != UNJUDGED if self.labelled else None,
            n_relevant=self.n_relevant(),
            ranks=ranks,
        )


def check_aligned(aligned: object) -> None:
    """Raise an error unless the argument is aligned runs."""
    check_kind("aligned", aligned, Aligned, "Make it by genm.align_runs.")


def renormalize(aligned: Aligned, normalize: Normalize) -> Aligned:
    """Return the same alignment with other normalisers; the raw scores are shared, nothing is aligned again."""
    check_aligned(aligned)
    normalizers = normalizers_for(normalize, aligned.rankers, aligned.raw, aligned.retrieved)
    scores = scale_lists(aligned.raw, aligned.retrieved, aligned.starts, kernel_rules(normalizers))
    return replace(aligned, scores=scores, normalizers=normalizers)


def select_rankers(aligned: Aligned, names: Sequence[str]) -> Aligned:
    """Return the alignment of these rankers only, in this order, as if only these had been aligned.

    Documents that only the others returned are removed from the rows; the judged ones are added to `unretrieved`.
    """
    wrong = [name for name in names if name not in aligned.rankers]
    if wrong or not names or len(set(names)) < len(names):
        raise InputError(
            f"rankers: expected different ones out of {', '.join(aligned.rankers)}; found {list(names)!r}."
        )
    columns = [aligned.rankers.index(name) for name in names]
    return keep_rows(aligned, np.asarray(aligned.retrieved[:, columns].any(axis=1), np.bool_), columns)


def keep_rows(aligned: Aligned, kept: NDArray[np.bool_], columns: Sequence[int]) -> Aligned:
    """Return the marked rows, and of their scores these columns; the other judged documents are not retrieved."""
    rows = np.flatnonzero(kept)
    query = np.repeat(np.arange(len(aligned.queries)), np.diff(aligned.starts))
    lost = ~kept & (aligned.relevance != UNJUDGED)
    old = np.repeat(np.arange(len(aligned.queries)), np.diff(aligned.unretrieved_starts))
    unretrieved_starts, unretrieved = grouped_grades(
        np.concatenate((old, query[lost])),
        np.concatenate((aligned.unretrieved, aligned.relevance[lost])),
        len(aligned.queries),
    )

    def part_of(table: NDArray[Any]) -> NDArray[Any]:
        if len(columns) < 2:  # rows of all columns would be copied for nothing
            return np.ascontiguousarray(table[:, columns][rows])
        return table.take(rows, axis=0).take(columns, axis=1)

    return replace(
        aligned,
        rankers=tuple(aligned.rankers[k] for k in columns),
        starts=offsets(per_query(kept, aligned.starts)),
        doc=aligned.doc[rows],
        raw=part_of(aligned.raw),
        retrieved=part_of(aligned.retrieved),
        scores=part_of(aligned.scores),
        normalizers=tuple(aligned.normalizers[k] for k in columns),
        depths=tuple(aligned.depths[k] for k in columns),
        relevance=aligned.relevance[rows],
        unretrieved_starts=unretrieved_starts,
        unretrieved=unretrieved,
        probability=None if aligned.probability is None else aligned.probability[rows],
    )


def drop_rankers(aligned: Aligned, names: Sequence[str]) -> Aligned:
    """Return the alignment without these rankers: see `select_rankers`."""
    wrong = [name for name in names if name not in aligned.rankers]
    if wrong:
        raise InputError(f"rankers: expected names out of {', '.join(aligned.rankers)}; found {', '.join(wrong)}.")
    return select_rankers(aligned, [name for name in aligned.rankers if name not in names])


def offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where blocks of these lengths start, and where the last one ends."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def per_query(marks: NDArray[np.bool_], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of each query's rows are marked."""
    if len(marks) < _MANY:  # sooner done than a kernel is loaded
        return np.diff(offsets(marks.astype(np.int64))[starts])
    marks, starts = np.require(marks, np.bool_, ("C", "W")), np.require(starts, np.int64, ("C", "W"))
    counts = np.empty(len(starts) - 1, np.int64)
    over_ranges(lambda low, high: count_marks(marks, starts, low, high, counts), np.diff(starts))
    return counts


def grouped_grades(
    query: NDArray[np.int64], grades: NDArray[np.int32], n_queries: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return starts and grades by query, highest grade first, so that the input order has no effect."""
    order = np.lexsort((-grades.astype(np.int64), query))
    return offsets(np.bincount(query, minlength=n_queries)), grades[order]


def _blocks(starts: NDArray[np.int64], chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    lengths = np.diff(starts)[chosen]
    new = offsets(lengths)
    return new, np.arange(new[-1]) + np.repeat(starts[:-1][chosen] - new[:-1], lengths)
