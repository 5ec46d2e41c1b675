"""UnsEnM from a score table: what each shard keeps for it, and what co-training asks of all of them.

A ranker's labels depend on one query alone, so every shard finds those of its own queries. What they say about the
rankers is counted per query: labels in common, and sums of scores. Which documents are labelled for many queries is
found by hashes of their names, since shards number their documents each for itself.
"""

import itertools
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from genm._math.agreement import Moments
from genm._math.tiles import Tiles, relabel, take
from genm._typing import Bools, Floats, Ints
from genm.align import Aligned
from genm.errors import InputError
from genm.learn.cotrain import CotrainFuser, Lessons
from genm.learn.objectives import check_beta, sharpness_for
from genm.learn.ranker_quality import Labels, pseudo_labels, quality_of_marks
from genm.learn.table import TableProblem, TableQueries
from genm.scale.evaluation import Answer, Request, weighted_sum

_COUNTS, _NAMES = "counts", "names"


@dataclass(frozen=True, slots=True)
class PseudoLabels:
    """How the rankers label documents; see `genm.learn.ranker_quality.pseudo_labels`."""

    labels: Labels
    n: int
    threshold: float

    reads_doc_ids: ClassVar[bool] = True  # names tell which documents are on top whatever is asked
    reads_judgments: ClassVar[bool] = False

    def prepare(self, aligned: Aligned, tiles: Tiles) -> "LabelledShard":
        """Label the documents of a shard."""
        marks = pseudo_labels(aligned, labels=self.labels, n=self.n, threshold=self.threshold)
        return LabelledShard(aligned, marks, tiles)


class LabelledShard:
    """The labels of all rankers in one shard, and what they add up to for each query."""

    def __init__(self, aligned: Aligned, marks: Bools, tiles: Tiles) -> None:
        counts = np.concatenate((np.zeros((1, marks.shape[1]), np.int64), np.cumsum(marks, axis=0)))
        per_query = np.diff(counts[aligned.starts], axis=0)
        self._tiles: list[Tiles] = []
        self._taught: list[NDArray[np.intp]] = []
        for k in range(marks.shape[1]):
            taught = np.flatnonzero((per_query[:, k] > 0) & (aligned.query_weights > 0))
            labelled = relabel(tiles, np.ascontiguousarray(marks[:, k]), per_query[:, k])
            self._taught.append(taught)
            self._tiles.append(take(labelled, taught))
        self._weights, self._has_documents = aligned.query_weights, np.diff(aligned.starts) > 0
        self._common, self._moments, self._heights = _sums_by_query(aligned, marks)
        row, self._ranker = np.nonzero(marks)
        self._query = np.searchsorted(aligned.starts, row, side="right") - 1
        self._name = _hashes(aligned, aligned.doc[row])

    @property
    def nbytes(self) -> int:
        """Bytes of memory beside the tiles, whose scores are shared."""
        arrays = (self._common, self._moments, self._heights, self._name, self._query, self._ranker)
        return sum(array.nbytes for array in arrays) + sum(tiles.relevant_scores.nbytes for tiles in self._tiles)

    def labelled(self, teacher: int) -> tuple[Tiles, NDArray[np.intp]]:
        """Return tiles of the queries that have labels of this ranker, and their positions in the shard."""
        return self._tiles[teacher], self._taught[teacher]

    def answer(self, request: Request, chosen: Bools) -> Answer:
        """Return what the labels of the chosen queries add up to, or which documents they name how often."""
        if request.question == _NAMES:
            return self._names(chosen)
        weights = np.where(chosen & self._has_documents, self._weights, 0.0)
        taught = [self._weights[own[chosen[own]]].sum() for own in self._taught]
        return (
            self._common[chosen].sum(axis=0),
            self._heights[chosen].sum(axis=0),
            weighted_sum(self._moments, weights),
            np.array(taught),
            np.array(weights.sum()),
        )

    def _names(self, chosen: Bools) -> Answer:
        own = chosen[self._query]
        names, at = np.unique(self._name[own], return_inverse=True)
        counts = np.zeros((len(names), len(self._tiles)))
        np.add.at(counts, (at, self._ranker[own]), 1.0)
        return names, counts


