"""Tiles hold every document once, with true bounds, and can be taken and labelled without copying."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm._math.average_precision import exact_ap, smooth_ap
from genm._math.tiles import (
    TILE,
    Thinner,
    _row_sums,
    build_tiles,
    join,
    mean,
    relabel,
    scale_weights,
    take,
    take_rankers,
)
from genm.errors import InputError


def made(seed, lengths, n_rankers=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    scores = rng.normal(size=(starts[-1], n_rankers))
    relevant = rng.random(starts[-1]) < 0.2
    n_relevant = np.array([relevant[a:b].sum() + 1 for a, b in itertools.pairwise(starts)], np.int64)
    return starts, scores, relevant, build_tiles(starts, scores, relevant, n_relevant, dtype=dtype)


@settings(deadline=None, max_examples=30)
@given(lengths=st.lists(st.integers(0, 200), min_size=1, max_size=8), seed=st.integers(0, 99))
def test_each_query_keeps_its_documents_sorted_by_score_sum(lengths, seed):
    starts, scores, _, tiles = made(seed, lengths)
    for q, (first, last) in enumerate(tiles.tile_spans):
        position = tiles.position[first:last].ravel()
        kept = position >= 0
        assert sorted(position[kept]) == list(range(lengths[q]))
        assert kept.sum() == tiles.sizes[first:last].sum()
        stored = tiles.scores[first:last].transpose(0, 2, 1).reshape(-1, 3)[kept]
        np.testing.assert_array_equal(stored, scores[starts[q] + position[kept]])
        assert (np.diff(stored.sum(axis=1)) <= 0).all()


@settings(deadline=None, max_examples=20)
@given(lengths=st.lists(st.integers(1, 150), min_size=1, max_size=5), seed=st.integers(0, 99))
def test_bounds_are_those_of_the_documents(lengths, seed):
    _, _, _, tiles = made(seed, lengths)
    for t, size in enumerate(tiles.sizes):
        np.testing.assert_array_equal(tiles.low[t], tiles.scores[t, :, :size].min(axis=1))
        np.testing.assert_array_equal(tiles.high[t], tiles.scores[t, :, :size].max(axis=1))
        sums = tiles.scores[t, :, :size].sum(axis=0)
        np.testing.assert_array_equal(tiles.sums[t], [sums.min(), sums.max()])


def test_places_past_the_end_repeat_the_last_document():
    _, _, _, tiles = made(0, [5, TILE + 1])
    assert tiles.sizes.tolist() == [5, TILE, 1]
    for t, size in enumerate(tiles.sizes):
        assert (tiles.scores[t, :, size:] == tiles.scores[t, :, size - 1 : size]).all()
        assert (tiles.position[t, size:] == -1).all()


def test_relevant_documents_come_in_row_order_with_their_tile():
    starts, scores, relevant, tiles = made(1, [100, 0, 70])
    for q, (first, last) in enumerate(tiles.relevant_spans):
        rows = np.flatnonzero(relevant[starts[q] : starts[q + 1]])
        assert tiles.relevant_position[first:last].tolist() == rows.tolist()
        np.testing.assert_array_equal(tiles.relevant_scores[first:last], scores[starts[q] + rows])
        for row, tile in zip(rows, tiles.relevant_tile[first:last], strict=True):
            assert row in tiles.position[tile]


def test_take_shares_scores_and_relabel_marks_the_original_rows():
    starts, scores, relevant, tiles = made(2, [90, 40, 130])
    some = take(tiles, np.array([2, 0, 2]))
    assert some.scores is tiles.scores
    other = np.zeros(len(scores), bool)
    other[[starts[2] + 7, starts[0] + 3]] = True
    labelled = relabel(some, other, np.array([1, 5, 1]))
    assert labelled.relevant_position.tolist() == [7, 3, 7]
    np.testing.assert_array_equal(labelled.relevant_scores, scores[[starts[2] + 7, starts[0] + 3, starts[2] + 7]])
    back = relabel(labelled, relevant, some.n_relevant)
    np.testing.assert_array_equal(
        np.diff(back.relevant_spans, axis=1), np.diff(tiles.relevant_spans, axis=1)[[2, 0, 2]]
    )


def test_some_rankers_keep_documents_and_order():
    *_, tiles = made(3, [70, 3], n_rankers=4)
    some = take_rankers(tiles, [2, 0])
    assert (some.scores == tiles.scores[:, [2, 0]]).all()
    assert (some.relevant_scores == tiles.relevant_scores[:, [2, 0]]).all()
    assert (some.low == some.scores.min(axis=2)).all()
    assert (some.high == some.scores.max(axis=2)).all()
    assert len(some.sums) == 0  # the documents are sorted by the sum over all rankers
    assert some.position is tiles.position
    assert some.scores.flags.c_contiguous


def test_mean_weighs_queries():
    _, _, _, tiles = made(3, [10, 10])
    tiles.query_weights[:] = [1.0, 3.0]
    assert mean(tiles, np.array([0.0, 1.0])) == pytest.approx(0.75)
    np.testing.assert_allclose(mean(tiles, np.array([[0.0, 4.0], [1.0, 0.0]])), [0.75, 1.0])
    tiles.query_weights[:] = 0.0
    assert mean(tiles, np.array([1.0, 1.0])) == 0.0


def test_enormous_scores_are_divided_by_a_power_of_two():
    scores = np.array([[1e300, 1.0], [-3e299, 2.0]])
    tiles = build_tiles(np.array([0, 2]), scores, np.array([True, False]), np.array([1]))
    assert tiles.exponent > 0
    kept = np.ldexp(tiles.scores[0, :, :2], tiles.exponent).T[np.argsort(tiles.position[0, :2])]
    np.testing.assert_array_equal(kept, scores)
    assert np.isfinite(tiles.scores.astype(np.float64) ** 3).all()


def test_float32_rounds_and_scales_by_its_own_range():
    _, _, _, exact = made(4, [50])
    _, _, _, tiles = made(4, [50], dtype=np.float32)
    assert tiles.exponent == 0
    np.testing.assert_array_equal(tiles.scores, exact.scores.astype(np.float32))
    huge = build_tiles(np.array([0, 1]), np.array([[1e300]]), np.array([True]), np.array([1]), dtype=np.float32)
    assert np.isfinite(huge.scores).all()


def test_weights_are_scaled_only_when_enormous():
    _, _, _, tiles = made(5, [5])
    weights = np.array([0.5, -2.0, 7.0])
    assert scale_weights(tiles, weights)[1] == 0
    scaled, exponent = scale_weights(tiles, weights * 1e300)
    np.testing.assert_array_equal(np.ldexp(scaled, exponent), weights * 1e300)
    with pytest.raises(InputError, match="weights must be 3 finite numbers"):
        scale_weights(tiles, np.array([1.0, np.nan, 0.0]))


def test_bad_tables_are_refused():
    starts, relevant, counts = np.array([0, 2]), np.zeros(2, bool), np.array([0])
    with pytest.raises(InputError, match=r"scores must be \(2, rankers\); found \(3, 1\)"):
        build_tiles(starts, np.zeros((3, 1)), relevant, counts)
    with pytest.raises(InputError, match="scores must be finite"):
        build_tiles(starts, np.array([[0.0], [np.inf]]), relevant, counts)
    with pytest.raises(InputError, match="scores must be finite"):
        build_tiles(starts, np.array([[0.0], [np.nan]]), relevant, counts)
    with pytest.raises(InputError, match="query weights must be 1 finite numbers, none below 0"):
        build_tiles(starts, np.zeros((2, 1)), relevant, counts, np.array([-1.0]))
    with pytest.raises(InputError, match="2 rows are relevant, but n_relevant says 1"):
        build_tiles(starts, np.zeros((2, 1)), np.ones(2, bool), np.array([1]))
    with pytest.raises(InputError, match="n_relevant has 2 entries for 1 queries"):
        build_tiles(starts, np.zeros((2, 1)), relevant, np.array([1, 1]))
    with pytest.raises(InputError, match="relevant marks 1 rows"):
        build_tiles(starts, np.zeros((2, 1)), np.ones(1, bool), np.array([1]))


def test_many_rows_are_stored_in_several_steps(monkeypatch):
    monkeypatch.setattr("genm._math.tiles._ROWS_AT_ONCE", 100)
    lengths = [0, 30, 90, 250, 0, 1, 5]
    _, _, _, stepped = made(6, lengths)
    monkeypatch.undo()
    _, _, _, whole = made(6, lengths)
    np.testing.assert_array_equal(stepped.scores, whole.scores)
    np.testing.assert_array_equal(stepped.position, whole.position)


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
    thin, variances = thinner.thin(kept[thinner.row], columns)
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
    assert variances == pytest.approx([x.var() for x in spread if len(x) > 1])


@pytest.mark.parametrize("n_rankers", [1, 7, 8, 9, 16, 23, 128, 129])
def test_rows_are_summed_to_the_bit_as_numpy_sums_them(n_rankers):
    rng = np.random.default_rng(n_rankers)
    block = rng.normal(size=(50, n_rankers)) * 10.0 ** rng.integers(-8, 9, (50, n_rankers))
    assert _row_sums(block).tobytes() == block.sum(axis=1).tobytes()


@settings(deadline=None, max_examples=25)
@given(
    lengths=st.lists(st.integers(0, 250), min_size=2, max_size=7),
    cut=st.integers(1, 6),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_joined_blocks_are_the_tiles_of_all_queries(lengths, cut, seed, dtype):
    starts, scores, relevant, whole = made(seed, lengths, dtype=dtype)
    parts = []
    for first, last in itertools.pairwise([0, min(cut, len(lengths) - 1), len(lengths)]):
        rows = slice(starts[first], starts[last])
        own = starts[first : last + 1] - starts[first]
        n_relevant = whole.n_relevant[first:last]
        parts.append(build_tiles(own, scores[rows], relevant[rows], n_relevant, dtype=dtype))
    joined = join(parts)
    for name in type(whole).__slots__:
        one, other = getattr(joined, name), getattr(whole, name)
        if isinstance(other, np.ndarray):
            assert (one.tobytes(), one.shape, one.dtype) == (other.tobytes(), other.shape, other.dtype), name


def test_tiles_of_different_scales_are_not_joined():
    small, great = made(0, [3])[3], made(0, [3])[3]
    with pytest.raises(InputError, match="different exponents"):
        join([small, replace(great, exponent=5)])
