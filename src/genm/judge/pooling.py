"""What to judge next: pairs of query and document, the one that could change the answer most first.

| method | order |
|---|---|
| mtc | by what a judgment could change: minimal test collections (Carterette, Allan and Sitaraman 2006) |
| depth | the top of every list, rank by rank, all queries alike: depth-k pooling |
| mtf | move-to-front (Cormack, Palmer and Clarke 1998): each query goes on with its most fruitful list |
| random | at random among all documents of the runs |

Runs are enough. With judgments the order takes them into account, and judged pairs are left out. What a judgment
could change is computed under a model of relevance that is fitted to the judgments so far (`genm.learn.relevance`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from genm._typing import Codes, Ints
from genm.align import UNJUDGED, Aligned, AlignedOrRuns, Depths, align_runs, as_aligned, named_runs
from genm.errors import InputError
from genm.io import Destination, opened
from genm.judge.systems import System, Target, target_of
from genm.learn.relevance import is_judged
from genm.normalizers import Normalize
from genm.records import Note, Qrels, contents, merge_qrels

Method = Literal["mtc", "depth", "mtf", "random"]
METHODS: tuple[str, ...] = get_args(Method)

_NOWHERE = 1 << 40
"""The rank of a document that a list lacks."""


class Pair(NamedTuple):
    """A document to judge for a query."""

    query_id: str
    doc_id: str
    probability: float
    """How likely the document is to be relevant, by the model."""
    usefulness: float
    """How much the judgment could change the answer; what the method mtc sorts by."""


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Pairs to judge, the first one first."""

    pairs: tuple[Pair, ...]
    method: str
    target: tuple[str, ...]
    """The systems that are compared, or "weights"."""
    n_judged: int
    """Judgments that were there already, of documents in the runs."""
    n_unjudged: int
    """Documents of the runs without a judgment, over all queries."""
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        """Say how many pairs, by which method and for what, on one line."""
        return (
            f"<Pool by {self.method} for {' against '.join(self.target)}: {contents(self.notes, pairs=self.pairs)}>"
        )


def pool(
    runs: AlignedOrRuns,
    qrels: Qrels | None = None,
    *,
    compare: Sequence[System] | None = None,
    current: Mapping[str, float] | None = None,
    method: str = "mtc",
    n: int = 50,
    depth: Depths = None,
    normalize: Normalize = "minmax",
    level: int = 1,
    seed: int = 0,
) -> Pool:
    """Return which `n` pairs of query and document to judge next, in this order.

    `compare` names the two systems that the judgments are to tell apart: rankers, "equal", "learned", "current"
    (the weights of `current`), or weights by ranker; without it the judgments are for learning the weights. All
    queries of the runs take part, judged or not. `depth` cuts the lists; documents below it are not pooled.
    """
    if method not in METHODS:
        raise InputError(f"method (--method) {method!r}: expected one of {', '.join(METHODS)}.")
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(f"n (-n) {n!r}: expected a positive integer.")
    aligned = align_all(runs, qrels, depth=depth, normalize=normalize)
    target = target_of(aligned, compare, current=current, level=level)
    rows, notes = next_rows(aligned, target, method, n, level=level, seed=seed), list(aligned.notes)
    relevance = target.relevance(aligned, level=level)
    usefulness = target.usefulness(aligned, relevance, level=level)
    query = np.repeat(np.arange(len(aligned.queries)), np.diff(aligned.starts))
    pairs = tuple(
        Pair(
            aligned.queries[int(query[row])],
            aligned.docs[int(aligned.doc[row])],
            float(relevance.p[row]),
            float(usefulness[row]),
        )
        for row in rows.tolist()
    )
    n_judged = int(relevance.judged.sum())
    if len(pairs) < n:
        text = f"only {len(pairs):,} of the {n:,} pairs that were asked for: the runs hold no further documents."
        notes.append(Note("pool-exhausted", n - len(pairs), text))
    return Pool(pairs, method, target.names, n_judged, len(aligned.doc) - n_judged, tuple(notes))


