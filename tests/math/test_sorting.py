"""The ranking order equals Python's own stable sort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm._math.sorting import rank_order, ranked_as_given

scores = st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, -3.5, 1e300, 5e-324, 2.0]) | st.floats(
    allow_nan=False, allow_infinity=False
)
rows = st.lists(st.lists(st.tuples(scores, st.integers(-3, 3)), max_size=70), max_size=5)


@settings(deadline=None, max_examples=80)
@given(rows)
def test_rank_order_equals_a_slow_sort(queries: list[list[tuple[float, int]]]) -> None:
    starts = np.cumsum([0] + [len(q) for q in queries])
    flat = [row for q in queries for row in q]
    order = rank_order(starts, np.array([s for s, _ in flat], np.float64), np.array([t for _, t in flat], np.int32))
    expected = [
        i
        for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        for i in sorted(range(a, b), key=lambda i: (-flat[i][0], flat[i][1]))
    ]
    assert order.tolist() == expected


@pytest.mark.parametrize("threads", ["1", "3"])
def test_long_segments_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch, threads: str) -> None:
    monkeypatch.setenv("GENM_THREADS", threads)
    rng = np.random.default_rng(3)
    starts = np.array([0, 5, 5, 40_000, 40_001, 70_000])
    score, tie = rng.integers(0, 200, 70_000) / 7, rng.integers(0, 5, 70_000).astype(np.int32)
    segment = np.repeat(np.arange(5), np.diff(starts))
    expected = np.lexsort((np.arange(70_000), tie, -score, segment))
    assert (rank_order(starts, score, tie) == expected).all()


def test_what_is_already_in_order_is_recognised() -> None:
    starts = np.array([0, 3, 6, 9, 9, 10])
    score = np.array([3.0, 2.0, 1.0, 3.0, 0.0, -0.0, 1.0, 2.0, 2.0, 4.0])
    assert ranked_as_given(starts, score).tolist() == [0, 1, 2, 0, 0]
