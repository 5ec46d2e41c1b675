"""Rows become a Run in trec_eval's order, however they came."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from genm.ids import Ids
from genm.records import ranked_run

NAMES = ["a", "b", "ab", "é", "z9", "document-10", "document-9", ""]
query_rows = st.dictionaries(
    st.sampled_from(range(len(NAMES))), st.sampled_from([0.0, -0.0, 1.0, 2.5, -1.0, 1.0000000000000002])
)


@settings(deadline=None, max_examples=80)
@given(st.lists(query_rows, max_size=4))
def test_ranked_run_equals_a_slow_sort(queries: list[dict[int, float]]) -> None:
    starts = np.cumsum([0] + [len(q) for q in queries])
    doc = np.array([d for q in queries for d in q], np.int32)
    score = np.array([s for q in queries for s in q.values()], np.float64)
    run = ranked_run("x", Ids.of(str(i) for i in range(len(queries))), Ids.of(NAMES), starts, doc, score)
    for i, rows in enumerate(queries):
        ranked = [NAMES[d] for d in run.doc[starts[i] : starts[i + 1]]]
        by_id = sorted(rows, key=lambda d: NAMES[d].encode(), reverse=True)
        assert ranked == [NAMES[d] for d in sorted(by_id, key=lambda d: -rows[d])]
        assert run.score[starts[i] : starts[i + 1]].tolist() == sorted(rows.values(), reverse=True)


def test_rows_already_ranked_are_not_copied() -> None:
    doc, score = np.array([0, 1], np.int32), np.array([2.0, 1.0])
    run = ranked_run("x", Ids.of(["q"]), Ids.of(["a", "b"]), np.array([0, 2]), doc, score)
    assert run.doc is doc
    assert run.score is score
