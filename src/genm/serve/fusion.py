"""One query's lists to one list, as `Model.fuse` does it, without the tables of ids that many queries need.

The fused scores and the order are those of `Model.fuse`, bit for bit; a property test holds the two together. Ids
are sorted only where the order of rows can change a result: for normalisers that add up a list or count ranks, and
among documents whose fused scores are equal.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from genm._math.fusion import weighted_sum
from genm._math.scaling import scale_lists
from genm._math.sorting import distinct_scores
from genm._typing import Floats
from genm.align import UNJUDGED, Aligned
from genm.grouping import TEXT
from genm.ids import Ids
from genm.model import Model
from genm.normalizers import kernel_rules
from genm.serve.messages import Columns, Rows, check_names, invalid, read_list, repeated

_ORDER_MATTERS = frozenset(("sum", "zscore", "l2", "rank", "reciprocal"))
"""Normalisers that add up a list's scores, or break ties in it: rows must stand by doc id downwards."""

_NO_IDS = Ids.of(())
_ONE_QUERY = Ids.of(("q",))


@dataclass(frozen=True, slots=True, eq=False)
class QueryScores:
    """One query's documents and their normalised scores, a column per ranker of the model."""

    doc_ids: list[str]
    is_sorted: bool
    """Whether the documents stand by id downwards."""
    raw: NDArray[np.float64]
    retrieved: NDArray[np.bool_]
    scores: NDArray[np.float64]

    def fuse(self, weights: Floats, top: int | None = None) -> tuple[NDArray[np.int64], Floats]:
        """Return the rows in ranking order, the first `top` of them, and the fused scores of all rows."""
        fused = weighted_sum(self.scores, weights)
        if not np.isfinite(fused).all():
            raise invalid(
                "body.runs",
                "scores that can be added up in double precision",
                "larger ones",
                "Normalise them, or scale the weights down.",
            )
        order = np.argsort(-fused, kind="stable")
        if not self.is_sorted:
            _break_ties(order, fused, self.doc_ids)
        return order[:top], fused

    def doc_ids_of(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the documents of some rows."""
        return [self.doc_ids[row] for row in rows.tolist()]


class Fusion:
    """Fuses one query at a time under a model's rules."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._column = {name: k for k, name in enumerate(model.rankers)}
        self._rules = kernel_rules(model.normalizers)
        self._sorts = any(normalizer.kind in _ORDER_MATTERS for normalizer in model.normalizers)

    def join(
        self,
        runs: Mapping[str, Rows | Columns],
        rankers: Sequence[str] | None = None,
        *,
        place: str = "body.runs",
        in_order: bool = False,
    ) -> QueryScores:
        """Return the documents of all lists and their normalised scores; a ranker left out contributes nothing.

        `in_order` sorts the documents by id downwards even where no result depends on it.
        """
        names = self._names(runs, rankers, place)
        lists = []
        for name in names:
            doc_ids, scores = read_list(f"{place}.{name}", runs[name])
            if self.model.normalizers[self._column[name]].ties == "given":
                doc_ids, scores = _in_given_order(doc_ids, scores)
            depth = self.model.depths[self._column[name]]
            lists.append(_cut(doc_ids, scores, depth, f"{place}.{name}"))
        is_sorted = self._sorts or in_order
        docs, rows_of = _number_documents([doc_ids for doc_ids, _ in lists], in_order=is_sorted)
        raw = np.zeros((len(docs), len(self._column)))
        retrieved = np.zeros(raw.shape, np.bool_)
        for name, (doc_ids, scores), rows in zip(names, lists, rows_of, strict=True):
            k = self._column[name]
            raw[rows, k] = scores
            retrieved[rows, k] = True
            if np.count_nonzero(retrieved[:, k]) != len(doc_ids):
                raise repeated(f"{place}.{name}", doc_ids)
        starts = np.array([0, len(docs)], np.int64)
        normalized = scale_lists(raw, retrieved, starts, self._rules)
        absent = [k for name, k in self._column.items() if name not in names]
        normalized[:, absent] = 0.0
        return QueryScores(docs, is_sorted, raw, retrieved, normalized)

    def group_of(self, group: str | None, text: str | None, columns: Mapping[str, str] | None) -> str | None:
        """Return the query's group if the model has weights for it, given or found by the model's rules."""
        groups = self.model.groups
        if groups is None:
            return None
        known = {**(columns or {}), **({} if text is None else {TEXT: text})}
        found = group if group is not None else groups.grouping.group_of(known)
        return found if found in groups.weights else None

    def gated_weights(self, query: QueryScores, text: str | None, columns: Mapping[str, str] | None) -> Floats:
        """Return the weights that the model's gate gives a query."""
        assert self.model.gate is not None
        known = {**(columns or {}), **({} if text is None else {TEXT: text})}
        weights, _ = self.model.gate.weights(self.aligned(query, {}), {_ONE_QUERY[0]: known})
        return np.asarray(weights[0])

    def aligned(self, query: QueryScores, relevance: Mapping[str, int], weight: float = 1.0) -> Aligned:
        """Return the query as the learners take it: with judgments, and without the ids that they never read."""
        row_of = {doc_id: row for row, doc_id in enumerate(query.doc_ids)}
        grades = np.full(len(query.doc_ids), UNJUDGED)
        left = []
        for doc_id, grade in relevance.items():
            row = row_of.get(doc_id)
            if row is None:
                left.append(grade)
            else:
                grades[row] = grade
        return Aligned(
            rankers=self.model.rankers,
            queries=_ONE_QUERY,
            docs=_NO_IDS,
            starts=np.array([0, len(query.doc_ids)], np.int64),
            doc=np.arange(len(query.doc_ids), dtype=np.int32),
            raw=query.raw,
            retrieved=query.retrieved,
            scores=query.scores,
            normalizers=self.model.normalizers,
            depths=self.model.depths,
            labelled=True,
            relevance=grades,
            unretrieved_starts=np.array([0, len(left)], np.int64),
            unretrieved=np.array(sorted(left, reverse=True), np.int32),
            query_weights=np.array([weight]),
        )

    def _names(self, runs: Mapping[str, Rows | Columns], rankers: Sequence[str] | None, place: str) -> list[str]:
        known = self.model.rankers
        check_names(place, runs, known)
        if rankers is not None:
            check_names("body.rankers", list(rankers), known)
            if not rankers or len(set(rankers)) < len(rankers):
                raise invalid("body.rankers", "different rankers, at least one", f"{rankers!r:.80}", "Correct it.")
        wanted = known if rankers is None else rankers
        missing = [name for name in wanted if name not in runs]
        if missing:
            raise invalid(
                place,
                f"a list of each of {', '.join(wanted)}",
                f"none of {', '.join(missing)}",
                "A fuse request may name some in `rankers`; feedback needs all, lest a missing list count as bad.",
            )
        return [name for name in known if name in wanted]


def _number_documents(lists: list[list[str]], *, in_order: bool) -> tuple[list[str], list[NDArray[np.int64]]]:
    """Return the different documents of all lists, and for each list the numbers of its documents."""
    number: dict[str, int]
    if in_order:
        docs = sorted(set(chain.from_iterable(lists)), reverse=True)
        number = dict(zip(docs, range(len(docs)), strict=True))
    else:
        number = defaultdict(count().__next__)  # a new document takes the next number
    rows = [np.fromiter(map(number.__getitem__, doc_ids), np.int64, len(doc_ids)) for doc_ids in lists]
    return list(number), rows


def _in_given_order(doc_ids: list[str], scores: list[float]) -> tuple[list[str], list[float]]:
    """Return a list ranked, equal scores in the order of the request and told apart, as `Run.in_given_order`."""
    values = np.array(scores, np.float64)
    order = np.argsort(-values, kind="stable")
    told_apart = distinct_scores(np.array([0, len(values)]), values[order])
    return [doc_ids[i] for i in order.tolist()], told_apart.tolist()


def _cut(doc_ids: list[str], scores: list[float], depth: int | None, place: str) -> tuple[list[str], list[float]]:
    """Keep a list's first `depth` documents: by score downwards, ties by id downwards."""
    if depth is None or len(doc_ids) <= depth:
        return doc_ids, scores
    if len(set(doc_ids)) < len(doc_ids):
        raise repeated(place, doc_ids)
    pairs = sorted(zip(scores, doc_ids, strict=True), reverse=True)[:depth]
    return [doc_id for _, doc_id in pairs], [score for score, _ in pairs]


def _break_ties(order: NDArray[np.int64], fused: Floats, doc_ids: list[str]) -> None:
    """Put documents with equal scores by id downwards, in place."""
    ranked = fused[order]
    same = ranked[1:] == ranked[:-1]
    if not same.any():
        return
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    for first, last in edges.reshape(-1, 2).tolist():
        group = order[first : last + 1].tolist()
        order[first : last + 1] = sorted(group, key=doc_ids.__getitem__, reverse=True)
