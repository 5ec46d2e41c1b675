"""One query's lists to one list, as `Model.fuse` does it, without the tables of ids that many queries need.

The fused scores and the order are those of `Model.fuse`, bit for bit; a property test holds the two together. Ids
are sorted only where the order of rows can change a result: for normalisers that add up a list or count ranks, and
among documents whose fused scores are equal.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from genm._math.fusion import weighted_sum
from genm._math.scaling import scale_lists
from genm._math.sorting import distinct_scores
from genm._typing import Floats, Ints
from genm.align import UNJUDGED, Aligned
from genm.grouping import TEXT
from genm.ids import Ids
from genm.model import Model
from genm.normalizers import kernel_rules
from genm.serve.messages import Columns, RequestError, Rows, check_names, invalid, read_list, repeated

_ORDER_MATTERS = frozenset(("sum", "zscore", "l2", "rank", "reciprocal"))
"""Normalisers that add up a list's scores, or break ties in it: rows must stand by doc id downwards."""

_List: TypeAlias = tuple[Sequence[str], Sequence[float]]
"""One ranker's documents and their scores."""

_NO_IDS = Ids.of(())
_ONE_QUERY = Ids.of(("q",))


@dataclass(frozen=True, slots=True, eq=False)
class QueryScores:
    """One query's documents and their normalised scores, a column per ranker of the model."""

    doc_ids: Sequence[str]
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
        order = np.argsort(-fused, kind="stable" if self.is_sorted else None)
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
        names = self.names(runs, rankers, place)
        lists = self._lists(runs, names, place)
        is_sorted = self._sorts or in_order
        docs, rows = (_number_in_order if is_sorted else _number_as_they_come)([doc_ids for doc_ids, _ in lists])
        columns = [self._column[name] for name in names]
        raw, retrieved = self._table(len(docs), rows, lists, columns)
        if np.count_nonzero(retrieved) != len(rows):
            raise _repeated_in(lists, names, place)
        return QueryScores(docs, is_sorted, raw, retrieved, self.normalize(raw, retrieved, names))

    def normalize(self, raw: Floats, retrieved: NDArray[np.bool_], names: Sequence[str]) -> Floats:
        """Return one query's scores as the model normalises them; rankers that are not named contribute nothing."""
        normalized = scale_lists(raw, retrieved, np.array([0, len(raw)], np.int64), self._rules)
        if len(names) < len(self._column):
            normalized[:, [k for name, k in self._column.items() if name not in names]] = 0.0
        return normalized

    @property
    def needs_order(self) -> bool:
        """Whether a result may depend on the order of rows, or of the documents of a list."""
        return self._sorts or any(normalizer.ties == "given" for normalizer in self.model.normalizers)

    def deepest(self, names: Sequence[str]) -> list[float]:
        """Return how many documents of each ranker's list the model reads."""
        depths = (self.model.depths[self._column[name]] for name in names)
        return [math.inf if depth is None else depth for depth in depths]

    def columns_of(self, names: Sequence[str]) -> Ints:
        """Return the column of each ranker."""
        return np.array([self._column[name] for name in names], np.int64)

    def empty_table(self, n_docs: int) -> tuple[Floats, NDArray[np.bool_]]:
        """Return a table of scores by row and ranker, and which of them are given: none."""
        return np.zeros((n_docs, len(self._column))), np.zeros((n_docs, len(self._column)), np.bool_)

    def join_all(self, queries: Sequence[tuple[Mapping[str, Rows | Columns], str]]) -> list[QueryScores]:
        """Return what `join` gives for the runs of each query, in order and of all rankers; each with its place."""
        docs_of, rows, lists, starts = [], list[NDArray[np.int64]](), list[_List](), [0]
        columns = list(range(len(self._column)))
        for runs, place in queries:
            own = self._lists(runs, self.names(runs, None, place), place)
            docs, own_rows = _number_in_order([doc_ids for doc_ids, _ in own])
            docs_of.append(docs)
            rows.append(own_rows + starts[-1])
            starts.append(starts[-1] + len(docs))
            lists += own
        raw, retrieved = self._table(starts[-1], np.concatenate(rows), lists, columns * len(queries))
        if np.count_nonzero(retrieved) != sum(map(len, rows)):
            for (_, place), number in zip(queries, range(0, len(lists), len(columns)), strict=True):
                own = lists[number : number + len(columns)]
                if any(len(set(doc_ids)) < len(doc_ids) for doc_ids, _ in own):
                    raise _repeated_in(own, self.model.rankers, place)
        normalized = scale_lists(raw, retrieved, np.array(starts, np.int64), self._rules)
        return [
            QueryScores(docs, True, raw[first:last], retrieved[first:last], normalized[first:last])  # noqa: FBT003
            for docs, (first, last) in zip(docs_of, pairwise(starts), strict=True)
        ]

    def _lists(self, runs: Mapping[str, Rows | Columns], names: Sequence[str], place: str) -> list["_List"]:
        """Return the documents and scores of each ranker, as deep as the model reads them."""
        found = []
        for name in names:
            doc_ids, scores = read_list(f"{place}.{name}", runs[name])
            if self.model.normalizers[self._column[name]].ties == "given":
                doc_ids, scores = _in_given_order(doc_ids, scores)
            found.append(_cut(doc_ids, scores, self.model.depths[self._column[name]], f"{place}.{name}"))
        return found

    def _table(
        self, n_docs: int, rows: NDArray[np.int64], lists: Sequence["_List"], columns: Sequence[int]
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the scores by row and ranker, and which of them are given; `columns` names each list's ranker."""
        raw, retrieved = self.empty_table(n_docs)
        sizes = [len(scores) for _, scores in lists]
        cells = rows * len(self._column) + np.repeat(columns, sizes)
        raw.reshape(-1)[cells] = np.fromiter(
            chain.from_iterable(scores for _, scores in lists), np.float64, len(cells)
        )
        retrieved.reshape(-1)[cells] = True
        return raw, retrieved

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

    def names(
        self, runs: Mapping[str, object], rankers: Sequence[str] | None, place: str = "body.runs"
    ) -> list[str]:
        """Return the rankers whose lists are fused, in the model's order; refuses unknown and missing ones."""
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


def _number_in_order(lists: Sequence[Sequence[str]]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different documents of all lists by id downwards, and the number of each list's documents."""
    docs = sorted(set(chain.from_iterable(lists)), reverse=True)
    number = dict(zip(docs, range(len(docs)), strict=True))
    numbers = map(number.__getitem__, chain.from_iterable(lists))
    return docs, np.fromiter(numbers, np.int64, sum(map(len, lists)))


def _number_as_they_come(lists: Sequence[Sequence[str]]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different documents of all lists as they come, and the number of each list's documents."""
    n, first_at = sum(map(len, lists)), dict[str, int]()
    first = np.fromiter(map(first_at.setdefault, chain.from_iterable(lists), range(n)), np.int64, n)
    number = np.cumsum(first == np.arange(n)) - 1
    return list(first_at), number[first]


def _repeated_in(lists: Sequence["_List"], names: Sequence[str], place: str) -> RequestError:
    """Return the refusal of the first list that holds a document twice."""
    name, doc_ids = next(
        (name, doc_ids) for name, (doc_ids, _) in zip(names, lists, strict=True) if len(set(doc_ids)) < len(doc_ids)
    )
    return repeated(f"{place}.{name}", doc_ids)


def _in_given_order(doc_ids: Sequence[str], scores: Sequence[float]) -> _List:
    """Return a list ranked, equal scores in the order of the request and told apart, as `Run.in_given_order`."""
    values = np.array(scores, np.float64)
    order = np.argsort(-values, kind="stable")
    told_apart = distinct_scores(np.array([0, len(values)]), values[order])
    return [doc_ids[i] for i in order.tolist()], told_apart.tolist()


def _cut(doc_ids: Sequence[str], scores: Sequence[float], depth: int | None, place: str) -> _List:
    """Keep a list's first `depth` documents: by score downwards, ties by id downwards."""
    if depth is None or len(doc_ids) <= depth:
        return doc_ids, scores
    if len(set(doc_ids)) < len(doc_ids):
        raise repeated(place, doc_ids)
    pairs = sorted(zip(scores, doc_ids, strict=True), reverse=True)[:depth]
    return [doc_id for _, doc_id in pairs], [score for score, _ in pairs]


def _break_ties(order: NDArray[np.int64], fused: Floats, doc_ids: Sequence[str]) -> None:
    """Put documents with equal scores by id downwards, in place."""
    ranked = fused[order]
    same = ranked[1:] == ranked[:-1]
    if not same.any():
        return
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    for first, last in edges.reshape(-1, 2).tolist():
        group = order[first : last + 1].tolist()
        order[first : last + 1] = sorted(group, key=doc_ids.__getitem__, reverse=True)
