"""Align K runs, and judgments if given, on the same queries and documents."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from genm._math import alignment
from genm._math.parallel import over_ranges
from genm._math.scaling import scale_lists
from genm.align.aligned import UNJUDGED, Aligned, grouped_grades, offsets
from genm.errors import InputError
from genm.ids import Ids, find, unite
from genm.normalizers import Normalize, kernel_rules, normalizers_for, normalizers_of, per_ranker
from genm.progress import Progress, silent
from genm.records import Note, Qrels, RowsByQuery, Run, check_kind

T = TypeVar("T", bound=np.generic)

Runs: TypeAlias = Mapping[str, Run] | Sequence[Run]
"""Runs by ranker name, or a list of runs, which have names."""
AlignedOrRuns: TypeAlias = Aligned | Runs
"""The input of every function that works on aligned runs; runs are aligned first."""
Depths: TypeAlias = int | Mapping[str, int | None] | Sequence[int | None] | None
"""How many documents of each list to use: for all rankers, or for each by name or in order; None for all."""

_TASK = "aligning"
_STEPS = 5
_BLOCK = 1 << 15  # rows of some queries that are worked on together


def align_runs(
    runs: Runs,
    qrels: Qrels | None = None,
    *,
    normalize: Normalize = "minmax",
    depth: Depths = None,
    query_weights: Mapping[str, float] | None = None,
    progress: Progress = silent,
) -> Aligned:
    """Return the runs aligned: per query the union of their documents, a column of scores per ranker.

    With judgments, the queries are the judged ones, in the order of the judgments. Unjudged queries of the runs are
    skipped; judged queries that a run lacks are kept without its scores; notes count both. Without judgments, the
    queries are those of the runs, in order of first appearance.

    `normalize` (a kind, a name in ENGINES, or a Normalizer) and `depth` (how many documents of each list to use)
    apply to all rankers, or are given per ranker by name or in order. Queries that `query_weights` does not list
    have weight 1.
    """
    given = named_runs(runs)
    if qrels is not None:
        check_kind("qrels", qrels, Qrels, "Read them first, by genm.read_qrels.")
    rankers = tuple(given)
    rules = normalizers_of(normalize, rankers)  # refuses bad ones before the work begins
    given = {
        name: run.in_given_order() if rule.ties == "given" else run
        for (name, run), rule in zip(given.items(), rules, strict=True)
    }
    depths = depths_of(depth, rankers)
    progress(_TASK, 0, _STEPS)
    queries, places, notes = _queries(given, qrels)
    weights = weights_of_queries(query_weights, queries, notes)
    docs, codes = unite([r.docs for r in given.values()] + ([] if qrels is None else [qrels.docs]))
    progress(_TASK, 1, _STEPS)
    lists = [
        _list(run, code, place, len(queries), depth)
        for run, code, place, depth in zip(given.values(), codes, places, depths, strict=False)
    ]
    if qrels is not None:
        lists.append(_list(qrels, codes[-1], np.arange(len(queries)), len(queries), None))
    joined = _join(lists, len(given), len(docs))
    progress(_TASK, 3, _STEPS)
    raw = np.zeros((len(joined.doc), len(given)))
    retrieved = np.zeros(raw.shape, np.bool_)
    _place(joined, lists, [run.score for run in given.values()], raw, retrieved)
    relevance, unretrieved_starts, unretrieved, probability = _grades(joined, qrels, len(queries))
    progress(_TASK, 4, _STEPS)
    normalizers = normalizers_for(normalize, rankers, raw, retrieved)
    scores = scale_lists(raw, retrieved, joined.starts, kernel_rules(normalizers))
    progress(_TASK, _STEPS, _STEPS)
    return Aligned(
        rankers=rankers,
        queries=queries,
        docs=docs,
        starts=joined.starts,
        doc=joined.doc,
        raw=raw,
        retrieved=retrieved,
        scores=scores,
        normalizers=normalizers,
        depths=depths,
        labelled=qrels is not None,
        relevance=relevance,
        unretrieved_starts=unretrieved_starts,
        unretrieved=unretrieved,
        query_weights=weights,
        notes=tuple(notes),
        probability=probability,
    )


def as_aligned(
    runs: AlignedOrRuns,
    qrels: Qrels | None = None,
    *,
    normalize: Normalize | None = None,
    depth: Depths = None,
) -> Aligned:
    """Return aligned runs unchanged; align runs with the judgments, by default on "minmax" scores.

    Aligned runs already have judgments and rules, so passing others with them is an error.
    """
    if not isinstance(runs, Aligned):
        return align_runs(runs, qrels, normalize="minmax" if normalize is None else normalize, depth=depth)
    for name, value in (("qrels", qrels), ("normalize", normalize), ("depth", depth)):
        if value is not None:
            raise InputError(
                f"{name}: expected None with runs that are aligned already; found {type(value).__name__}. "
                f"Give it to genm.align_runs, or pass the runs themselves."
            )
    return runs


@dataclass(frozen=True, slots=True, eq=False)
class _List:
    """The documents of one run (or of the judgments): rows by its queries, and their positions in the union."""

    starts: NDArray[np.int64]
    doc: NDArray[np.int32]
    code: NDArray[np.int32]
    own: NDArray[np.int64]
    """The list's own number of each common query, or -1."""
    depth: int | None

    def lengths(self) -> NDArray[np.int64]:
        """Return how many documents the list has for each common query."""
        lengths = np.append(np.diff(self.starts), 0)[self.own]  # -1 finds the 0 at the end
        return lengths if self.depth is None else np.minimum(lengths, self.depth)


