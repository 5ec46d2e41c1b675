"""The storage that the fast kernels read: each query's documents, sorted once, in tiles of 64 by K scores.

A tile holds documents of about equal quality, so under any sensible weights its fused scores lie close together,
and the least and greatest score of each ranker bound them without reading the tile. Documents are sorted by the
unweighted sum of their scores; no result depends on that order, only the time does.

Every query has its own spans into the shared arrays, so taking some of the queries, or giving the documents
other labels, copies no scores. Taking some of the documents or rankers makes new tiles without sorting again.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from genm._math.lanes import fill, higher, highest, load, lower, lowest
from genm._math.parallel import kernel, over_items, over_ranges, part
from genm._math.sorting import falling_orders
from genm._typing import Bools, Codes, Floats, Ints
from genm.errors import InputError

TILE = 64
"""Documents in a tile."""

NO_SUMS: Floats = np.empty((0, 2))
"""Where the order of the documents says little about their sums."""

_MOST_SORTED_BY_INSERTION = 192
"""Documents up to which a query is sorted by insertion, in a compiled loop over queries."""
_ROWS_AT_ONCE = 1 << 16
"""Rows gathered per step of the build, which bounds its extra memory."""
_MOST_SUMMED_AT_ONCE = 128
"""Numbers up to which numpy adds in eight sums; it cuts longer rows in two."""


@dataclass(frozen=True, slots=True, eq=False)
class Tiles:
    """Scores of K rankers for the documents of Q queries, made ready for the kernels."""

    scores: NDArray[np.floating]
    """(tiles, K, 64), float64 or float32, divided by 2**exponent; places past a query's end repeat its last."""
    low: NDArray[np.floating]
    """(tiles, K) least score in the tile."""
    high: NDArray[np.floating]
    """(tiles, K) greatest score in the tile."""
    sums: Floats
    """(tiles, 2) least and greatest unweighted sum of a document's scores in the tile; (0, 2) if not known."""
    sizes: Ints
    """(tiles,) documents in the tile, 64 except for a query's last one."""
    position: Codes
    """(tiles, 64) each document's place among its query's rows, which settles ties; -1 past the end."""
    tile_spans: Ints
    """(Q, 2) first tile of each query and the one after its last."""
    rows: Ints
    """(Q, 2) first row of each query in the table the tiles were built from, and the one after its last."""
    relevant_scores: NDArray[np.floating]
    """(relevant documents, K) as stored in the tiles."""
    relevant_position: Codes
    relevant_tile: Ints
    relevant_spans: Ints
    """(Q, 2) first relevant document of each query in the three arrays above, and the one after its last."""
    n_relevant: Ints
    """(Q,) what average precision divides by: relevant documents, including those that no ranker returned."""
    query_weights: Floats
    exponent: int
    """Scores are divided by 2**exponent when they are so great that squares would overflow; 0 otherwise."""
    derived: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    """What evaluations compute from the tiles alone, kept for the next weight vector; `replace` starts it anew."""

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.n_relevant)

    @property
    def n_rankers(self) -> int:
        """Number of rankers, K."""
        return int(self.scores.shape[1])

    @property
    def costs(self) -> Ints:
        """What each query costs, in units of about 50 ns: how the work is shared out among threads."""
        found: Ints | None = self.derived.get("costs")
        if found is None:
            documents = self.rows[:, 1] - self.rows[:, 0]
            relevant = self.relevant_spans[:, 1] - self.relevant_spans[:, 0]
            found = self.derived["costs"] = np.asarray(1 + documents * (relevant + 4) // 64)
        return found

    @property
    def greatest_score(self) -> float:
        """The greatest absolute value of all scores, as they are stored."""
        found: float | None = self.derived.get("greatest_score")
        if found is None:
            found = float(max(self.high.max(initial=0.0), -self.low.min(initial=0.0)))
            self.derived["greatest_score"] = found
        return found

    @property
    def total_cost(self) -> int:
        """What all queries cost together."""
        found: int | None = self.derived.get("total_cost")
        if found is None:
            found = self.derived["total_cost"] = int(np.add.reduce(self.costs))
        return found

    @property
    def total_weight(self) -> float:
        """What weighted sums over the queries are divided by: the sum of their weights, or 1 if that is 0."""
        total: float | None = self.derived.get("total_weight")
        if total is None:
            total = float(self.query_weights.sum())
            total = self.derived["total_weight"] = total if total > 0.0 else 1.0
        return total


def build_tiles(
    starts: Ints,
    scores: Floats,
    relevant: Bools,
    n_relevant: Ints,
    query_weights: Floats | None = None,
    *,
    dtype: DTypeLike = np.float64,
) -> Tiles:
    """Store the (rows, K) scores of Q queries, rows[starts[q]:starts[q + 1]] each, as tiles.

    `relevant` marks rows; `n_relevant` counts each query's relevant documents with those that have no row.
    float32 halves the memory and rounds the scores: everything computed then is about the rounded scores.
    """
    starts = np.ascontiguousarray(starts, np.int64)
    n_queries, lengths = len(starts) - 1, np.diff(starts)
    weights = np.ones(n_queries) if query_weights is None else np.array(query_weights, np.float64)
    _check(starts, scores, weights)
    n_rankers = scores.shape[1]
    exponent = _exponent(scores, np.dtype(dtype).itemsize)

    tile_starts = np.zeros(n_queries + 1, np.int64)
    np.cumsum(-(-lengths // TILE), out=tile_starts[1:])
    n_tiles = int(tile_starts[-1])
    tiles = Tiles(
        scores=np.empty((n_tiles, n_rankers, TILE), dtype),
        low=np.empty((n_tiles, n_rankers), dtype),
        high=np.empty((n_tiles, n_rankers), dtype),
        sums=np.empty((n_tiles, 2)),
        sizes=np.full(n_tiles, TILE, np.int64),
        position=np.empty((n_tiles, TILE), np.int32),
        tile_spans=np.stack((tile_starts[:-1], tile_starts[1:]), axis=1),
        rows=np.stack((starts[:-1], starts[1:]), axis=1),
        relevant_scores=np.empty((0, n_rankers), dtype),
        relevant_position=np.empty(0, np.int32),
        relevant_tile=np.empty(0, np.int64),
        relevant_spans=np.zeros((n_queries, 2), np.int64),
        n_relevant=np.zeros(n_queries, np.int64),
        query_weights=weights,
        exponent=exponent,
    )
    filled = np.flatnonzero(lengths)
    tiles.sizes[tile_starts[filled + 1] - 1] = (lengths[filled] - 1) % TILE + 1
    cuts = [0]
    while cuts[-1] < n_queries:
        last = int(np.searchsorted(starts, starts[cuts[-1]] + _ROWS_AT_ONCE, side="right")) - 1
        cuts.append(min(max(last, cuts[-1] + 1), n_queries))
    over_items(lambda span: _fill(tiles, scores, *span), itertools.pairwise(cuts))
    return relabel(tiles, relevant, n_relevant)


def join(parts: Sequence[Tiles]) -> Tiles:
    """Return the tiles of all parts, which were built from consecutive queries under one exponent."""
    if len({part.exponent for part in parts}) > 1:
        raise InputError("tiles of different exponents cannot be joined. Build them from all scores together.")

    def ends(lengths: list[int]) -> list[int]:
        return [0, *itertools.accumulate(lengths)][:-1]

    def moved(spans: list[Ints], by: list[int]) -> Ints:
        return np.concatenate([span + offset for span, offset in zip(spans, by, strict=True)])

    n_tiles = ends([len(part.scores) for part in parts])
    n_found = ends([len(part.relevant_position) for part in parts])
    n_rows = ends([int(part.rows[-1, 1]) if len(part.rows) else 0 for part in parts])
    known = all(len(part.sums) == len(part.scores) for part in parts)
    return replace(
        parts[0],
        scores=np.concatenate([part.scores for part in parts]),
        low=np.concatenate([part.low for part in parts]),
        high=np.concatenate([part.high for part in parts]),
        sums=np.concatenate([part.sums for part in parts]) if known else NO_SUMS,
        sizes=np.concatenate([part.sizes for part in parts]),
        position=np.concatenate([part.position for part in parts]),
        relevant_scores=np.concatenate([part.relevant_scores for part in parts]),
        relevant_position=np.concatenate([part.relevant_position for part in parts]),
        n_relevant=np.concatenate([part.n_relevant for part in parts]),
        query_weights=np.concatenate([part.query_weights for part in parts]),
        tile_spans=moved([part.tile_spans for part in parts], n_tiles),
        rows=moved([part.rows for part in parts], n_rows),
        relevant_tile=moved([part.relevant_tile for part in parts], n_tiles),
        relevant_spans=moved([part.relevant_spans for part in parts], n_found),
    )


def relabel(tiles: Tiles, relevant: Bools, n_relevant: Ints) -> Tiles:
    """Return the same documents with other labels: `relevant` marks rows of the table the tiles came from."""
    marks = np.asarray(relevant, bool)
    if len(tiles.rows) and len(marks) < tiles.rows[:, 1].max():
        raise InputError(f"relevant marks {len(marks)} rows; the scores have at least {tiles.rows[:, 1].max()}.")
    counts = tiles.tile_spans[:, 1] - tiles.tile_spans[:, 0]
    own = np.arange(counts.sum()) + np.repeat(tiles.tile_spans[:, 0] - (np.cumsum(counts) - counts), counts)
    own_query = np.repeat(np.arange(tiles.n_queries), counts)
    own_position = tiles.position[own]
    found = marks[tiles.rows[own_query, :1] + own_position] & (own_position >= 0)
    at, place = np.nonzero(found)
    in_row_order = np.lexsort((own_position[at, place], own_query[at]))
    at, place = at[in_row_order], place[in_row_order]
    query, tile, position = own_query[at], own[at], own_position[at, place]
    ends = np.cumsum(np.bincount(query, minlength=tiles.n_queries))
    spans = np.stack((np.concatenate(([0], ends[:-1])) if len(ends) else ends, ends), axis=1)
    divisors = np.array(n_relevant, np.int64)
    if len(divisors) != tiles.n_queries:
        raise InputError(f"n_relevant has {len(divisors)} entries for {tiles.n_queries} queries.")
    short = np.flatnonzero(divisors < spans[:, 1] - spans[:, 0])
    if len(short):
        q = int(short[0])
        raise InputError(
            f"query at position {q}: {spans[q, 1] - spans[q, 0]} rows are relevant, but n_relevant says "
            f"{divisors[q]}. It counts every relevant document, with or without a row."
        )
    return replace(
        tiles,
        relevant_scores=np.ascontiguousarray(tiles.scores[tile, :, place]),
        relevant_position=position,
        relevant_tile=tile,
        relevant_spans=spans,
        n_relevant=divisors,
    )


def take(tiles: Tiles, queries: NDArray[np.integer]) -> Tiles:
    """Return the tiles of some of the queries (a fold, a sample, repeats allowed); scores are shared."""
    taken = Tiles(  # what `replace` does, which takes four times as long
        scores=tiles.scores,
        low=tiles.low,
        high=tiles.high,
        sums=tiles.sums,
        sizes=tiles.sizes,
        position=tiles.position,
        tile_spans=tiles.tile_spans[queries],
        rows=tiles.rows[queries],
        relevant_scores=tiles.relevant_scores,
        relevant_position=tiles.relevant_position,
        relevant_tile=tiles.relevant_tile,
        relevant_spans=tiles.relevant_spans[queries],
        n_relevant=tiles.n_relevant[queries],
        query_weights=tiles.query_weights[queries],
        exponent=tiles.exponent,
    )
    taken.derived["greatest_score"] = tiles.greatest_score
    return taken


def take_rankers(tiles: Tiles, columns: Sequence[int]) -> Tiles:
    """Return the tiles with the scores of some of the rankers alone, which are copied; the order stays."""
    own = list(columns)
    scores, relevant = tiles.scores[:, own], tiles.relevant_scores[:, own]
    return replace(
        tiles,
        scores=np.ascontiguousarray(scores),
        low=np.ascontiguousarray(tiles.low[:, own]),
        high=np.ascontiguousarray(tiles.high[:, own]),
        sums=NO_SUMS,
        relevant_scores=np.ascontiguousarray(relevant),
    )


def mean(tiles: Tiles, per_query: Floats) -> Floats:
    """Return the mean over the queries (first axis) with their weights: sum(weight * value) / sum(weight).

    Summed in an order that depends on the number of queries alone.
    """
    weights = tiles.query_weights
    if per_query.ndim > 1:
        weights = weights.reshape(-1, *([1] * (per_query.ndim - 1)))
    return np.asarray(np.add.reduce(weights * per_query, axis=0) / tiles.total_weight)


def scale_weights(tiles: Tiles, weights: Floats) -> tuple[Floats, int]:
    """Return the weights divided by 2**m, and m: 0 unless they are so great that fusing could overflow."""
    given = np.array(weights, np.float64)  # a copy: kernels are compiled for writable arrays only
    if given.shape != (tiles.n_rankers,) or not all(map(math.isfinite, numbers := given.tolist())):
        raise InputError(f"weights must be {tiles.n_rankers} finite numbers; found {weights!r}.")
    greatest = max(map(abs, numbers))
    exponent = int(np.frexp(greatest)[1]) if greatest > 2.0**100 else 0
    return (np.ldexp(given, -exponent), exponent) if exponent else (given, 0)


def _check(starts: Ints, scores: Floats, weights: Floats) -> None:
    if scores.ndim != 2 or scores.shape[1] == 0 or len(scores) != starts[-1]:
        raise InputError(f"scores must be ({starts[-1]}, rankers); found {scores.shape}.")
    if len(weights) != len(starts) - 1 or not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError(f"query weights must be {len(starts) - 1} finite numbers, none below 0.")


def _exponent(scores: Floats, itemsize: int) -> int:
    """Return m such that scores / 2**m can be squared and summed; 0 unless they are enormous."""
    greatest = max(float(scores.max(initial=0.0)), -float(scores.min(initial=0.0)))
    if not np.isfinite(greatest):
        raise InputError("scores must be finite; found NaN or an infinity.")
    most, aim = (2.0**500, 332) if itemsize == 8 else (2.0**100, 33)
    return int(np.frexp(greatest)[1]) - aim if greatest > most else 0


def _fill(tiles: Tiles, scores: Floats, first: int, last: int) -> None:
    """Sort and store the documents of the queries first:last."""
    begin, end = tiles.rows[first, 0], tiles.rows[last - 1, 1]
    if begin == end:
        return
    block = np.asarray(scores[begin:end], np.float64)
    if tiles.exponent:
        block = np.ldexp(block, -tiles.exponent)
    rows = np.require(block, np.float64, ("C", "W"))
    sums, starts = _row_sums(block).reshape(-1, 1), np.append(tiles.rows[first:last, 0], end) - begin
    stored = tiles.scores, tiles.low, tiles.high, tiles.sums, tiles.position
    places = np.ascontiguousarray(tiles.tile_spans[first:last, 0])
    longest = int(np.diff(starts).max())
    if longest <= _MOST_SORTED_BY_INSERTION:
        order = np.empty((last - first, 1, longest), np.uint32)
        _sort_short(starts, sums, order)
        _store_queries(0, last - first, order, starts, rows, places, *stored)
        return
    for low, high, order in falling_orders(sums, np.ones(sums.shape, np.bool_), starts, 0, last - first):
        _store_queries(low, high, order, starts, rows, places, *stored)


def _row_sums(block: Floats) -> Floats:
    """Return block.sum(axis=1) to the bit; numpy takes several times as long for a few columns."""
    if block.shape[1] > _MOST_SUMMED_AT_ONCE or not block.flags.c_contiguous:
        return np.asarray(block.sum(axis=1))
    total = np.empty(len(block))
    _sum_rows(np.require(block, np.float64, ("C", "W")), total)
    return total


@kernel
def _sum_rows(block: Floats, total: Floats) -> None:
    """Add the columns in numpy's order: one by one up to seven, else in eight sums that are added pairwise."""
    n = block.shape[1]
    for row in range(len(block)):
        if n < 8:
            value = block[row, 0]
            for k in range(1, n):
                value += block[row, k]
            total[row] = value
            continue
        a, b, c, d = block[row, 0], block[row, 1], block[row, 2], block[row, 3]
        e, f, g, h = block[row, 4], block[row, 5], block[row, 6], block[row, 7]
        whole = n - n % 8
        for k in range(8, whole, 8):
            a += block[row, k]
            b += block[row, k + 1]
            c += block[row, k + 2]
            d += block[row, k + 3]
            e += block[row, k + 4]
            f += block[row, k + 5]
            g += block[row, k + 6]
            h += block[row, k + 7]
        value = ((a + b) + (c + d)) + ((e + f) + (g + h))
        for k in range(whole, n):
            value += block[row, k]
        total[row] = value


@kernel
def _sort_short(starts: Ints, sums: Floats, order: NDArray[np.uint32]) -> None:
    """Write the orders of `falling_orders` for queries of few documents: numpy's calls would take longer."""
    for q in range(len(starts) - 1):
        begin = starts[q]
        for i in range(starts[q + 1] - begin):
            value, j = sums[begin + i, 0], i
            while j > 0 and sums[begin + order[q, 0, j - 1], 0] < value:
                order[q, 0, j] = order[q, 0, j - 1]
                j -= 1
            order[q, 0, j] = i


@kernel
def _store_queries(
    low: int,
    high: int,
    order: NDArray[np.uint32],
    starts: Ints,
    block: Floats,
    first_tile: Ints,
    scores: NDArray[np.floating],
    least: NDArray[np.floating],
    greatest: NDArray[np.floating],
    sums: Floats,
    position: Codes,
) -> None:
    """Store the documents of the queries low:high in tiles, in this order, and the bounds of every tile."""
    n_rankers = block.shape[1]
    for q in range(low, high):
        begin, n = starts[q], starts[q + 1] - starts[q]
        for slot in range(0, n, TILE):
            tile = first_tile[q] + slot // TILE
            for d in range(TILE):
                row = np.int64(order[q - low, 0, min(slot + d, n - 1)])
                position[tile, d] = row if slot + d < n else -1
                for k in range(n_rankers):
                    scores[tile, k, d] = block[begin + row, k]
            _bound_tile(tile, scores, least, greatest, sums)


@part()
def _bound_tile(
    tile: int,
    scores: NDArray[np.floating],
    least: NDArray[np.floating],
    greatest: NDArray[np.floating],
    sums: Floats,
) -> None:
    """Store the range of each ranker's scores in a tile, and of the documents' sums."""
    n_rankers = scores.shape[1]
    begins = TILE * n_rankers * tile
    for k in range(n_rankers):
        at = begins + TILE * k
        low, high = load(scores, at), load(scores, at)
        for d in range(8, TILE, 8):
            x = load(scores, at + d)
            low, high = lower(low, x), higher(high, x)
        least[tile, k], greatest[tile, k] = lowest(low), highest(high)
    low, high = fill(np.inf), fill(-np.inf)
    for d in range(0, TILE, 8):
        total = load(scores, begins + d)
        for k in range(1, n_rankers):
            total += load(scores, begins + TILE * k + d)
        low, high = lower(low, total), higher(high, total)
    sums[tile, 0], sums[tile, 1] = lowest(low), highest(high)


class Thinner:
    """The documents of tiles in the tiles' order, ranker by ranker, to make thinner tiles of again and again."""

    def __init__(self, tiles: Tiles) -> None:
        spans = tiles.tile_spans
        counts = spans[:, 1] - spans[:, 0]
        own = np.arange(counts.sum()) + np.repeat(spans[:, 0] - (np.cumsum(counts) - counts), counts)
        position = tiles.position[own].reshape(-1)
        at = np.flatnonzero(position >= 0)
        query = np.repeat(np.arange(len(counts)), counts * TILE)[at]
        self._tiles, self._position, self._query = tiles, position[at], query
        self.row = tiles.rows[query, 0] + self._position
        """Of each document, its row in the table that the tiles were built from."""
        self._starts = np.searchsorted(query, np.arange(len(counts) + 1))
        stored = tiles.scores[own].transpose(1, 0, 2).reshape(tiles.n_rankers, -1)
        self._columns = np.ascontiguousarray(stored[:, at])
        self._relevant = self._places_of_relevant()

    def _places_of_relevant(self) -> NDArray[np.intp]:
        """Return where the relevant documents stand here, query by query in the order of their rows."""
        spans = self._tiles.relevant_spans
        counts = spans[:, 1] - spans[:, 0]
        listed = np.arange(counts.sum()) + np.repeat(spans[:, 0] - (np.cumsum(counts) - counts), counts)
        query = np.repeat(np.arange(len(counts)), counts)
        row = self._tiles.rows[query, 0] + self._tiles.relevant_position[listed]
        place = np.zeros(int(self.row.max(initial=-1)) + 1, np.intp)
        place[self.row] = np.arange(len(self.row))
        return np.asarray(place[row], np.intp)

    def thin(self, kept: Bools, columns: Sequence[int]) -> tuple[Tiles, Floats]:
        """Return tiles of the documents that are kept, under some of the rankers, and how their scores vary.

        `kept` marks documents in the order of `row`. The relevant ones among those that leave are neither found nor
        forgotten: `n_relevant` stays. The order within a query stays, too. The variances are those of scores under
        uniform weights, within each query that keeps more than one document.
        """
        tiles, own = self._tiles, np.array(columns, np.int64)
        upto = np.empty(len(kept) + 1, np.int64)
        _count_marked(kept, upto)
        begins = upto[self._starts]
        counts = np.diff(begins)
        tile_starts = np.concatenate(([0], np.cumsum(-(-counts // TILE))))
        n_tiles, n_queries = int(tile_starts[-1]), len(counts)
        scores = np.empty((n_tiles, len(own), TILE), self._columns.dtype)
        low, high = np.empty((2, n_tiles, len(own)), self._columns.dtype)
        sizes, position = np.empty(n_tiles, np.int64), np.empty((n_tiles, TILE), np.int32)
        variances = np.empty(n_queries)
        stored_in = Thinned(scores, low, high, sizes, position, variances)
        source = Stored(self._columns, self._position, self._starts)
        over_ranges(lambda a, b: _copy_kept(a, b, source, kept, own, tile_starts, stored_in), 1 + counts)
        relevant = self._relevant[kept[self._relevant]]
        query = self._query[relevant]
        ends = np.cumsum(np.bincount(query, minlength=n_queries))
        thin = replace(
            tiles,
            scores=scores,
            low=low,
            high=high,
            sums=NO_SUMS,
            sizes=sizes,
            position=position,
            tile_spans=np.stack((tile_starts[:-1], tile_starts[1:]), axis=1),
            relevant_scores=np.ascontiguousarray(self._columns[:, relevant].T[:, own]),
            relevant_position=self._position[relevant],
            relevant_tile=tile_starts[query] + (upto[relevant] - begins[query]) // TILE,
            relevant_spans=np.stack((np.concatenate(([0], ends[:-1])), ends), axis=1),
        )
        return thin, variances[counts > 1]


class Stored(NamedTuple):
    """The documents of a `Thinner`, one query after the other."""

    columns: NDArray[np.floating]
    """(K, documents) scores."""
    position: Codes
    starts: Ints
    """(Q + 1,)."""


class Thinned(NamedTuple):
    """The arrays that `_copy_kept` fills: those of `Tiles`, and the variance of each query."""

    scores: NDArray[np.floating]
    low: NDArray[np.floating]
    high: NDArray[np.floating]
    sizes: Ints
    position: Codes
    variances: Floats


@kernel
def _count_marked(marked: Bools, upto: Ints) -> None:
    """Set upto[i] to how many of the first i are marked. numpy holds the interpreter lock while it does this."""
    n = 0
    for i in range(len(marked)):
        upto[i] = n
        n += marked[i]
    upto[len(marked)] = n


@kernel(makes_arrays=True)
def _copy_kept(
    first: int, last: int, source: Stored, kept: Bools, own: Ints, tile_starts: Ints, thinned: Thinned
) -> None:
    """Store the documents that are kept of the queries first:last, in one call that holds no lock."""
    columns, position, starts = source
    scores, low, high, sizes, stored_position, variances = thinned
    most = 0
    for q in range(first, last):
        most = max(most, starts[q + 1] - starts[q])
    at, fused = np.empty(most + 1, np.int64), np.empty(most)
    for q in range(first, last):
        n = 0
        for d in range(starts[q], starts[q + 1]):
            at[n] = d  # the next one overwrites it unless it is kept
            n += kept[d]
        fused[:n] = 0.0
        for tile in range(tile_starts[q], tile_starts[q + 1]):
            begin = TILE * (tile - tile_starts[q])
            size = min(TILE, n - begin)
            sizes[tile] = size
            for place in range(TILE):
                stored_position[tile, place] = position[at[begin + place]] if place < size else -1
            for k in range(len(own)):
                column, least = own[k], columns[own[k], at[begin]]
                greatest = least
                for place in range(size):
                    score = columns[column, at[begin + place]]
                    scores[tile, k, place] = score
                    fused[begin + place] += score
                    least, greatest = min(least, score), max(greatest, score)
                low[tile, k], high[tile, k] = least, greatest
                for place in range(size, TILE):  # places past the end repeat the last document
                    scores[tile, k, place] = scores[tile, k, size - 1]
        total, apart = 0.0, 0.0
        for i in range(n):
            fused[i] /= len(own)
            total += fused[i]
        for i in range(n):
            apart += (fused[i] - total / n) * (fused[i] - total / n)
        variances[q] = apart / n if n > 0 else 0.0
