"""The calls that compile the kernels ahead of their use: `python -m genm.cli.warmup [exact]`."""

import gc
import sys

import numpy as np

from genm._math.average_precision import exact_ap, smooth_ap, smooth_map
from genm._math.exact.branch_and_bound import best_weights
from genm._math.fusion import weighted_sum
from genm._math.sorting import rank_order
from genm._math.tiles import build_tiles
from genm.align import Aligned
from genm.cli.compilation import EXACT
from genm.cli.main import OBJECTS_PER_COLLECTION
from genm.evaluate import AlignedEvaluator, Measure
from genm.ids import Ids
from genm.learn import ExactFuser
from genm.learn.exact import gain_problem
from genm.normalizers import Normalizer


def compile_learning() -> None:
    """Call every kernel that learning needs once, on a query with two documents."""
    aligned, weights = _smallest(), np.array([0.5, 0.5])
    tiles = build_tiles(aligned.starts, aligned.scores, np.array([True, False]), np.array([1]))
    smooth_ap(tiles, weights, 1.0, order=1)
    smooth_map(tiles, weights, 1.0)
    exact_ap(tiles, weights)
    AlignedEvaluator(aligned, "AP").values(weights)
    rank_order(aligned.starts, weighted_sum(aligned.scores, weights), np.zeros(2, np.int32))


def compile_exact() -> None:
    """Learn once by exact search, certified: it begins from what the smooth fusers learn, so theirs come too."""
    aligned = _smallest()
    ExactFuser(certify=True).fit(aligned)
    best_weights(gain_problem(aligned, Measure("AP")))


def _smallest() -> Aligned:
    """Return one query with two documents and two rankers that disagree."""
    starts, scores = np.array([0, 2]), np.array([[0.0, 1.0], [1.0, 0.5]])
    return Aligned(
        rankers=("a", "b"),
        queries=Ids.of(["q"]),
        docs=Ids.of(["d", "e"]),
        starts=starts,
        doc=np.array([1, 0], np.int32),
        raw=scores,
        retrieved=np.ones((2, 2), np.bool_),
        scores=scores,
        normalizers=(Normalizer(), Normalizer()),
        depths=(None, None),
        labelled=True,
        relevance=np.array([1, 0], np.int32),
        unretrieved_starts=np.array([0, 0]),
        unretrieved=np.zeros(0, np.int32),
        query_weights=np.ones(1),
    )


if __name__ == "__main__":
    gc.set_threshold(OBJECTS_PER_COLLECTION)
    compile_learning()
    if EXACT in sys.argv:
        compile_exact()
