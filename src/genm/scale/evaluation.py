"""What is asked of a score table: requests, and how the answers of its shards are put together.

A request names weights and a quantity. Each shard answers with a short vector, such as the weighted sum of the
gradients of its queries. The vectors of all shards are added in a fixed binary tree by shard id (`tree_sum`), so a
result does not depend on the engine, the number of workers or the order in which shards are finished. Only requests
with `per_query` are answered with a number for every query.

`genm.scale.tiled_shard` answers on the CPU, `genm.scale.cuda_shard` on a GPU, and `genm.scale.documents` what needs
the documents themselves.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from genm._math.tiles import Tiles
from genm._typing import Bools, Floats
from genm.align import Aligned
from genm.evaluate import parse_measure
from genm.ids import Ids

Kind = Literal["survey", "smooth", "exact", "measure", "ranker", "rrf", "own"]
"""survey: weight, numbers of relevant and of all documents, variance of the fused scores, and id of every query.
smooth: smoothed average precision with derivatives up to `order`, and exact average precision.
exact: average precision; both of the queries that have relevant documents.
measure: any measure of the weighted sum, ranker: of one ranker's own list, rrf: of reciprocal rank fusion.
own: what the learner of the settings answers itself."""

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
    with_exact: bool = True
    """Whether exact average precision is wanted beside the smoothed one; 0 may stand for it otherwise."""
    total: float = 1.0
    """The weight of all selected queries, which Hessians are divided by."""
    measure: str = ""
    ranker: str = ""
    per_query: bool = False
    """Whether the values of all selected queries are wanted, not their sums: shards' answers are joined."""
    teacher: int = -1
    """The ranker whose labels count instead of judgments, where the learner of the settings gives labels."""
    question: str = ""
    """What an `own` request asks."""
    numbers: tuple[float, ...] = ()
    """What else an `own` request depends on."""
    queries: tuple[bytes, ...] | None = None
    """For each shard a bit for every query of it: which are selected; None for all."""

    def digest(self) -> str:
        """Return a hash of the request: the key of its answer in a checkpoint."""
        found = hashlib.sha256()
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("weights", "numbers"):
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

    def selects_from(self, shard: int) -> bool:
        """Whether any query of a shard is selected; `own` requests know themselves what nothing is."""
        return self.queries is None or self.kind == "own" or any(self.queries[shard])

    def nothing(self) -> Answer:
        """Return the answer of a shard without a selected query; of any but a survey."""
        n_rankers, counts = len(self.weights), (0,) if self.per_query else ()
        shapes: list[tuple[int, ...]] = [counts]
        if self.kind == "smooth":
            shapes += [counts, (*counts, n_rankers), (n_rankers, n_rankers)][: self.order + 1]
        return tuple(np.zeros(shape) for shape in shapes)

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
    learner: "ShardLearner | None" = None
    """What a learner keeps of a shard beside its tiles."""


def needs_documents(request: Request, settings: Settings) -> bool:
    """Whether a shard has to be read for a request: what is kept in memory does not say who returned what."""
    if request.kind in ("smooth", "exact", "own") or (
        request.kind == "measure" and request.measure == settings.measure
    ):
        return False
    return request.kind != "measure" or settings.device != "cpu" or not tiles_tell(request.measure, settings.level)


def tiles_tell(measure: str, level: int) -> bool:
    """Whether tiles tell a measure of the weighted sum: average precision at this level, and what is judged."""
    parsed = parse_measure(measure)
    if parsed.facts.gains == "judged":
        return parsed.cutoff is not None
    return parsed.has_smoothed_form and parsed.rel == level


class LearnerShard(Protocol):
    """What a learner keeps of a shard."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""

    def answer(self, request: Request, chosen: Bools) -> Answer:
        """Answer an `own` request about the chosen queries."""


@runtime_checkable
class LabelShard(LearnerShard, Protocol):
    """What a learner keeps of a shard whose documents the rankers label."""

    def labelled(self, teacher: int) -> tuple[Tiles, NDArray[np.intp]]:
        """Return tiles of the queries that have labels of this ranker, and their positions in the shard."""


class ShardLearner(Protocol):
    """How a learner prepares a shard for questions of its own. It is sent to workers, and compared by value."""

    @property
    def reads_doc_ids(self) -> bool:
        """Whether `prepare` needs the names of documents."""

    @property
    def reads_judgments(self) -> bool:
        """Whether it learns from judgments."""

    def prepare(self, aligned: Aligned, tiles: Tiles) -> LearnerShard:
        """Return what to keep of all queries of a shard, whose tiles are made already."""


class Documents(Protocol):
    """The documents of a shard, of any of its queries: `genm.scale.table.ShardColumns`, or any object like it."""

    @property
    def queries(self) -> Ids:
        """The ids of the queries."""

    def blocks(self, n_rows: int) -> list[tuple[int, int]]:
        """Return consecutive ranges of queries with at most so many rows each, and at least one query."""

    def aligned(self, first: int = 0, last: int | None = None) -> Aligned:
        """Return the queries first:last, normalised; all of them by default."""


def alike(requests: Sequence[Request]) -> list[list[int]]:
    """Return the places of requests that differ in their selected queries alone, group by group."""
    groups: dict[Request, list[int]] = {}
    for r, request in enumerate(requests):
        groups.setdefault(replace(request, queries=None), []).append(r)
    return list(groups.values())


def weighted_sum(column: Floats, weights: Floats) -> Floats:
    """Return the sum over the queries (first axis) of weight times value."""
    return np.asarray((weights.reshape(-1, *([1] * (column.ndim - 1))) * column).sum(axis=0))


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
