"""From pairs of ids to the record of judgments."""

from collections.abc import Iterable

import numpy as np

from genm.errors import InputError
from genm.ids import Ids, encode
from genm.records import Note, Qrels


def make_qrels(
    judgments: Iterable[tuple[str, str, int]], *, query_order: Iterable[str], notes: tuple[Note, ...] = ()
) -> Qrels:
    """Return the record of (query_id, doc_id, relevance) triples; queries come as in `query_order`.

    Queries without a judgment do not occur in the result. A pair may be judged once only.
    """
    judged: dict[str, dict[str, int]] = {query_id: {} for query_id in query_order}
    for query_id, doc_id, relevance in judgments:
        of_query = judged.setdefault(query_id, {})
        if doc_id in of_query:
            raise InputError(f"query {query_id!r}: expected one judgment of document {doc_id!r}; found two")
        of_query[doc_id] = relevance
    judged = {query_id: of_query for query_id, of_query in judged.items() if of_query}
    docs, codes = encode(doc_id for of_query in judged.values() for doc_id in of_query)
    starts = np.zeros(len(judged) + 1, np.int64)
    np.cumsum([len(of_query) for of_query in judged.values()], out=starts[1:])
    relevance_column = [r for of_query in judged.values() for r in of_query.values()]
    return Qrels(Ids.of(judged), docs, starts, codes, np.array(relevance_column, np.int32), notes)
