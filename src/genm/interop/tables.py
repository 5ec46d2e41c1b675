"""From a table of scores, a row per document and a column per ranker, to aligned runs."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genm._math.scaling import scale_lists
from genm.align import UNJUDGED, Aligned
from genm.align.aligned import offsets
from genm.errors import InputError
from genm.ids import Ids, encode
from genm.normalizers import Normalize, normalizers_of, rules_of

Array = NDArray[np.float64]
T = TypeVar("T", bound=np.generic)


class Table:
    """Rows of scores brought into the order that aligned runs have, and the way back.

    NaN says that the ranker did not return the document. Rows have no ids to settle ties by: equal scores stand
    in an order that is drawn once, so that rows which come sorted by their labels gain nothing by it.
    """

    def __init__(self, scores: Array, qid: ArrayLike | None) -> None:
        n_rows = len(scores)
        self._scores = scores
        self._queries, query = _query_codes(qid, n_rows)
        drawn = np.random.default_rng(0).permutation(n_rows)
        self._order = drawn[np.argsort(query[drawn], kind="stable")]
        self._starts = offsets(np.bincount(query, minlength=len(self._queries)))

    @property
    def n_queries(self) -> int:
        """How many different queries the rows belong to."""
        return len(self._queries)

    def aligned(
        self, rankers: Sequence[str], normalize: Normalize, relevance: NDArray[np.int32] | None = None
    ) -> Aligned:
        """Return the rows as aligned runs; `relevance` holds a grade for each row, in the table's own order."""
        names = tuple(rankers)
        normalizers = normalizers_of(normalize, names)
        raw = np.ascontiguousarray(self._scores[self._order])
        retrieved = ~np.isnan(raw)
        raw[~retrieved] = 0.0
        n_rows, n_queries = len(raw), self.n_queries
        grades = np.full(n_rows, UNJUDGED) if relevance is None else relevance[self._order]
        return Aligned(
            rankers=names,
            queries=self._queries,
            docs=Ids.of(f"{n_rows - row:012d}" for row in range(n_rows)),  # downwards, as aligned rows are
            starts=self._starts,
            doc=np.arange(n_rows, dtype=np.int32),
            raw=raw,
            retrieved=retrieved,
            scores=scale_lists(raw, retrieved, self._starts, rules_of(normalizers)),
            normalizers=normalizers,
            depths=(None,) * len(names),
            labelled=relevance is not None,
            relevance=grades.astype(np.int32),
            unretrieved_starts=np.zeros(n_queries + 1, np.int64),
            unretrieved=np.zeros(0, np.int32),
            query_weights=np.ones(n_queries),
        )

    def as_given(self, rows: NDArray[T]) -> NDArray[T]:
        """Return a value per aligned row in the order of the table's rows."""
        back = np.empty_like(rows)
        back[self._order] = rows
        return back


def _query_codes(qid: ArrayLike | None, n_rows: int) -> tuple[Ids, NDArray[np.int32]]:
    if qid is None:
        return Ids.of(["all"]), np.zeros(n_rows, np.int32)
    given = np.asarray(qid)
    if given.shape != (n_rows,):
        raise InputError(f"qid: expected one query id for each of the {n_rows} rows; found shape {given.shape}.")
    absent = [i for i, value in enumerate(given.tolist()) if value is None or value != value]
    if absent:
        raise InputError(f"qid: expected a query id for every row; found none in row {absent[0]} (from 0).")
    return encode(map(str, given.tolist()))
