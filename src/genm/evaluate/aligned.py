"""How good a blend of aligned rankers is, without building a run: what the learners ask again and again."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from genm._math.fusion import weighted_sum, weighted_sum_without
from genm._math.hits import Hits, hits_of_ranks, hits_of_scores
from genm._typing import Codes, Floats, Ints
from genm.align import UNJUDGED, Aligned, check_aligned
from genm.align.aligned import per_query
from genm.errors import InputError
from genm.evaluate.evaluation import Evaluation, Judged, plan_measures
from genm.evaluate.measures import parse_measures
from genm.records import Note


def evaluate_aligned(aligned: Aligned, blend: Floats, measures: object) -> Evaluation:
    """Measure a blend of rankers: documents by blended score downwards, ties by doc id downwards.

    `blend` holds one weight for each ranker or one score for each row (where the two counts agree, weights). Values
    are those that `evaluate_run` gives for the run that the blend would make, and so are the notes. To measure
    many blends of the same data keep an `AlignedEvaluator`.
    """
    return AlignedEvaluator(aligned, measures).evaluate(blend)


class AlignedEvaluator:
    """Judgments of aligned data made ready once, to measure many blends."""

    def __init__(self, aligned: Aligned, measures: object) -> None:
        check_aligned(aligned)
        if not aligned.labelled:
            raise InputError("aligned data: expected judgments, found none. Give qrels when aligning the runs.")
        self.aligned = aligned
        self.measures = parse_measures(measures)
        rows = np.flatnonzero(aligned.relevance != UNJUDGED)
        at = np.searchsorted(rows, aligned.starts)
        sizes = np.diff(at) + np.diff(aligned.unretrieved_starts)
        self.position = np.flatnonzero(sizes > 0)
        """Of each evaluated query, its place in `aligned.queries`."""
        if len(self.position) == 0:
            raise InputError(
                f"aligned data: expected at least one judged query, found none among {len(aligned.queries)}. "
                "Check that runs and judgments spell their query ids alike."
            )
        self._starts = np.zeros(len(aligned.queries) + 1, np.int64)
        np.cumsum(sizes, out=self._starts[1:])
        kept = np.append(self.position, len(sizes))  # queries without judgments take up no room
        grades = _merged(self._starts, at, aligned.relevance[rows], aligned.unretrieved)
        self._judged = Judged.of(aligned.queries.take(self.position), self._starts[kept], grades)
        self._judged.check_gains(self.measures)
        self._plan = plan_measures(self.measures)
        if not any(measure.needs_judged_rows for measure in self.measures):
            rows = np.flatnonzero(aligned.relevance > 0)  # where the others stand changes nothing
            at = np.searchsorted(rows, aligned.starts)
        self._rows, self._rows_starts, self._grades = rows, at, aligned.relevance[rows]
        self._depth = np.diff(aligned.starts)[self.position]

    @cached_property
    def _list_lengths(self) -> Ints:
        """Of each ranker, how many documents it returned for each evaluated query."""
        retrieved = self.aligned.retrieved
        if retrieved.all():
            return np.broadcast_to(self._depth, (retrieved.shape[1], len(self._depth)))
        return np.array([per_query(own, self.aligned.starts)[self.position] for own in retrieved.T])

    def evaluate(self, blend: Floats) -> Evaluation:
        """Measure a blend: one weight for each ranker, or one score for each row."""
        hits = self._hits(blend, with_ties=True)
        values = self._judged.values(self._plan, hits, self._depth)
        notes = self._note_queries() + self._judged.note_no_relevant(self.measures)
        notes += self._judged.note_ties(self.measures, hits, self._depth, "blend")
        return Evaluation("", self._judged.queries, self.measures, values, tuple(notes))

    def values(self, blend: Floats) -> Floats:
        """Return the (queries, measures) values alone: the quickest way to compare blends."""
        return self._judged.values(self._plan, self._hits(blend, with_ties=False), self._depth)

    def values_of_scores(self, score: Floats) -> Floats:
        """Return the values of a finite score for each row, also where there are as many rows as rankers."""
        return self._judged.values(self._plan, self._hits_of(score, with_ties=False), self._depth)

    def values_without(self, weights: Floats, ranker: int) -> Floats:
        """Return the values of weights where the documents that only this ranker returned are not retrieved."""
        aligned = self.aligned
        score, n_kept = weighted_sum_without(aligned.scores, aligned.retrieved, aligned.starts, weights, ranker)
        kept = score[self._rows] > -np.inf
        rows = self._rows[kept]
        at = np.searchsorted(rows, aligned.starts)
        hits = hits_of_scores(
            aligned.starts, score, self._starts, at, rows, self._grades[kept], with_ties=False
        )  # fmt: skip
        hits = hits._replace(n_hits=hits.n_hits[self.position])
        return self._judged.values(self._plan, hits, n_kept[self.position])

    def values_of_list(self, ranks: Codes, ranker: int) -> Floats:
        """Return the values of a ranker's own list; `ranks` are those of `rank_lists`, for all rankers."""
        hits = hits_of_ranks(ranks, ranker, self._starts, self._rows_starts, self._rows, self._grades)
        return self._judged.values(
            self._plan, hits._replace(n_hits=hits.n_hits[self.position]), self._list_lengths[ranker]
        )

    def _hits(self, blend: Floats, *, with_ties: bool) -> Hits:
        return self._hits_of(self._scores(np.asarray(blend, np.float64)), with_ties=with_ties)

    def _hits_of(self, score: Floats, *, with_ties: bool) -> Hits:
        hits = hits_of_scores(
            self.aligned.starts,
            score,
            self._starts,
            self._rows_starts,
            self._rows,
            self._grades,
            with_ties=with_ties,
        )
        return hits._replace(n_hits=hits.n_hits[self.position])

    def _scores(self, blend: Floats) -> Floats:
        n_rows, n_rankers = self.aligned.scores.shape
        if blend.shape == (n_rankers,):
            score = weighted_sum(self.aligned.scores, blend)
        elif blend.shape == (n_rows,):
            score = blend
        else:
            raise InputError(
                f"blend: expected {n_rankers} weights or {n_rows} scores, found an array of shape {blend.shape}."
            )
        if not np.isfinite(score).all():
            raise InputError("blend: expected finite scores, found NaN or infinity. Check weights and scores.")
        return score

    def _note_queries(self) -> list[Note]:
        """Say which queries were set aside, and which count 0 because no ranker returned anything."""
        queries, notes = self.aligned.queries, []
        unjudged = np.setdiff1d(np.arange(len(queries)), self.position)
        if len(unjudged):
            told = f"{len(unjudged)} of {len(queries)} queries have no judgments and were set aside"
            first = queries[int(unjudged[0])]
            notes.append(Note("unjudged-query", len(unjudged), f"{told} (first: {first})."))
        empty = np.flatnonzero(self._depth == 0)
        if len(empty):
            told = f"{len(empty)} of {len(self.position)} judged queries have no documents and count 0"
            first = self._judged.queries[int(empty[0])]
            notes.append(Note("missing-zero", len(empty), f"{told} (first: {first})."))
        return notes


def _merged(
    starts: Ints, rows_starts: Ints, in_rows: NDArray[np.int32], unretrieved: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return each query's grades in its rows, then those of judged documents that no ranker returned."""
    grades = np.empty(starts[-1], np.int32)
    places = np.repeat(starts[:-1] - rows_starts[:-1], np.diff(rows_starts)) + np.arange(len(in_rows))
    grades[places] = in_rows
    others = np.ones(len(grades), np.bool_)
    others[places] = False
    grades[others] = unretrieved
    return grades
