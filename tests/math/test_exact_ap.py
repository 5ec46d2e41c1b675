"""Exact average precision without sorting equals sorting, to the last bit, however many ties there are."""

import itertools

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm._math.exact_ap import exact_ap, exact_ranks
from genm._math.tiles import build_tiles, relabel, take
from genm._math.weighted import weighted_sum


def by_sorting(starts, scores, relevant, n_relevant, weights):
    """Sort each query's fused scores downwards; a stable sort leaves ties in row order."""
    fused, values = weighted_sum(scores, weights), []
    for (a, b), n in zip(itertools.pairwise(starts), n_relevant, strict=True):
        hits = relevant[a:b][np.argsort(-fused[a:b], kind="stable")]
        total = 0.0
        for found, rank in enumerate(np.flatnonzero(hits) + 1, start=1):
            total += found / rank
        values.append(total / n if n else 0.0)
    return np.array(values)


def made(seed, lengths, n_rankers, levels):
    rng = np.random.default_rng(seed)
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    scores = rng.integers(0, levels, (starts[-1], n_rankers)) / 7.3
    relevant = rng.random(starts[-1]) < 0.15
    n_relevant = np.array([relevant[a:b].sum() for a, b in itertools.pairwise(starts)], np.int64)
    return starts, scores, relevant, n_relevant + rng.integers(0, 3, len(lengths)), rng


def test_three_tied_documents_by_hand():
    # Ranks 1, 2, 3 in row order; relevant are rows 0 and 2: (1/1 + 2/3) / 2. Eq. (1) would give (1 + 2) / 2.
    tiles = build_tiles(np.array([0, 3]), np.full((3, 2), 0.5), np.array([True, False, True]), np.array([2]))
    assert exact_ap(tiles, np.array([0.4, 0.6]))[0] == (1 + 2 / 3) / 2


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    lengths=st.lists(st.integers(0, 300), min_size=1, max_size=6),
    n_rankers=st.sampled_from([1, 2, 4]),
    levels=st.sampled_from([1, 2, 3, 10, 10**9]),
    sign=st.sampled_from(["positive", "any", "zero"]),
)
def test_equals_sorting_with_and_without_ties(seed, lengths, n_rankers, levels, sign):
    starts, scores, relevant, n_relevant, rng = made(seed, lengths, n_rankers, levels)
    weights = {"positive": rng.random(n_rankers), "any": rng.normal(size=n_rankers), "zero": np.zeros(n_rankers)}[
        sign
    ]
    tiles = build_tiles(starts, scores, relevant, n_relevant)
    np.testing.assert_array_equal(
        exact_ap(tiles, weights), by_sorting(starts, scores, relevant, n_relevant, weights)
    )
    found, fused = exact_ranks(tiles, weights), weighted_sum(scores, weights)
    for q, (a, b) in enumerate(itertools.pairwise(starts)):
        wanted = np.flatnonzero(relevant[a:b][np.argsort(-fused[a:b], kind="stable")]) + 1
        assert found.ranks[found.starts[q] : found.starts[q + 1]].tolist() == wanted.tolist()


def test_equals_the_slow_reading_of_p1():
    starts, scores, relevant, n_relevant, rng = made(3, [40, 1, 70], 3, 5)
    weights = rng.random(3)
    wanted = [
        oracles.average_precision(scores[a:b], relevant[a:b], int(n), weights)
        for (a, b), n in zip(itertools.pairwise(starts), n_relevant, strict=True)
    ]
    np.testing.assert_array_equal(exact_ap(build_tiles(starts, scores, relevant, n_relevant), weights), wanted)


def test_sums_that_tie_only_after_rounding_tie_here_too():
    # 0.1 + 0.2 + 0.3 differs from 0.3 + 0.2 + 0.1 in the last bit; equal rows never differ.
    rows = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.1, 0.2, 0.3]] * 50)
    relevant = np.arange(150) % 7 == 3
    n = np.array([relevant.sum()])
    tiles = build_tiles(np.array([0, 150]), rows, relevant, n)
    weights = np.ones(3)
    np.testing.assert_array_equal(exact_ap(tiles, weights), by_sorting([0, 150], rows, relevant, n, weights))


def test_weights_scaled_together_rank_the_same():
    starts, scores, relevant, n_relevant, rng = made(5, [200, 90], 3, 10**9)
    tiles, weights = build_tiles(starts, scores, relevant, n_relevant), rng.random(3)
    wanted = exact_ap(tiles, weights)
    for factor in (2.0**-40, 8.0, 2.0**900):
        np.testing.assert_array_equal(exact_ap(tiles, weights * factor), wanted)


def test_enormous_scores_are_ranked():
    scores = np.array([[1e300, 3.0], [1.5e300, 1.0], [-1e300, 2.0]])
    tiles = build_tiles(np.array([0, 3]), scores, np.array([True, False, False]), np.array([1]))
    assert exact_ap(tiles, np.array([1.0, 0.0]))[0] == 0.5
    assert exact_ap(tiles, np.array([1e8, 0.0]))[0] == 0.5
    assert exact_ap(tiles, np.array([0.0, 1.0]))[0] == 1.0


def test_float32_ranks_the_rounded_scores():
    starts, scores, relevant, n_relevant, rng = made(7, [150, 80], 3, 10**9)
    weights = rng.random(3)
    tiles = build_tiles(starts, scores, relevant, n_relevant, dtype=np.float32)
    rounded = scores.astype(np.float32).astype(np.float64)
    np.testing.assert_array_equal(
        exact_ap(tiles, weights), by_sorting(starts, rounded, relevant, n_relevant, weights)
    )


def test_rankers_in_another_order_give_the_same_up_to_rounding():
    starts, scores, relevant, n_relevant, rng = made(9, [150, 80], 4, 10**9)
    weights, columns = rng.random(4), rng.permutation(4)
    np.testing.assert_allclose(
        exact_ap(build_tiles(starts, scores[:, columns], relevant, n_relevant), weights[columns]),
        exact_ap(build_tiles(starts, scores, relevant, n_relevant), weights),
        rtol=1e-12,
    )


def test_taken_and_relabelled_queries():
    starts, scores, relevant, n_relevant, rng = made(11, [150, 80, 10], 2, 50)
    tiles, weights = build_tiles(starts, scores, relevant, n_relevant), rng.random(2)
    np.testing.assert_array_equal(
        exact_ap(take(tiles, np.array([2, 0])), weights), exact_ap(tiles, weights)[[2, 0]]
    )
    other = rng.random(len(scores)) < 0.3
    counts = np.array([other[a:b].sum() for a, b in itertools.pairwise(starts)])
    np.testing.assert_array_equal(
        exact_ap(relabel(tiles, other, counts), weights), by_sorting(starts, scores, other, counts, weights)
    )


@pytest.mark.parametrize("threads", ["1", "2"])
def test_threads_do_not_change_a_bit(monkeypatch, threads):
    starts, scores, relevant, n_relevant, rng = made(13, [300] * 300, 3, 40)
    weights = rng.random(3)
    monkeypatch.setenv("GENM_THREADS", threads)
    tiles = build_tiles(starts, scores, relevant, n_relevant)
    np.testing.assert_array_equal(
        exact_ap(tiles, weights), by_sorting(starts, scores, relevant, n_relevant, weights)
    )