def _sums_by_query(aligned: Aligned, marks: Bools) -> tuple[Floats, Floats, Floats]:
    """Return, for each query: labels in common (K, K), mean of s s' (K, K), heights of the labelled scores (K).

    A height is a labelled document's score less the query's mean score.
    """
    n, n_rankers = len(aligned.queries), len(aligned.rankers)
    common, moments = np.zeros((n, n_rankers, n_rankers)), np.zeros((n, n_rankers, n_rankers))
    heights = np.zeros((n, n_rankers))
    for q, (first, last) in enumerate(itertools.pairwise(aligned.starts.tolist())):
        if first == last:
            continue
        scores, own = aligned.scores[first:last], marks[first:last].astype(np.float64)
        for k in range(n_rankers):  # sums of one column at a time have one order on every machine
            common[q, k] = (own[:, k : k + 1] * own).sum(axis=0)
            moments[q, k] = (scores[:, k : k + 1] * scores).sum(axis=0) / (last - first)
        heights[q] = (own * (scores - scores.sum(axis=0) / (last - first))).sum(axis=0)
    if not (np.isfinite(moments).all() and np.isfinite(heights).all()):
        raise InputError("scores of a table: too large to be squared. Normalise them (--normalize minmax).")
    return common, moments, heights


def _hashes(aligned: Aligned, docs: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Return 64 bits for each document that tell it by its name."""
    codes, at = np.unique(docs, return_inverse=True)
    digests = (blake2b(aligned.docs[code].encode(), digest_size=8).digest() for code in codes.tolist())
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)[at]


class _Lesson(TableProblem):
    """The smoothed and exact MAP of the queries of a table under the labels of one ranker."""

    def __init__(self, table: TableQueries, queries: Ints, teacher: int, beta: float, total: float) -> None:
        self.table, self.beta, self.smooth_j, self.total = table, beta, False, total
        self.teacher = teacher
        self._marks = None if len(queries) == table.n_queries else table.marks(queries)
        self._exact: dict[bytes, float] = {}


def table_lessons(fuser: CotrainFuser, table: TableQueries, queries: NDArray[np.integer] | None = None) -> Lessons:
    """Return what co-training needs of a table, or of its queries at some positions; judgments are not read."""
    chosen = np.arange(table.n_queries) if queries is None else np.asarray(queries)
    with_documents = chosen[(table.lengths[chosen] > 0) & (table.query_weights[chosen] > 0)]
    if len(with_documents) == 0:
        raise InputError("no query has a document that a ranker returned. Check the runs.")
    marks = None if queries is None else table.marks(chosen)
    counted, named = table.lockstep.ask(
        [
            Request("own", question=_COUNTS, queries=marks),
            Request("own", question=_NAMES, per_query=True, queries=marks),
        ]
    )
    common, heights, moments, taught, total = counted
    names, counts = named
    _, at = np.unique(names, return_inverse=True)
    by_name = np.zeros((int(at.max(initial=-1)) + 1, len(common)))
    np.add.at(by_name, at, counts)
    n_marked = np.maximum(np.diagonal(common), 1.0)
    height = np.maximum(heights / n_marked, 0.0)
    quality = quality_of_marks(np.ascontiguousarray(by_name.T), common, height, len(chosen))
    variances = table.variances[chosen[table.lengths[chosen] > 1]]
    beta = sharpness_for(variances) if fuser.beta == "auto" else check_beta(fuser.beta)
    problems = {
        k: _Lesson(table, chosen, k, beta, float(taught[k])) for k in range(len(common)) if float(taught[k]) > 0.0
    }
    return Lessons(table.table, beta, quality, Moments(moments / float(total), 0), problems)