def _list(
    of: Run | Qrels, code: NDArray[np.int32], place: NDArray[np.int64], n_queries: int, depth: int | None
) -> _List:
    starts, doc = _plain(of.starts, np.int64), _plain(of.doc, np.int32)
    own, known = np.full(n_queries, -1), np.flatnonzero(place >= 0)
    own[place[known]] = known
    return _List(starts, doc, _plain(code, np.int32), own, depth)


def _plain(array: NDArray[T], dtype: type[T]) -> NDArray[T]:
    """Return the array as kernels expect it; they are compiled once, for contiguous writable arrays."""
    return np.require(array, dtype, ("C", "W"))


@dataclass(frozen=True, slots=True, eq=False)
class _Joined:
    starts: NDArray[np.int64]
    doc: NDArray[np.int32]
    at: NDArray[np.int64]
    after: NDArray[np.int64]
    entries: NDArray[np.int32]
    """Row inside its query of every document of every list, list l of query q at at[l, q]:after[l, q]."""


def _join(lists: Sequence[_List], n_rankers: int, n_docs: int) -> _Joined:
    lengths = np.stack([one.lengths() for one in lists], axis=1)
    ends = np.cumsum(lengths.ravel()).reshape(lengths.shape)
    after = np.ascontiguousarray(ends.T)
    at = after - lengths.T
    bounds, n_queries = offsets(lengths.sum(axis=1)), len(lengths)
    judged = np.ascontiguousarray(at[n_rankers]) if len(lists) > n_rankers else bounds[1:].copy()
    entries = np.empty(bounds[-1], np.int32)
    codes = np.empty_like(entries)
    n_rows, n_left = np.zeros(n_queries, np.int64), np.zeros(n_queries, np.int64)

    def match(low: int, high: int) -> None:
        for number, one in enumerate(lists):
            alignment.enter_codes(
                one.starts, one.doc, one.code, one.own, at[number], after[number], low, high, entries
            )
        alignment.match_entries(bounds, judged, n_docs, low, high, entries, codes, n_rows, n_left)

    _over_blocks(match, bounds)
    starts = offsets(n_rows)
    doc = np.empty(starts[-1], np.int32)
    cost = np.diff(bounds)
    over_ranges(lambda low, high: alignment.place_codes(bounds, codes, starts, low, high, doc), cost)
    return _Joined(starts, doc, at, after, entries)


def _over_blocks(work: Callable[[int, int], None], starts: NDArray[np.int64]) -> None:
    """Call `work(low, high)` over ranges of queries with so few rows that they stay in a core's cache."""
    cuts = np.unique(np.searchsorted(starts, np.arange(0, starts[-1] + _BLOCK, _BLOCK)))
    cuts[-1] = len(starts) - 1

    def blocks(first: int, last: int) -> None:
        for low, high in itertools.pairwise(cuts[first : last + 1].tolist()):
            work(low, high)

    over_ranges(blocks, np.diff(starts[cuts]))


def _place(
    joined: _Joined,
    lists: Sequence[_List],
    scores: Sequence[NDArray[np.float64]],
    raw: NDArray[np.float64],
    retrieved: NDArray[np.bool_],
) -> None:
    """Write each ranker's scores into its column, all columns of some queries before the next ones."""
    values = [_plain(score, np.float64) for score in scores]

    def place(low: int, high: int) -> None:
        for k, (one, score) in enumerate(zip(lists, values, strict=False)):
            alignment.place_scores(
                one.starts, score, one.own, joined.at[k], joined.after[k], joined.entries, joined.starts, k,
                low, high, raw, retrieved,
            )  # fmt: skip

    _over_blocks(place, joined.starts)


def _grades(
    joined: _Joined, qrels: Qrels | None, n_queries: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64] | None]:
    """Return the rows' grades, where the grades of documents in no run start, those grades, and probabilities."""
    relevance = np.full(len(joined.doc), UNJUDGED)
    if qrels is None:
        return relevance, np.zeros(n_queries + 1, np.int64), np.zeros(0, np.int32), None
    lengths = np.diff(qrels.starts)
    query = np.repeat(np.arange(n_queries), lengths)
    entry = np.arange(len(qrels.doc)) + np.repeat(joined.at[-1] - qrels.starts[:-1], lengths)
    row = joined.entries[entry]
    found = row != alignment.NOWHERE
    # The lowest grade of 32 bits stands for "not judged"; no measure tells negative grades apart.
    judged = np.maximum(qrels.relevance[found], UNJUDGED + np.int32(1))
    at = joined.starts[query[found]] + row[found]
    relevance[at] = judged
    starts, left = grouped_grades(query[~found], qrels.relevance[~found], n_queries)
    if qrels.probability is None:
        return relevance, starts, left, None
    probability = np.full(len(joined.doc), np.nan)
    probability[at] = qrels.probability[found]
    return relevance, starts, left, probability


