"""Answers that need the documents of a shard: the survey, measures of rankers and of rank fusion, other measures.

They are computed from one block of queries after another, as the shard is read, so that the documents of a shard
never have to be in memory together.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from genm._math.fusion import fused_variances
from genm._math.scaling import rank_lists
from genm._typing import Bools, Codes, Floats
from genm.align import UNJUDGED, Aligned
from genm.evaluate import AlignedEvaluator, parse_measure
from genm.fuse import add_reciprocal_ranks
from genm.scale.evaluation import Answer, Documents, Request, Settings, alike, needs_documents, weighted_sum

ROWS_AT_ONCE = 1 << 16
"""Rows of a block: few enough that memory is used again, many enough that calls cost little."""


class DocumentAnswers:
    """Answers of one shard that are gathered while its blocks are read, in any order."""

    def __init__(self, number: int, documents: Documents, requests: Sequence[Request], settings: Settings) -> None:
        self._number, self._documents, self._level = number, documents, settings.level
        wanted = [r for r, request in enumerate(requests) if needs_documents(request, settings)]
        self._requests = [requests[r] for r in wanted]
        self._places = wanted
        n = len(documents.queries)
        self._groups = alike(self._requests)
        self._selected = [one.selected(number, n) for one in self._requests]
        self._any = [np.logical_or.reduce([self._selected[r] for r in group]) for group in self._groups]
        self._values = np.zeros((len(self._groups), n))
        self._weights, self._variances = np.zeros(n), np.zeros(n)
        self._n_relevant, self._lengths = np.zeros(n, np.int64), np.zeros(n, np.int64)

    def __bool__(self) -> bool:
        """Whether anything is asked that needs documents."""
        return bool(self._requests)

    def see(self, span: tuple[int, int], aligned: Aligned) -> None:
        """Compute what is asked of the queries of one block."""
        own = slice(*span)
        self._weights[own] = aligned.query_weights
        block = _Block(aligned)
        for g, group in enumerate(self._groups):
            request = self._requests[group[0]]
            if request.kind == "survey":
                self._variances[own] = fused_variances(aligned.scores, aligned.starts)
                self._n_relevant[own], self._lengths[own] = aligned.n_relevant(self._level), np.diff(aligned.starts)
            else:
                self._values[g, own] = block.values(request, self._any[g][own])

    def answers(self) -> dict[int, Answer]:
        """Return the answers, by the places of their requests; all blocks have been seen."""
        found: dict[int, Answer] = {}
        for g, group in enumerate(self._groups):
            for r in group:
                request, chosen = self._requests[r], self._selected[r]
                if request.kind == "survey":
                    found[self._places[r]] = self._survey()
                elif request.per_query:
                    found[self._places[r]] = (self._values[g][chosen],)
                else:
                    found[self._places[r]] = (weighted_sum(self._values[g][chosen], self._weights[chosen]),)
        return found

    def _survey(self) -> Answer:
        ids = self._documents.queries
        return self._weights, self._n_relevant, self._lengths, self._variances, ids.text, ids.starts


class _Block:
    """Some queries whose rankings are measured; what several measurements share is made once."""

    def __init__(self, aligned: Aligned) -> None:
        self._aligned = aligned
        self._evaluators: dict[str, AlignedEvaluator] = {}

    def values(self, request: Request, chosen: Bools) -> Floats:
        """Return what is asked of the chosen queries, and any number for the others."""
        found = np.zeros(len(chosen))
        if not chosen.any():
            return found
        if not chosen.all():
            part = _Block(self._aligned.select(np.flatnonzero(chosen)))
            found[chosen] = part.values(request, np.ones(int(chosen.sum()), np.bool_))
            return found
        evaluator = self._evaluator(request.measure)
        if evaluator is not None:
            found[evaluator.position] = self._measured(evaluator, request)[:, 0]
        return found

    def _measured(self, evaluator: AlignedEvaluator, request: Request) -> Floats:
        """Return the values of the evaluated queries."""
        if request.kind == "measure":
            return evaluator.values(np.array(request.weights))
        if request.kind == "rrf":
            return evaluator.values_of_scores(self._rrf)
        return evaluator.values_of_list(self._ranks, self._aligned.rankers.index(request.ranker))

    @cached_property
    def _ranks(self) -> Codes:
        return rank_lists(self._aligned.raw, self._aligned.retrieved, self._aligned.starts)

    @cached_property
    def _rrf(self) -> Floats:
        return add_reciprocal_ranks(self._ranks)

    def _evaluator(self, measure: str) -> AlignedEvaluator | None:
        if measure not in self._evaluators:
            made = evaluator_of(self._aligned, measure)
            if made is None:
                return None
            self._evaluators[measure] = made
        return self._evaluators[measure]


def evaluator_of(aligned: Aligned, measure: str) -> AlignedEvaluator | None:
    """Return what measures rankings of these queries; None if none of them is judged."""
    if (aligned.relevance == UNJUDGED).all() and not len(aligned.unretrieved):
        return None
    return AlignedEvaluator(aligned, [parse_measure(measure)])
