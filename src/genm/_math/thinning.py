"""Tiles of some documents under some rankers, made from tiles that are there: nothing is sorted again."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from genm._math.tiles import TILE, Tiles

Array = NDArray[np.float64]


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

    def thin(self, kept: NDArray[np.bool_], columns: Sequence[int]) -> Tiles:
        """Return tiles of the documents that are kept, under some of the rankers.

        `kept` marks documents in the order of `row`. The relevant ones among those that leave are neither found nor
        forgotten: `n_relevant` stays. The order within a query stays, too.
        """
        tiles, upto = self._tiles, np.concatenate(([0], np.cumsum(kept)))
        begins = upto[self._starts]
        counts, at = np.diff(begins), np.flatnonzero(kept)
        tile_starts = np.concatenate(([0], np.cumsum(-(-counts // TILE))))
        n_tiles, filled = int(tile_starts[-1]), np.flatnonzero(counts)
        slot = np.arange(len(at)) + np.repeat(tile_starts[:-1] * TILE - begins[:-1], counts)
        source = np.repeat(at[begins[1:][filled] - 1], np.diff(tile_starts)[filled] * TILE)  # ends repeat the last
        source[slot] = at
        position = np.full(n_tiles * TILE, -1, np.int32)
        position[slot] = self._position[at]
        scores = np.empty((n_tiles, len(columns), TILE), self._columns.dtype)
        for k, column in enumerate(columns):
            scores[:, k] = self._columns[column][source].reshape(n_tiles, TILE)
        sizes = np.full(n_tiles, TILE, np.int64)
        sizes[tile_starts[1:][filled] - 1] = (counts[filled] - 1) % TILE + 1
        relevant = self._relevant[kept[self._relevant]]
        ends = np.cumsum(np.bincount(self._query[relevant], minlength=len(counts)))
        return replace(
            tiles,
            scores=scores,
            low=scores.min(axis=2),
            high=scores.max(axis=2),
            sizes=sizes,
            position=position.reshape(n_tiles, TILE),
            tile_spans=np.stack((tile_starts[:-1], tile_starts[1:]), axis=1),
            relevant_scores=np.ascontiguousarray(self._columns[:, relevant].T[:, list(columns)]),
            relevant_position=self._position[relevant],
            relevant_tile=slot[upto[relevant]] // TILE,
            relevant_spans=np.stack((np.concatenate(([0], ends[:-1])), ends), axis=1),
        )

    def variances(self, kept: NDArray[np.bool_], columns: Sequence[int]) -> Array:
        """Return, of queries that keep more than one document, how their scores vary under uniform weights."""
        upto = np.concatenate(([0], np.cumsum(kept)))[self._starts]
        at, counts = np.flatnonzero(kept), np.diff(upto)
        some = counts > 1
        fused = sum((self._columns[column][at] for column in columns), np.zeros(len(at))) / len(columns)
        n, query = np.maximum(counts, 1), np.repeat(np.arange(len(counts)), counts)
        apart = fused - (np.bincount(query, fused, len(n)) / n)[query]
        return np.asarray((np.bincount(query, apart * apart, len(n)) / n)[some])