def write_pool(found: Pool, destination: Destination) -> None:
    """Write the pairs as tab-separated lines with a header, or as JSON lines if the name ends in .jsonl.

    Names ending in .gz or .zst are compressed; `-` is standard output.
    """
    as_json = str(destination).removesuffix(".gz").removesuffix(".zst").endswith(".jsonl")
    with opened(destination) as file:
        if not as_json:
            file.write("\t".join(Pair._fields).encode() + b"\n")
        for pair in found.pairs:
            cells = (pair.query_id, pair.doc_id, f"{pair.probability:.4f}", f"{pair.usefulness:.6g}")
            line = json.dumps(pair._asdict(), ensure_ascii=False) if as_json else "\t".join(cells)
            file.write(line.encode() + b"\n")


def align_all(
    runs: AlignedOrRuns, qrels: Qrels | None, *, depth: Depths = None, normalize: Normalize = "minmax"
) -> Aligned:
    """Return all queries of the runs aligned, with the judgments that there are."""
    if isinstance(runs, Aligned):
        return as_aligned(runs, qrels)
    given = named_runs(runs)
    if qrels is None:
        return align_runs(given, depth=depth, normalize=normalize)
    # align_runs keeps judged queries only; here the others matter as well, so each gets an empty entry
    empty = Qrels.from_dict({query_id: {} for run in given.values() for query_id in run})
    return align_runs(given, merge_qrels(empty, qrels), depth=depth, normalize=normalize)


def next_rows(aligned: Aligned, target: Target, method: str, n: int, *, level: int = 1, seed: int = 0) -> Ints:
    """Return the next `n` rows of the aligned runs to judge, by one of METHODS."""
    open_rows = np.flatnonzero(~is_judged(aligned))
    rng = np.random.default_rng(seed)
    if method == "random":
        return rng.permutation(open_rows)[:n]
    query = np.repeat(np.arange(len(aligned.queries)), np.diff(aligned.starts))
    if method == "mtf":
        return _move_to_front(aligned, target.ranks, query, n, level, rng)
    turn = rng.permutation(len(aligned.queries))[query]
    if method == "depth":
        best = np.min([np.where(ranks > 0, ranks, _NOWHERE) for ranks in target.ranks], axis=0)
        return open_rows[np.lexsort((turn[open_rows], best[open_rows]))][:n]
    usefulness = target.usefulness(aligned, target.relevance(aligned, level=level), level=level)
    return open_rows[np.lexsort((turn[open_rows], -usefulness[open_rows]))][:n]


def _move_to_front(
    aligned: Aligned, lists: Sequence[Ints], query: Ints, n: int, level: int, rng: np.random.Generator
) -> Ints:
    """Return rows by rounds: the queries with the fewest judgments first, each with its most promising list.

    A list's promise falls with every document in a row that was not relevant. Rows that were just chosen count as
    not relevant until their judgment is there.
    """
    grades = aligned.relevance.copy() if aligned.labelled else np.full(len(query), UNJUDGED, np.int32)
    chosen: list[Ints] = []
    while sum(map(len, chosen)) < n:
        rows = _promising(grades, lists, query, len(aligned.queries), level)
        rows = rows[rows >= 0]
        if len(rows) == 0:
            break
        judged = np.bincount(query[grades != UNJUDGED], minlength=len(aligned.queries))[query[rows]]
        rows = rng.permutation(rows[judged == judged.min()])[: n - sum(map(len, chosen))]
        grades[rows] = level - 1
        chosen.append(rows)
    return np.concatenate([*chosen, np.zeros(0, np.int64)]).astype(np.int64)


def _promising(grades: Codes, lists: Sequence[Ints], query: Ints, n_queries: int, level: int) -> Ints:
    """Return, for each query, the first unjudged row of its most promising list; -1 if all are judged."""
    row_of, least = np.full(n_queries, -1), np.full((n_queries, 2), _NOWHERE)
    for ranks in lists:
        held = ranks > 0
        free = held & (grades == UNJUDGED)
        first = np.full(n_queries, _NOWHERE)
        np.minimum.at(first, query[free], ranks[free])
        passed = held & (ranks < first[query])
        last_relevant = np.zeros(n_queries, np.int64)
        found = passed & (grades >= level)
        np.maximum.at(last_relevant, query[found], ranks[found])
        in_vain = first - 1 - last_relevant
        rows = np.flatnonzero(free & (ranks == first[query]))
        at = query[rows]
        better = (in_vain[at] < least[at, 0]) | ((in_vain[at] == least[at, 0]) & (first[at] < least[at, 1]))
        row_of[at[better]] = rows[better]
        least[at[better]] = np.column_stack((in_vain, first))[at[better]]
    return row_of
