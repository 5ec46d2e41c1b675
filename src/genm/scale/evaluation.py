"""What is asked of a score table: requests, and their answers from one shard.

A request names weights and a quantity. Each shard answers with a short vector, such as the weighted sum of the
gradients of its queries. The vectors of all shards are added in a fixed binary tree by shard id (`tree_sum`), so a
result does not depend on the engine, the number of workers or the order in which shards are finished. Only requests
with `per_query` are answered with a number for every query.

`TiledShard` answers on the CPU. Another device takes its place with a class that has `nbytes` and `answer`:
`genm.scale.cuda_shard.CudaShard` answers on a GPU.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from genm._math.average_precision import exact_ap, smooth_ap
from genm._math.fusion import fused_variances
from genm._math.tiles import Tiles, build_tiles, take
from genm._typing import Bools, Floats, Ints
from genm.align import Aligned, select_rankers
from genm.errors import InputError
from genm.evaluate import AlignedEvaluator, evaluate_aligned, parse_measure
from genm.fuse import rule_scores

Kind = Literal["survey", "smooth", "exact", "measure", "ranker", "rrf"]
"""survey: weight, numbers of relevant and of all documents, variance of the fused scores, and id of every query.
smooth: smoothed average precision with derivatives up to `order`, and exact average precision.
exact: average precision; both of the queries that have relevant documents.
measure: any measure of the weighted sum, ranker: of one ranker's own list, rrf: of reciprocal rank fusion."""

