"""A shard of a score table made ready for the kernels of the CPU: tiles, and the answers from them."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from genm._math.average_precision import exact_ap, exact_ap_each, smooth_ap, top_positions
from genm._math.parallel import over_items
from genm._math.tiles import Tiles, build_tiles, join, take
from genm._typing import Bools, Floats
from genm.align import UNJUDGED, Aligned
from genm.errors import InputError
from genm.evaluate import AlignedEvaluator, parse_measure
from genm.scale.documents import ROWS_AT_ONCE, DocumentAnswers, evaluator_of
from genm.scale.evaluation import (
    Answer,
    Documents,
    LabelShard,
    LearnerShard,
    Request,
    Settings,
    alike,
    weighted_sum,
)

See = Callable[[tuple[int, int], Aligned], None]
"""Called with each block of queries while a shard is made ready."""


class ReadyShard(Protocol):
    """A shard made ready: what an engine keeps in memory."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""

    def answer(self, requests: Sequence[Request], others: DocumentAnswers | None) -> list[Answer]:
        """Answer each request; `others` has the answers that need documents."""


class TiledShard:
    """A shard made ready for the kernels of the CPU."""

    def __init__(self, number: int, documents: Documents, settings: Settings, see: See | None = None) -> None:
        self.number, self.n_queries, self._settings = number, len(documents.queries), settings
        self._measured: AlignedEvaluator | None = None
        self._own: LearnerShard | None = None
        self._store(documents, see)
        if settings.measure:
            self._measured = evaluator_of(documents.aligned(), settings.measure)
        if settings.learner is not None:
            self._own = settings.learner.prepare(documents.aligned(), self._all)

    def _store(self, documents: Documents, see: See | None) -> None:
        """Make the scores ready, block by block."""
        marks: dict[int, Bools] = {}

        def work(span: tuple[int, int]) -> Tiles:
            own = documents.aligned(*span)
            if see is not None:
                see(span, own)
            marks[span[0]] = own.relevance != UNJUDGED
            return self._tiles_of(own)

        blocks = documents.blocks(ROWS_AT_ONCE)
        parts = over_items(work, blocks)
        one_scale = len({part.exponent for part in parts}) == 1
        self._all = join(parts) if one_scale else self._tiles_of(documents.aligned())
        self._judged = np.packbits(np.concatenate([marks[first] for first, _ in blocks]))
        self._keep(self._all.n_relevant, self._all.query_weights)
        whole = len(self.kept) == self.n_queries
        self.tiles: Tiles = self._all if whole else take(self._all, self.kept)

    def _tiles_of(self, aligned: Aligned) -> Tiles:
        check_labelled(aligned, self._settings)
        return build_tiles(
            aligned.starts,
            aligned.scores,
            aligned.relevance >= self._settings.level,
            aligned.n_relevant(self._settings.level),
            aligned.query_weights,
            dtype=np.dtype(self._settings.dtype),
        )

    def _keep(self, n_relevant: NDArray[np.int64], query_weights: Floats) -> None:
        """Set which queries are learned from: those with relevant documents and a weight."""
        self.kept = np.flatnonzero((n_relevant > 0) & (query_weights > 0))
        self._query_weights = query_weights

    @property
    def nbytes(self) -> int:
        """Bytes of memory: those of the tiles and, for other measures than average precision, of the scores."""
        tiles = self.tiles
        arrays = (tiles.scores, tiles.position, tiles.low, tiles.high, tiles.sums, self._judged)
        own = 0 if self._own is None else self._own.nbytes
        return sum(array.nbytes for array in arrays) + self._measured_bytes + own

    @property
    def _measured_bytes(self) -> int:
        if self._measured is None:
            return 0
        held = self._measured.aligned
        return held.scores.nbytes + held.raw.nbytes + held.retrieved.nbytes

    def part(self, queries: Bools, teacher: int = -1) -> Tiles:
        """Return the tiles of the selected queries that are learned from, or have labels of a ranker."""
        tiles, kept = self._labelled(teacher)
        chosen = np.flatnonzero(queries[kept])
        return tiles if len(chosen) == len(kept) else take(tiles, chosen)

    def _labelled(self, teacher: int) -> tuple[Tiles, NDArray[np.intp]]:
        if teacher < 0:
            return self.tiles, self.kept
        assert isinstance(self._own, LabelShard), "labels are asked for by the learner that gives them"
        return self._own.labelled(teacher)

    def answer(self, requests: Sequence[Request], others: DocumentAnswers | None) -> list[Answer]:
        """Answer each request. What differs in the selected queries alone is computed once for all of them."""
        found: dict[int, Answer] = {} if others is None else others.answers()
        left = [group for group in alike(requests) if group[0] not in found]
        answers = self._answers([[requests[r] for r in group] for group in left])
        for group, own in zip(left, answers, strict=True):
            found |= zip(group, own, strict=True)
        return [found[r] for r in range(len(requests))]

    def _answers(self, groups: list[list[Request]]) -> list[list[Answer]]:
        """Answer groups of requests; those of a group differ in their selected queries alone."""
        selected = [[one.selected(self.number, self.n_queries) for one in group] for group in groups]
        any_of_them = [np.asarray(np.logical_or.reduce(own), np.bool_) for own in selected]
        exact = self._exact_values([group[0] for group in groups], any_of_them)
        return [
            self._answers_alike(group, selected[g], any_of_them[g], exact.get(g)) for g, group in enumerate(groups)
        ]

    def _exact_values(self, requests: list[Request], queries: list[Bools]) -> dict[int, Floats]:
        """Return the average precision that requests ask for, by their places.

        Those about the same queries are answered together: scores are read from memory once for all weights.
        """
        together: dict[tuple[int, bytes], list[int]] = {}
        for r, request in enumerate(requests):
            if request.kind == "exact" or (request.kind == "smooth" and request.order < 2 and request.with_exact):
                together.setdefault((request.teacher, queries[r].tobytes()), []).append(r)
        found: dict[int, Floats] = {}
        for (teacher, _), own in together.items():
            tiles, weights = self.part(queries[own[0]], teacher), np.array([requests[r].weights for r in own])
            found |= zip(own, exact_ap_each(tiles, weights), strict=True)
        return found

    def _answers_alike(
        self, asked: list[Request], selected: list[Bools], any_of_them: Bools, exact: Floats | None
    ) -> list[Answer]:
        """Answer requests that differ in their selected queries alone; `exact` is their average precision."""
        first = asked[0]
        if first.kind == "own":
            assert self._own is not None, "only the learner of the settings asks its own questions"
            return [self._own.answer(one, chosen) for one, chosen in zip(asked, selected, strict=True)]
        if first.kind == "smooth" and first.order == 2:
            return [self._second_order(one, chosen) for one, chosen in zip(asked, selected, strict=True)]
        if first.kind == "measure":
            at, columns = np.flatnonzero(any_of_them), [self._measure(first, any_of_them)]
        else:
            kept = self._labelled(first.teacher)[1]
            at = kept[any_of_them[kept]]
            columns = [np.zeros(len(at)) if exact is None else exact]
            columns += self._smooth(first, any_of_them) if first.kind == "smooth" else []
        weights = self._query_weights[at]
        answers: list[Answer] = []
        for chosen in selected:
            mine = np.flatnonzero(chosen[at])
            if first.per_query:
                answers.append(tuple(column[mine] for column in columns))
            else:
                answers.append(tuple(weighted_sum(column[mine], weights[mine]) for column in columns))
        return answers

    def _smooth(self, request: Request, queries: Bools) -> list[Floats]:
        """Return smoothed average precision and gradient, as far as asked for, per query that is learned from."""
        tiles, weights = self.part(queries, request.teacher), np.array(request.weights)
        found = smooth_ap(tiles, weights, request.beta, order=request.order, smooth_j=request.smooth_j)
        return [found.value, *([found.gradient] if request.order else [])]

    def _second_order(self, request: Request, queries: Bools) -> Answer:
        tiles, weights = self.part(queries), np.array(request.weights)
        found = smooth_ap(
            tiles, weights, request.beta, order=2, smooth_j=request.smooth_j, total_weight=request.total
        )
        exact = exact_ap(tiles, weights) if request.with_exact else np.zeros(tiles.n_queries)
        sums = (weighted_sum(column, tiles.query_weights) for column in (exact, found.value, found.gradient))
        return (*sums, found.hessian)

    def _measure(self, request: Request, queries: Bools) -> Floats:
        """Return a measure of the weighted sum for the selected queries, learned from or not."""
        weights = np.array(request.weights)
        if request.measure == self._settings.measure:
            values = np.zeros(self.n_queries)
            if self._measured is not None:
                values[self._measured.position] = self._measured.values(weights)[:, 0]
            return np.asarray(values[queries])
        tiles = self._all if queries.all() else take(self._all, np.flatnonzero(queries))
        measure = parse_measure(request.measure)
        if measure.has_smoothed_form:
            return exact_ap(tiles, weights)
        assert measure.cutoff is not None, "needs_documents leaves no other measure to the tiles"
        top = top_positions(tiles, weights, measure.cutoff)
        rows = tiles.rows[:, :1] + top
        judged = (self._judged[rows >> 3] >> (7 - (rows & 7))) & 1
        n_judged = np.where(top >= 0, judged, 0).sum(axis=1)
        return np.asarray(n_judged / np.maximum((top >= 0).sum(axis=1), 1))


def check_labelled(aligned: Aligned, settings: Settings) -> None:
    """Refuse a table without judgments, unless what learns from it reads none."""
    if not aligned.labelled and (settings.learner is None or settings.learner.reads_judgments):
        raise InputError("this table carries no judgments. Give qrels to genm shard.")
