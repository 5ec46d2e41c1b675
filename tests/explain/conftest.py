import numpy as np
import pytest
from problems import made_up

from genm.align import align_runs, select_rankers
from genm.fuse import fuse_runs
from genm.ids import Ids
from genm.normalizers import Normalizer
from genm.records import Qrels, ranked_run


@pytest.fixture
def gappy():
    """Two short lists with a document each that the other lacks; a gap is worth 0.25."""
    docs, queries = Ids.of(["a", "b", "c"]), Ids.of(["q"])
    starts = np.array([0, 2])
    x = ranked_run("x", queries, docs, starts, np.array([0, 1], np.int32), np.array([4.0, 2.0]))
    y = ranked_run("y", queries, docs, starts, np.array([1, 2], np.int32), np.array([8.0, 6.0]))
    qrels = Qrels(queries, docs, starts, np.array([1, 2], np.int32), np.array([2, 0], np.int32))
    return align_runs({"x": x, "y": y}, qrels, normalize=Normalizer("minmax", missing=0.25))


@pytest.fixture(scope="session")
def short_lists():
    """Three rankers whose lists end after 15 documents, so that documents leave with their ranker."""
    whole = made_up(6, n_queries=24)
    runs = {name: fuse_runs(select_rankers(whole, [name]), [1.0], name=name, top=15) for name in whole.rankers}
    rows = whole.relevance > 0
    starts = np.concatenate(([0], np.cumsum(rows)))[whole.starts]
    qrels = Qrels(whole.queries, whole.docs, starts, whole.doc[rows], whole.relevance[rows])
    return align_runs(runs, qrels)
