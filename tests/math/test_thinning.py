"""Thinner tiles hold the documents that are kept, and measure as if they had been built of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm._math.average_precision import smooth_ap
from genm._math.exact_ap import exact_ap
from genm._math.thinning import Thinner
from genm._math.tiles import build_tiles, take


@settings(deadline=None, max_examples=25)
@given(lengths=st.lists(st.integers(0, 150), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_thinned_or_built_anew_is_all_one(lengths, seed):
    rng = np.random.default_rng(seed)
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    scores = rng.integers(0, 6, size=(starts[-1], 3)) / 4.0  # with ties
    relevant, kept, columns = rng.random(starts[-1]) < 0.2, rng.random(starts[-1]) < rng.random(), [2, 0]
    n_relevant = np.array([relevant[a:b].sum() + 1 for a, b in itertools.pairwise(starts)], np.int64)
    some = rng.permutation(len(lengths))[: max(1, len(lengths) // 2)]
    tiles = take(build_tiles(starts, scores, relevant, n_relevant), some)
    thinner = Thinner(tiles)
    thin = thinner.thin(kept[thinner.row], columns)
    begins = np.concatenate(([0], np.cumsum(kept)))[starts]
    fewer = np.ascontiguousarray(scores[kept][:, columns])
    anew = take(build_tiles(begins, fewer, relevant[kept], n_relevant), some)
    weights = rng.dirichlet(np.ones(2))
    assert (exact_ap(thin, weights) == exact_ap(anew, weights)).all()
    here, there = (smooth_ap(t, weights, 20.0, order=1) for t in (thin, anew))
    assert here.value == pytest.approx(there.value, abs=1e-9)
    assert here.gradient == pytest.approx(there.gradient, abs=1e-7)
    fused = fewer.mean(axis=1)
    spread = [fused[begins[q] : begins[q + 1]] for q in some.tolist()]
    assert thinner.variances(kept[thinner.row], columns) == pytest.approx([x.var() for x in spread if len(x) > 1])