def named_runs(runs: Runs) -> dict[str, Run]:
    """Return the runs by ranker name; refuse anything that is not a run, and two runs with one name."""
    _check_several(runs)
    for key, run in runs.items() if isinstance(runs, Mapping) else enumerate(runs):
        check_kind(f"runs[{key!r}]", run, Run, "Read it first, by genm.read_run.")
    pairs = list(runs.items()) if isinstance(runs, Mapping) else [(run.name, run) for run in runs]
    if not pairs:
        raise InputError("runs: expected at least one run; found none. Give a run per ranker.")
    named = dict(pairs)
    if len(named) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"runs: expected a different name for each ranker; found {twice!r} twice. "
            f"Pass a mapping of name to run to name them yourself."
        )
    if "" in named:
        raise InputError("runs: expected every ranker to have a name; found an empty one. Name it.")
    return named


def _check_several(runs: object) -> None:
    """Refuse a single run or judgments, which are mappings as well, and anything that contains no runs."""
    if isinstance(runs, RowsByQuery) or not isinstance(runs, Mapping | Sequence):
        found = type(runs).__name__
        raise InputError(f"runs: expected several runs; found {found}. Give runs by name, or a list of them.")


def depths_of(depth: Depths, rankers: tuple[str, ...]) -> tuple[int | None, ...]:
    """Return each ranker's depth, checked."""
    return tuple(_depth(d) for d in per_ranker("depth", depth, rankers))


def _depth(depth: int | None) -> int | None:
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or not 0 < depth < 2**63):
        raise InputError(f"depth: expected a positive integer of 64 bits, or None; found {depth!r:.40}.")
    return depth


def _queries(runs: Mapping[str, Run], qrels: Qrels | None) -> tuple[Ids, list[NDArray[np.int64]], list[Note]]:
    notes: list[Note] = []
    own = [run.queries for run in runs.values()]
    queries = _in_order_of_appearance(own) if qrels is None else qrels.queries
    places = [find(queries, run.queries).astype(np.int64) for run in runs.values()]
    held_by = np.zeros(len(queries), np.int64)
    for (name, run), place in zip(runs.items(), places, strict=True):
        aside = np.flatnonzero(place < 0)
        if len(aside) == len(run.queries) > 0 and len(queries) > 0:
            raise InputError(
                f"run {name!r} and the judgments: expected queries in common; found none (the run's first is "
                f"{run.queries[0]!r}, the judgments' {queries[0]!r}). Are both of the same collection?"
            )
        if len(aside):
            notes.append(
                Note(
                    "unjudged-queries",
                    len(aside),
                    f"run {name!r}: {len(aside)} of {len(run.queries)} queries have no judgments and are "
                    f"skipped, the first is {run.queries[int(aside[0])]!r}.",
                )
            )
        held = np.zeros(len(queries), np.bool_)
        held[place[(place >= 0) & (np.diff(run.starts) > 0)]] = True
        held_by += held
        absent = np.flatnonzero(~held)
        if len(absent):
            notes.append(
                Note(
                    "queries-missing-from-run",
                    len(absent),
                    f"run {name!r} returned nothing for {len(absent)} of {len(queries)} queries, the first is "
                    f"{queries[int(absent[0])]!r}.",
                )
            )
    nobody = np.flatnonzero(held_by == 0)
    if len(nobody):
        notes.append(
            Note(
                "queries-without-documents",
                len(nobody),
                f"no run returned anything for {len(nobody)} of {len(queries)} queries, the first is "
                f"{queries[int(nobody[0])]!r}; they count as 0.",
            )
        )
    return queries, places, notes


def _in_order_of_appearance(tables: Sequence[Ids]) -> Ids:
    united, codes = unite(tables)
    _, first = np.unique(np.concatenate(codes), return_index=True)
    return united.take(np.argsort(first, kind="stable"))


def weights_of_queries(given: Mapping[str, float] | None, queries: Ids, notes: list[Note]) -> NDArray[np.float64]:
    """Return the weight of each query, 1 where none is given; notes count what does not fit."""
    weights = np.ones(len(queries))
    if given is None:
        return weights
    named = list(given)
    values = np.array([given[name] for name in named], np.float64)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0.0)))
    if len(bad):
        raise InputError(
            f"query weights: expected finite numbers >= 0; found {values[bad[0]]} for query {named[bad[0]]!r}."
        )
    place = find(queries, Ids.of(named))
    weights[place[place >= 0]] = values[place >= 0]
    unknown = np.flatnonzero(place < 0)
    if len(unknown):
        notes.append(
            Note(
                "query-weights-unused",
                len(unknown),
                f"{len(unknown)} query weights name queries that are not here, the first is {named[unknown[0]]!r}.",
            )
        )
    n_default = len(queries) - (len(named) - len(unknown))
    if n_default:
        notes.append(
            Note("query-weights-default", n_default, f"{n_default} queries have no given weight and get weight 1.")
        )
    return weights