Answer = tuple[NDArray[Any], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One question to every shard of a table."""

    kind: Kind
    weights: tuple[float, ...] = ()
    beta: float = 0.0
    order: int = 0
    """Of the derivatives: 0, 1 or 2."""
    smooth_j: bool = False
    total: float = 1.0
    """The weight of all selected queries, which Hessians are divided by."""
    measure: str = ""
    ranker: str = ""
    per_query: bool = False
    """Whether the values of all selected queries are wanted, not their sums."""
    queries: tuple[bytes, ...] | None = None
    """For each shard a bit for every query of it: which are selected; None for all."""

    @property
    def needs_documents(self) -> bool:
        """Whether a shard has to be read: tiles do not say which ranker returned what."""
        return self.kind not in ("smooth", "exact")

    def digest(self) -> str:
        """Return a hash of the request: the key of its answer in a checkpoint."""
        found = hashlib.sha256()
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "weights":
                value = np.array(value).tobytes()
            elif field.name == "queries" and value is not None:
                value = b"".join(hashlib.sha256(bits).digest() for bits in value)
            found.update(f"{field.name}={value!r};".encode())
        return found.hexdigest()

    def for_shards(self, shards: Sequence[int]) -> "Request":
        """Return the request with the selection of these shards alone: what a worker is sent."""
        if self.queries is None:
            return self
        own = set(shards)
        return replace(self, queries=tuple(bits if i in own else b"" for i, bits in enumerate(self.queries)))

    def selected(self, shard: int, n_queries: int) -> Bools:
        """Return which queries of a shard are selected."""
        if self.queries is None:
            return np.ones(n_queries, np.bool_)
        return np.unpackbits(np.frombuffer(self.queries[shard], np.uint8), count=n_queries).astype(np.bool_)


@dataclass(frozen=True, slots=True)
class Settings:
    """How shards are made ready."""

    level: int = 1
    """The lowest relevant grade."""
    dtype: str = "float64"
    """Of the scores in memory; float32 takes half the memory and rounds the normalised scores."""
    measure: str = ""
    """A measure that learning asks for again and again, other than average precision: its data stay in memory."""
    device: str = "cpu"
    """What evaluates average precision: "cpu", or a GPU as "cuda" or "cuda:NUMBER"."""


class ReadyShard(Protocol):
    """A shard made ready: what an engine keeps in memory."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""

    def answer(self, requests: Sequence[Request], aligned: Aligned | None) -> list[Answer]:
        """Answer each request; `aligned` is the shard itself where a request `needs_documents`."""


class TiledShard:
    """A shard made ready for the kernels of the CPU."""

    def __init__(self, number: int, aligned: Aligned, settings: Settings) -> None:
        if not aligned.labelled:
            raise InputError("this table carries no judgments. Give qrels to genm shard.")
        self.number, self.n_queries = number, len(aligned.queries)
        n_relevant = aligned.n_relevant(settings.level)
        self.kept = np.flatnonzero((n_relevant > 0) & (aligned.query_weights > 0))
        self.query_weights: Floats = aligned.query_weights[self.kept]
        self._level = settings.level
        self._store(aligned, n_relevant, settings)
        self._measured: tuple[str, AlignedEvaluator] | None = None
        if settings.measure and len(self.kept):
            own = aligned.select(self.kept)
            self._measured = settings.measure, AlignedEvaluator(own, [parse_measure(settings.measure)])

    def _store(self, aligned: Aligned, n_relevant: Ints, settings: Settings) -> None:
        """Make the scores ready."""
        tiles = build_tiles(
            aligned.starts,
            aligned.scores,
            aligned.relevance >= settings.level,
            n_relevant,
            aligned.query_weights,
            dtype=np.dtype(settings.dtype),
        )
        self.tiles: Tiles = take(tiles, self.kept) if len(self.kept) < self.n_queries else tiles

    @property
    def nbytes(self) -> int:
        """Bytes of memory: those of the tiles and, for other measures than average precision, of the scores."""
        arrays = (self.tiles.scores, self.tiles.position, self.tiles.low, self.tiles.high)
        return sum(array.nbytes for array in arrays) + self._measured_bytes

    @property
    def _measured_bytes(self) -> int:
        if self._measured is None:
            return 0
        held = self._measured[1].aligned
        return held.scores.nbytes + held.raw.nbytes + held.retrieved.nbytes

    def part(self, queries: Bools) -> Tiles:
        """Return the tiles of the selected queries that have relevant documents."""
        chosen = np.flatnonzero(queries[self.kept])
        return self.tiles if len(chosen) == len(self.kept) else take(self.tiles, chosen)

    def answer(self, requests: Sequence[Request], aligned: Aligned | None) -> list[Answer]:
        """Answer each request. What differs in the selected queries alone is computed once for all of them."""
        found: list[Answer | None] = [None] * len(requests)
        for together in _alike(requests):
            asked = [requests[r] for r in together]
            for r, one in zip(together, self._answers(asked, aligned), strict=True):
                found[r] = one
        return [one for one in found if one is not None]

    def _answers(self, asked: list[Request], aligned: Aligned | None) -> list[Answer]:
        """Answer requests that differ in their selected queries alone."""
        first = asked[0]
        if first.kind == "survey":
            return [_survey(_documents(aligned), self._level)] * len(asked)
        selected = [one.selected(self.number, self.n_queries) for one in asked]
        if first.kind == "smooth" and first.order == 2:
            return [self._second_order(one, chosen) for one, chosen in zip(asked, selected, strict=True)]
        any_of_them = np.logical_or.reduce(selected)
        if first.kind in ("smooth", "exact") or self._is_measured(first):
            own = any_of_them[self.kept]
            at, columns = self.kept[own], self._columns(first, any_of_them)
        else:
            at, columns = np.flatnonzero(any_of_them), [_measured(_documents(aligned), first, any_of_them)]
        weights = self._weights_of(at, aligned)
        answers: list[Answer] = []
        for chosen in selected:
            mine = np.flatnonzero(chosen[at])
            if first.per_query:
                answers.append(tuple(column[mine] for column in columns))
            else:
                answers.append(tuple(weighted_sum(column[mine], weights[mine]) for column in columns))
        return answers

    def _weights_of(self, at: NDArray[np.intp], aligned: Aligned | None) -> Floats:
        if aligned is not None:
            return np.asarray(aligned.query_weights[at])
        return np.asarray(self.query_weights[np.searchsorted(self.kept, at)])

    def _columns(self, request: Request, queries: Bools) -> list[Floats]:
        """Return what is asked for, per query that has relevant documents."""
        tiles, weights = self.part(queries), np.array(request.weights)
        if request.kind == "measure":
            assert self._measured is not None
            own = queries[self.kept]
            return [self._measured[1].values(weights)[own, 0] if len(self.kept) else np.zeros(0)]
        exact = exact_ap(tiles, weights)
        if request.kind == "exact":
            return [exact]
        found = smooth_ap(tiles, weights, request.beta, order=request.order, smooth_j=request.smooth_j)
        return [exact, found.value, *([found.gradient] if request.order else [])]

    def _second_order(self, request: Request, queries: Bools) -> Answer:
        tiles, weights = self.part(queries), np.array(request.weights)
        found = smooth_ap(
            tiles, weights, request.beta, order=2, smooth_j=request.smooth_j, total_weight=request.total
        )
        exact = exact_ap(tiles, weights)
        sums = (weighted_sum(column, tiles.query_weights) for column in (exact, found.value, found.gradient))
        return (*sums, found.hessian)

    def _is_measured(self, request: Request) -> bool:
        """Whether the measure's data are in memory: those of the queries that have relevant documents."""
        return request.kind == "measure" and self._measured is not None and request.measure == self._measured[0]


def _alike(requests: Sequence[Request]) -> list[list[int]]:
    """Return the places of requests that differ in their selected queries alone, group by group."""
    groups: dict[Request, list[int]] = {}
    for r, request in enumerate(requests):
        groups.setdefault(replace(request, queries=None), []).append(r)
    return list(groups.values())


def weighted_sum(column: Floats, weights: Floats) -> Floats:
    """Return the sum over the queries (first axis) of weight times value."""
    return np.asarray((weights.reshape(-1, *([1] * (column.ndim - 1))) * column).sum(axis=0))


def _documents(aligned: Aligned | None) -> Aligned:
    assert aligned is not None, "the engine reads a shard for requests that need its documents"
    return aligned


def _survey(aligned: Aligned, level: int) -> Answer:
    variances = fused_variances(aligned.scores, aligned.starts)
    lengths, ids = np.diff(aligned.starts), aligned.queries
    return aligned.query_weights, aligned.n_relevant(level), lengths, variances, ids.text, ids.starts


def _measured(aligned: Aligned, request: Request, queries: Bools) -> Floats:
    """Return a measure of the selected queries."""
    own = aligned if queries.all() else aligned.select(np.flatnonzero(queries))
    if len(own.queries) == 0:
        return np.zeros(0)
    measure = parse_measure(request.measure)
    blend = np.array(request.weights)
    if request.kind == "rrf":
        blend = rule_scores(own, "rrf")
    elif request.kind == "ranker":
        own = select_rankers(own, [request.ranker])
        if len(own.doc) == 0:
            return np.zeros(len(own.queries))
        blend = np.ascontiguousarray(own.raw[:, 0])
    else:
        pass  # the weighted sum
    return np.asarray(evaluate_aligned(own, blend, [measure]).values[:, 0])


def tree_sum(vectors: Sequence[Floats]) -> Floats:
    """Return the sum of the shards' vectors: neighbours are added first, then the sums of neighbours, and so on.

    The order depends on the number of shards alone.
    """
    level = list(vectors)
    while len(level) > 1:
        pairs = [level[i] + level[i + 1] for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(level) - len(level) % 2 :]
    return np.asarray(level[0])


def combine(request: Request, answers: Sequence[Answer]) -> Answer:
    """Return the answer of the whole table, given those of all shards in the order of their ids."""
    parts = zip(*answers, strict=True)
    if request.kind == "survey":
        *numbers, texts, starts = (list(part) for part in parts)
        ends = np.cumsum([0, *(len(text) for text in texts)])
        joined = [starts[0][:1]] + [own[1:] + end for own, end in zip(starts, ends, strict=False)]
        return (*map(np.concatenate, numbers), np.concatenate(texts), np.concatenate(joined))
    if request.per_query:
        return tuple(np.concatenate(part) for part in parts)
    return tuple(tree_sum(part) for part in parts)
