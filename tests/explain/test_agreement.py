"""Rank correlations are Spearman's on common documents; overlaps are counted."""

import numpy as np
import pytest
from problems import made_up
from scipy import stats

from genm.align import align_runs
from genm.explain import rank_agreement
from genm.ids import Ids
from genm.records import ranked_run


def some_runs(seed, depth=None):
    """Three rankers with many equal scores; r2 repeats r1, shifted."""
    rng = np.random.default_rng(seed)
    queries, docs = Ids.of(["a", "b", "c"]), Ids.of(f"d{i:02}" for i in range(20))
    starts, doc = np.arange(4) * 20, np.tile(np.arange(20, dtype=np.int32), 3)
    scores = [rng.integers(0, 6, 60).astype(float) for _ in range(2)]
    scores.append(10.0 + 2.0 * scores[1])
    runs = {f"r{k}": ranked_run(f"r{k}", queries, docs, starts, doc, s) for k, s in enumerate(scores)}
    return align_runs(runs, depth=depth)


@pytest.mark.parametrize("depth", [None, 12])
def test_correlations_are_spearmans(depth):
    aligned = some_runs(5, depth)
    found = rank_agreement(aligned)
    for a in range(3):
        for b in range(3):
            values = []
            for q in range(3):
                rows = slice(aligned.starts[q], aligned.starts[q + 1])
                both = aligned.retrieved[rows, a] & aligned.retrieved[rows, b]
                x, y = aligned.raw[rows, a][both], aligned.raw[rows, b][both]
                if len(set(x)) > 1 and len(set(y)) > 1:
                    values.append(stats.spearmanr(x, y).statistic)
            assert found.correlation[a, b] == pytest.approx(np.mean(values))
    assert found.alike() == [("r1", "r2")]


def test_overlap_is_what_coverage_counts():
    aligned = made_up(4, n_docs=200)
    found, coverage = rank_agreement(aligned), aligned.coverage()
    for i, depth in enumerate(found.depths):
        assert np.allclose(found.overlap[i], coverage.overlap[coverage.depths.index(depth)])


def test_lists_with_one_document_in_common_have_no_order_to_compare(gappy):
    found = rank_agreement(gappy)
    assert found.correlation[0, 1] == 0.0
    assert found.overlap[0, 0, 1] == pytest.approx(1 / 3)
    assert found.alike() == []
