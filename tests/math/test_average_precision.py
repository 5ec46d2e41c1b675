"""Smoothed average precision over tiles: by hand, against the oracle, by differences, and at the edges."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thread_counts import use_threads

from genm._math.average_precision import (
    QueryGradients,
    exact_ap,
    exact_ap_each,
    exact_ranks,
    smooth_ap,
    smooth_ap_one,
    smooth_map,
    store_of,
    top_positions,
)
from genm._math.average_precision_kernels import Bounds, bound_tile, level_weights
from genm._math.fusion import weighted_sum
from genm._math.tiles import build_tiles, mean, relabel, take
from genm.errors import InputError


class Case:
    """Random ragged queries, with relevant documents nobody retrieved and uneven query weights."""

    def __init__(self, seed, lengths, n_rankers, *, share=0.15, levels=None, dtype=np.float64):
        rng = np.random.default_rng(seed)
        self.starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        n = self.starts[-1]
        self.scores = (
            rng.random((n, n_rankers)) if levels is None else rng.integers(0, levels, (n, n_rankers)) / levels
        )
        self.scores = self.scores.astype(dtype).astype(np.float64)
        self.relevant = rng.random(n) < share
        found = [self.relevant[a:b].sum() for a, b in itertools.pairwise(self.starts)]
        self.n_relevant = np.array(found, np.int64) + rng.integers(0, 3, len(lengths))
        self.query_weights = rng.random(len(lengths)) + 0.1
        self.weights = rng.normal(0.4, 0.4, n_rankers)
        self.tiles = build_tiles(
            self.starts, self.scores, self.relevant, self.n_relevant, self.query_weights, dtype=dtype
        )

    def oracle(self, beta, weights=None, **options):
        weights = self.weights if weights is None else weights
        parts = [
            oracles.smooth_ap(self.scores[a:b], self.relevant[a:b], n, weights, beta, **options)
            for (a, b), n in zip(itertools.pairwise(self.starts), self.n_relevant, strict=True)
        ]
        value, gradient, hessian = (np.array(part) for part in zip(*parts, strict=True))
        share = self.query_weights / self.query_weights.sum()
        return value, gradient, np.einsum("q,qkl->kl", share, hessian)


def close(found, wanted, tolerance=1e-10, unit=1.0):
    """Compare with the greatest number wanted; where all nearly vanish, with the rounding of 1 times the unit."""
    limit = tolerance * np.abs(wanted).max(initial=0.0) + 1e-15 * unit
    np.testing.assert_allclose(found, wanted, rtol=0, atol=limit)


def test_two_documents_by_hand():
    # The relevant document trails by 0.1, so beta s = -ln 3 gives g = 3/4: R = 7/4 and AP = 4/7.
    # dR = -beta s g (1 - g) = beta 0.1 3/16, so the gradient is -beta 0.1 (3/16) (16/49).
    beta = np.log(3.0) / 0.1
    scores = np.array([[0.6], [0.5]])
    tiles = build_tiles(np.array([0, 2]), scores, np.array([False, True]), np.array([1]))
    found = smooth_ap(tiles, np.ones(1), beta, order=2)
    assert found.value[0] == pytest.approx(4 / 7, rel=1e-14)
    assert found.gradient[0, 0] == pytest.approx(-np.log(3.0) * 3 / 49, rel=1e-13)
    # ddR = s^2 beta^2 g (1 - g) (1 - 2 g) = -(ln 3)^2 3/32; -ddR / R^2 + 2 dR^2 / R^3
    assert found.hessian[0, 0] == pytest.approx(
        np.log(3.0) ** 2 * (3 / 32 * 16 / 49 + 2 * (3 / 16) ** 2 * (4 / 7) ** 3), rel=1e-13
    )


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    lengths=st.lists(st.integers(0, 150), min_size=1, max_size=4),
    n_rankers=st.sampled_from([1, 2, 3, 5]),
    beta=st.sampled_from([0.0, 0.5, 10.0, 60.0, 200.0, 1000.0, 1e5]),
    levels=st.sampled_from([None, 4]),
    smooth_j=st.booleans(),
)
def test_value_gradient_and_hessian_equal_the_oracle(seed, lengths, n_rankers, beta, levels, smooth_j):
    case = Case(seed, lengths, n_rankers, levels=levels)
    if beta > 1000.0:  # rounding times beta must stay small, or tied documents differ in the oracle
        case.weights = np.round(case.weights * 64) / 64
        case.scores = np.round(case.scores * 64) / 64
        case.tiles = build_tiles(case.starts, case.scores, case.relevant, case.n_relevant, case.query_weights)
    value, gradient, hessian = case.oracle(beta, smooth_j=smooth_j)
    for order in (0, 1, 2):
        found = smooth_ap(case.tiles, case.weights, beta, order=order, smooth_j=smooth_j)
        close(found.value, value, 1e-12)
        if order:
            close(found.gradient, gradient, unit=beta)
        if order == 2:
            close(found.hessian, hessian, unit=beta**2)


@pytest.mark.parametrize("beta", [30.0, 200.0, 900.0, 20_000.0])
def test_a_long_query_uses_every_branch_and_equals_the_oracle(beta):
    case = Case(3, [1500], 4, share=0.006)
    found, (value, gradient, hessian) = smooth_ap(case.tiles, case.weights, beta, order=2), case.oracle(beta)
    close(found.value, value, 1e-12)
    close(found.gradient, gradient)
    close(found.hessian, hessian)


def test_sixty_four_rankers():
    case = Case(5, [200, 90], 64)
    value, gradient, hessian = case.oracle(20.0)
    found = smooth_ap(case.tiles, case.weights, 20.0, order=2)
    close(found.value, value)
    close(found.gradient, gradient)
    close(found.hessian, hessian)


@pytest.mark.parametrize("smooth_j", [False, True])
def test_derivatives_agree_with_central_differences(smooth_j):
    case = Case(7, [120, 64, 200], 3)
    beta, step = 25.0, 1e-5

    def objective(weights):
        return mean(case.tiles, smooth_ap(case.tiles, weights, beta, smooth_j=smooth_j).value)

    def slope(weights):
        return mean(case.tiles, smooth_ap(case.tiles, weights, beta, order=1, smooth_j=smooth_j).gradient)

    found = smooth_ap(case.tiles, case.weights, beta, order=2, smooth_j=smooth_j)
    steps = step * np.eye(3)
    # The sorted position is frozen only where no two relevant documents swap; this point is such a one.
    by_value = [(objective(case.weights + h) - objective(case.weights - h)) / (2 * step) for h in steps]
    by_slope = [(slope(case.weights + h) - slope(case.weights - h)) / (2 * step) for h in steps]
    np.testing.assert_allclose(mean(case.tiles, found.gradient), by_value, rtol=1e-6)
    np.testing.assert_allclose(found.hessian, by_slope, rtol=1e-5, atol=1e-7)


def test_the_sorted_position_has_kinks_and_the_smoothed_one_has_none():
    # Two relevant documents that swap at weights (1/2, 1/2), with others between.
    scores = np.array([[0.6, 0.4], [0.4, 0.6], [0.55, 0.3], [0.2, 0.56]])
    tiles = build_tiles(np.array([0, 4]), scores, np.array([True, True, False, False]), np.array([2]))
    across = np.array([1.0, -1.0])

    def jump(smooth_j):
        left, right = (
            smooth_ap(tiles, 0.5 + e * across, 30.0, order=1, smooth_j=smooth_j).gradient[0] @ across
            for e in (-1e-7, 1e-7)
        )
        return abs(left - right)

    assert jump(False) > 0.1
    assert jump(True) < 1e-3


def test_order_of_documents_and_rankers_does_not_matter():
    case = Case(11, [150, 70], 4)
    rng = np.random.default_rng(0)
    rows = np.concatenate([a + rng.permutation(b - a) for a, b in itertools.pairwise(case.starts)])
    columns = rng.permutation(4)
    moved = build_tiles(
        case.starts, case.scores[rows][:, columns], case.relevant[rows], case.n_relevant, case.query_weights
    )
    here, there = (
        smooth_ap(case.tiles, case.weights, 80.0, order=2),
        smooth_ap(moved, case.weights[columns], 80.0, order=2),
    )
    close(there.value, here.value, 1e-13)
    close(there.gradient, here.gradient[:, columns], 1e-12)
    close(there.hessian, here.hessian[np.ix_(columns, columns)], 1e-12)


def test_a_shift_of_a_ranker_costs_no_digits():
    case = Case(13, [200], 2)
    moved = build_tiles(case.starts, case.scores + 1024.0, case.relevant, case.n_relevant, case.query_weights)
    weights = np.array([0.5, 0.25])
    here, there = smooth_ap(case.tiles, weights, 20.0, order=2), smooth_ap(moved, weights, 20.0, order=2)
    close(there.gradient, here.gradient, 1e-9)
    close(there.hessian, here.hessian, 1e-9)


@pytest.mark.parametrize("threads", ["2", "3"])
def test_threads_do_not_change_a_bit_average_precision(monkeypatch, threads):
    rng = np.random.default_rng(1)
    case = Case(17, rng.integers(1, 400, 600), 3)
    use_threads(monkeypatch, "1")
    one = smooth_ap(case.tiles, case.weights, 90.0, order=2)
    first = smooth_ap(case.tiles, case.weights, 90.0, order=1)
    use_threads(monkeypatch, threads)
    many = smooth_ap(case.tiles, case.weights, 90.0, order=2)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(smooth_ap(case.tiles, case.weights, 90.0, order=1).gradient, first.gradient)


def test_a_taken_query_has_the_value_it_had():
    case = Case(19, [30, 200, 90], 3)
    whole = smooth_ap(case.tiles, case.weights, 50.0, order=1)
    some = smooth_ap(take(case.tiles, np.array([2, 0])), case.weights, 50.0, order=1)
    np.testing.assert_array_equal(some.value, whole.value[[2, 0]])
    np.testing.assert_array_equal(some.gradient, whole.gradient[[2, 0]])


@settings(deadline=None, max_examples=60)
@given(
    scale=st.sampled_from([1e-300, 1e-20, 1.0, 1e20, 1e160, 1e300]),
    spread=st.sampled_from([1e-300, 1.0, 1e150, 1e300]),
    beta=st.sampled_from([0.0, 1e-300, 1.0, 1e6, 1e300]),
    weight=st.sampled_from([0.0, 1e-300, 1.0, -1.0, 1e200, 1e308]),
    smooth_j=st.booleans(),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_no_finite_input_gives_nan(scale, spread, beta, weight, smooth_j, dtype):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(150, 2)) * [scale, spread]
    relevant = rng.random(150) < 0.1
    tiles = build_tiles(np.array([0, 149, 150]), scores, relevant, np.array([40, 1]), dtype=dtype)
    found = smooth_ap(tiles, np.array([weight, 1.0]), beta, order=2, smooth_j=smooth_j)
    for part in found:
        assert np.isfinite(part).all()
    assert (found.value >= 0).all()
    assert (found.value <= 1 + 1e-12).all()


def test_ties_share_their_ranks_however_sharp_the_sigmoid():
    # Three tied documents, one of them relevant: R = 1 + 1/2 + 1/2.
    scores = np.array([[0.1, 0.7], [0.1, 0.7], [0.1, 0.7], [0.0, 0.1]])
    tiles = build_tiles(np.array([0, 4]), scores, np.array([False, True, False, False]), np.array([1]))
    assert smooth_ap(tiles, np.array([0.3, 0.7]), 1e300).value[0] == 0.5


def test_great_beta_gives_exact_average_precision():
    case = Case(23, [100, 250], 3)
    wanted = [
        oracles.average_precision(case.scores[a:b], case.relevant[a:b], n, case.weights)
        for (a, b), n in zip(itertools.pairwise(case.starts), case.n_relevant, strict=True)
    ]
    np.testing.assert_allclose(smooth_ap(case.tiles, case.weights, 1e14).value, wanted, rtol=1e-12)


def test_float32_storage_is_exact_about_the_rounded_scores():
    case = Case(29, [300, 80], 4, dtype=np.float32)
    value, gradient, hessian = case.oracle(100.0)
    found = smooth_ap(case.tiles, case.weights, 100.0, order=2)
    close(found.value, value)
    close(found.gradient, gradient)
    close(found.hessian, hessian)


def test_float32_storage_is_near_the_unrounded_scores():
    case = Case(31, [300, 80], 4)
    tiles = build_tiles(
        case.starts, case.scores, case.relevant, case.n_relevant, case.query_weights, dtype=np.float32
    )
    wide = smooth_ap(case.tiles, case.weights, 100.0, order=2)
    narrow = smooth_ap(tiles, case.weights, 100.0, order=2)
    close(narrow.value, wide.value, 1e-5)
    close(narrow.gradient, wide.gradient, 1e-4)
    close(narrow.hessian, wide.hessian, 1e-3)
    assert (narrow.value != wide.value).any()


def test_a_small_window_cuts_sigmoids():
    case = Case(37, [400], 3)
    exact = smooth_ap(case.tiles, case.weights, 200.0).value
    close(smooth_ap(case.tiles, case.weights, 200.0, window=21.0).value, exact, 1e-6)
    cut = smooth_ap(case.tiles, case.weights, 200.0, window=1.0).value
    assert np.abs(cut - exact).max() > 1e-6


def test_queries_without_relevant_rows_are_zero():
    scores = np.random.default_rng(0).random((70, 2))
    tiles = build_tiles(np.array([0, 0, 70]), scores, np.zeros(70, bool), np.array([2, 0]))
    for smooth_j in (False, True):
        found = smooth_ap(tiles, np.ones(2), 10.0, order=2, smooth_j=smooth_j)
        assert not found.value.any()
        assert not found.gradient.any()
        assert not found.hessian.any()


def test_threads_that_evaluate_the_same_queries_do_not_share_memory():
    tiles, rng = Case(5, [90] * 20, 4).tiles, np.random.default_rng(5)
    points = rng.dirichlet(np.ones(4), 200)
    alone = [smooth_map(tiles, one, 100.0)[0] for one in points]
    with ThreadPoolExecutor(4) as pool:
        assert [value for value, _ in pool.map(lambda one: smooth_map(tiles, one, 100.0), points)] == alone


def test_no_queries_at_all():
    tiles = build_tiles(np.array([0]), np.zeros((0, 2)), np.zeros(0, bool), np.zeros(0, np.int64))
    found = smooth_ap(tiles, np.ones(2), 10.0, order=2)
    assert found.value.shape == (0,)
    assert found.hessian.shape == (2, 2)
    assert not found.hessian.any()


@pytest.mark.parametrize("smooth_j", [False, True])
def test_one_query_at_a_time_equals_all_at_once(smooth_j):
    case = Case(41, [90, 130], 3)
    found = smooth_ap(case.tiles, case.weights, 60.0, order=1, smooth_j=smooth_j)
    for q, (a, b) in enumerate(itertools.pairwise(case.starts)):
        value, gradient = smooth_ap_one(
            case.scores[a:b], case.relevant[a:b], int(case.n_relevant[q]), case.weights, 60.0, smooth_j=smooth_j
        )
        assert value == found.value[q]
        np.testing.assert_array_equal(gradient, found.gradient[q])


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    lengths=st.lists(st.integers(1, 200), min_size=1, max_size=6),
    beta=st.sampled_from([0.0, 30.0, 200.0, 20_000.0]),
    scale=st.sampled_from([1.0, 1e200]),
)
def test_gradients_of_one_query_after_another_have_the_bits_of_each_query_alone(seed, lengths, beta, scale):
    case = Case(seed, lengths, 4)
    tiles = build_tiles(case.starts, case.scores * scale, case.relevant, case.n_relevant)
    draw, gradients = np.random.default_rng(seed), QueryGradients(tiles, beta)
    for q in range(tiles.n_queries):
        weights = draw.normal(size=4) * scale
        alone = smooth_ap(take(tiles, np.array([q])), weights, beta, order=1)
        value, gradient = gradients.at(q, weights)
        assert value == alone.value[0]
        assert gradient.tobytes() == alone.gradient[0].tobytes()


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 999),
    st.sampled_from([1, 2, 7, 8, 9, 17, 30, 127, 128, 129, 150]),
    st.integers(1, 10),
    st.sampled_from([0.0, 20.0, 200.0, 1e70]),
    st.sampled_from([1.0, 1e40]),
)
def test_the_mean_over_few_queries_has_the_bits_of_numpys(seed, n_queries, n_rankers, beta, scale):
    lengths = np.random.default_rng(seed).integers(0, 80, n_queries)
    case = Case(seed, [70, *lengths[1:]], n_rankers)
    tiles, weights, columns = case.tiles, case.weights * scale, list(range(n_rankers))
    found = smooth_ap(tiles, weights, beta, order=1, window=8.0)
    for in_eights, gradients in ((False, found.gradient), (True, found.gradient[:, columns])):
        value, gradient = smooth_map(tiles, weights, beta, window=8.0, in_eights=in_eights)
        assert value == float(mean(tiles, found.value))
        np.testing.assert_array_equal(gradient, mean(tiles, gradients))


def test_bad_options_are_refused():
    case = Case(43, [20], 2)
    with pytest.raises(InputError, match="order=3: expected 0"):
        smooth_ap(case.tiles, case.weights, 1.0, order=3)
    with pytest.raises(InputError, match=r"beta=-1\.0: expected a finite number"):
        smooth_ap(case.tiles, case.weights, -1.0)
    with pytest.raises(InputError, match="beta=nan"):
        smooth_ap(case.tiles, case.weights, float("nan"))
    with pytest.raises(InputError, match=r"window=0\.0: expected a number above 0"):
        smooth_ap(case.tiles, case.weights, 1.0, window=0.0)
    with pytest.raises(InputError, match="weights must be 2 finite numbers"):
        smooth_ap(case.tiles, np.ones(3), 1.0)


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
    kind=st.sampled_from(["positive", "any", "zero", "equal", "nearly equal"]),
)
def test_equals_sorting_with_and_without_ties(seed, lengths, n_rankers, levels, kind):
    starts, scores, relevant, n_relevant, rng = made(seed, lengths, n_rankers, levels)
    weights = {
        "positive": rng.random(n_rankers),
        "any": rng.normal(size=n_rankers),
        "zero": np.zeros(n_rankers),
        "equal": np.full(n_rankers, 1.0 / n_rankers),
        "nearly equal": np.full(n_rankers, 0.3) + rng.normal(size=n_rankers) * 1e-16,
    }[kind]
    tiles = build_tiles(starts, scores, relevant, n_relevant)
    np.testing.assert_array_equal(
        exact_ap(tiles, weights), by_sorting(starts, scores, relevant, n_relevant, weights)
    )
    found, fused = exact_ranks(tiles, weights), weighted_sum(scores, weights)
    for q, (a, b) in enumerate(itertools.pairwise(starts)):
        wanted = np.flatnonzero(relevant[a:b][np.argsort(-fused[a:b], kind="stable")]) + 1
        assert found.ranks[found.starts[q] : found.starts[q + 1]].tolist() == wanted.tolist()


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 999),
    lengths=st.lists(st.integers(0, 200), min_size=1, max_size=5),
    levels=st.sampled_from([2, 5, 1000]),
    n=st.integers(1, 12),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_the_best_documents_are_those_of_a_stable_sort(seed, lengths, levels, n, dtype):
    rng = np.random.default_rng(seed)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    scores = rng.integers(-levels, levels, (starts[-1], 3)).astype(np.float64)
    nothing = np.zeros(starts[-1], np.bool_), np.zeros(len(lengths), np.int64)
    weights = rng.normal(size=3)
    found = top_positions(build_tiles(starts, scores, *nothing, dtype=dtype), weights, n)
    fused = weighted_sum(scores, weights)
    for q, (first, last) in enumerate(itertools.pairwise(starts)):
        best = np.argsort(-fused[first:last], kind="stable")[:n].tolist()
        assert found[q].tolist() == best + [-1] * (n - len(best))


@numba.njit(_nrt=False)  # as the kernels that call these parts
def bounds_of(store, weights, above, found):
    level, slack = level_weights(store, weights, above)
    bounds = Bounds(store.low, store.high, store.sums, above, level, slack)
    for tile in range(len(found)):
        found[tile, 0], found[tile, 1] = bound_tile(bounds, tile)
    return level


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    n_rankers=st.integers(1, 9),
    size=st.sampled_from([1e-318, 1e-200, 1.0, 1e200]),
    apart=st.sampled_from([0.0, 1e-17, 1e-3, 1.0]),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_no_fused_score_is_outside_the_bounds_of_its_tile(seed, n_rankers, size, apart, dtype):
    rng = np.random.default_rng(seed)
    scores = size * rng.normal(size=(300, n_rankers)) * 10.0 ** rng.integers(-8, 1, n_rankers)
    tiles = build_tiles(np.array([0, 300]), scores, np.zeros(300, bool), np.array([0]), dtype=dtype)
    weights = np.full(n_rankers, 1.0 / n_rankers) + apart * rng.normal(size=n_rankers)
    found = np.empty((len(tiles.scores), 2))
    level = bounds_of(store_of(tiles), weights, np.empty(len(weights)), found)
    assert level > 0.0 or apart > 0.0
    for tile, (least, greatest) in enumerate(found):
        fused = weighted_sum(np.ascontiguousarray(tiles.scores[tile].T, np.float64), weights)
        assert least <= fused.min()
        assert greatest >= fused.max()


def test_equal_weights_have_bounds_as_narrow_as_the_tile():
    rng = np.random.default_rng(2)
    tiles = build_tiles(np.array([0, 6400]), rng.random((6400, 4)), np.zeros(6400, bool), np.array([0]))
    found = np.empty((100, 2))
    bounds_of(store_of(tiles), np.full(4, 0.25), np.empty(4), found)
    fused = tiles.scores.mean(axis=1)
    np.testing.assert_allclose(found, np.stack((fused.min(axis=1), fused.max(axis=1)), axis=1), atol=1e-12)


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
    use_threads(monkeypatch, threads)
    tiles = build_tiles(starts, scores, relevant, n_relevant)
    np.testing.assert_array_equal(
        exact_ap(tiles, weights), by_sorting(starts, scores, relevant, n_relevant, weights)
    )


@settings(deadline=None, max_examples=20)
@given(lengths=st.lists(st.integers(0, 200), min_size=1, max_size=8), seed=st.integers(0, 99))
def test_several_weights_at_a_time_are_each_evaluated_to_the_bit(lengths, seed):
    case = Case(seed, lengths, 3, levels=5)
    weights = np.random.default_rng(seed).normal(size=(4, 3)) * [[1.0], [1e40], [0.0], [1.0]]
    wanted = [exact_ap(case.tiles, one) for one in weights]
    np.testing.assert_array_equal(exact_ap_each(case.tiles, weights), wanted)


def test_several_weights_on_several_threads_are_the_same(monkeypatch):
    case = Case(3, [300] * 40, 4)
    weights = np.random.default_rng(3).dirichlet(np.ones(4), 6)
    use_threads(monkeypatch, "3")
    monkeypatch.setattr("genm._math.average_precision._BLOCK_BYTES", 1 << 15)  # several blocks for each thread
    wanted = [exact_ap(case.tiles, one) for one in weights]
    np.testing.assert_array_equal(exact_ap_each(case.tiles, weights), wanted)
