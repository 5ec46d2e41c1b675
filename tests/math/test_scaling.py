import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from thread_counts import use_threads

from genm._math.scaling import KINDS, MODES, rank_lists, scale_lists
from genm.normalizers import ENGINES, Normalizer, kernel_rules

LARGEST = float(np.finfo(np.float64).max)


def scaled(scores: list[float | None], normalizer: Normalizer) -> list[float]:
    """Normalise one list; None stands for a document that the ranker did not return."""
    raw = np.array([[0.0 if s is None else s] for s in scores]).reshape(-1, 1)
    retrieved = np.array([[s is not None] for s in scores], np.bool_).reshape(-1, 1)
    starts = np.array([0, len(scores)])
    return scale_lists(raw, retrieved, starts, kernel_rules([normalizer]))[:, 0].tolist()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("none", [1.0, 4.0, 0.0, 3.0, -4.0]),
        ("minmax", [5 / 8, 1.0, 0.0, 7 / 8, 0.0]),
        ("max", [1 / 4, 1.0, 0.0, 3 / 4, -1.0]),
        ("sum", [5 / 20, 8 / 20, 0.0, 7 / 20, 0.0]),
        ("zscore", [0.0, 3 / math.sqrt(9.5), 0.0, 2 / math.sqrt(9.5), -5 / math.sqrt(9.5)]),
        ("l2", [1 / math.sqrt(42), 4 / math.sqrt(42), 0.0, 3 / math.sqrt(42), -4 / math.sqrt(42)]),
        ("rank", [2 / 4, 1.0, 0.0, 3 / 4, 1 / 4]),
        ("reciprocal", [1 / 63, 1 / 61, 0.0, 1 / 62, 1 / 64]),
        ("atan", [math.pi / 4, math.atan(4), 0.0, math.atan(3), math.atan(-4)]),
        (
            "sigmoid",
            [1 / (1 + math.exp(-1)), 1 / (1 + math.exp(-4)), 0.0, 1 / (1 + math.exp(-3)), 1 / (1 + math.exp(4))],
        ),
    ],
)
def test_every_kind_worked_by_hand(kind: str, expected: list[float]) -> None:
    # mean 1, squares of the deviations 0 + 9 + 4 + 25 = 38
    assert scaled([1.0, 4.0, None, 3.0, -4.0], Normalizer(kind)) == pytest.approx(expected)


def test_affine_maps_by_its_bounds_whatever_the_list_holds() -> None:
    plain = Normalizer("affine", lower=0.0, upper=10.0)
    assert scaled([5.0], plain) == [0.5]
    assert scaled([5.0, 5.0], plain) == [0.5, 0.5]
    assert scaled([-5.0, 15.0, None], plain) == [-0.5, 1.5, 0.0]
    clipped = replace(plain, lower_mode="clip", upper_mode="clip")
    assert scaled([-5.0, -6.0, 15.0, 2.0], clipped) == [0.0, 0.0, 1.0, 0.2]


@pytest.mark.parametrize("kind", ["minmax", "sum", "zscore"])
def test_equal_scores_and_a_single_hit_follow_the_constant_rule(kind: str) -> None:
    for scores in ([0.1, 0.1, 0.1], [7.0], [-3.0, -3.0], [0.0]):
        assert scaled(scores, Normalizer(kind)) == [1.0] * len(scores)
        assert scaled(scores, Normalizer(kind, constant=0.25)) == [0.25] * len(scores)
        assert scaled(scores, Normalizer(kind, constant="raw")) == scores


@pytest.mark.parametrize("kind", ["max", "l2"])
def test_max_and_l2_follow_the_constant_rule_for_zeros_alone(kind: str) -> None:
    assert scaled([0.0, 0.0], Normalizer(kind)) == [1.0, 1.0]
    assert scaled([0.0, -0.0], Normalizer(kind, constant=0.5)) == [0.5, 0.5]
    expected = 1.0 if kind == "max" else math.sqrt(0.5)
    assert scaled([7.0, 7.0], Normalizer(kind)) == pytest.approx([expected] * 2)


def test_the_constant_rule_takes_nearly_equal_scores_within_its_tolerance() -> None:
    near = Normalizer("minmax", constant=0.5, constant_within=1e-6)
    assert scaled([3.0, 3.0 + 5e-7], near) == [0.5, 0.5]
    assert scaled([3.0, 3.0 + 5e-6], near) == [0.0, 1.0]
    assert scaled([3e-7, 4e-7], replace(near, kind="l2")) == [0.5, 0.5]


def test_negative_scores_keep_their_order_under_every_kind() -> None:
    scores = [-9.0, -1.0, -4.0]
    for kind in KINDS:
        normalizer = Normalizer(kind, lower=-10.0, upper=0.0) if kind == "affine" else Normalizer(kind)
        assert np.argsort(scaled(scores, normalizer)).tolist() == [0, 2, 1], kind


def test_missing_documents_get_zero_a_value_or_the_minimum() -> None:
    scores = [2.0, None, 4.0]
    assert scaled(scores, Normalizer("zscore")) == [-1.0, 0.0, 1.0]
    assert scaled(scores, Normalizer("zscore", missing=-9.0)) == [-1.0, -9.0, 1.0]
    assert scaled(scores, Normalizer("zscore", missing="minimum")) == [-1.0, -1.0, 1.0]
    assert scaled(scores, Normalizer("minmax", floor=0.001, missing="minimum")) == [0.001, 0.001, 1.0]
    assert scaled([None, None], Normalizer("zscore", missing="minimum")) == [0.0, 0.0]


def test_a_floor_lifts_what_lies_at_or_below_its_threshold() -> None:
    assert scaled([0.0, 0.0005, 1.0], Normalizer("none", floor=0.001)) == [0.001, 0.001, 1.0]
    assert scaled([0.0, 0.0005, 1.0], Normalizer("none", floor=0.001, floor_at=0.0)) == [0.001, 0.0005, 1.0]


def test_scale_and_shift_come_before_the_floor_and_leave_the_constant_alone() -> None:
    assert scaled([0.0, 5.0, 10.0], Normalizer("minmax", scale=2.0, shift=-1.0, floor=-0.5)) == [-0.5, 0.0, 1.0]
    assert scaled([5.0], Normalizer("minmax", scale=2.0, shift=-1.0, constant=0.5)) == [0.5]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        # bound 4 on the list 0, 2, 4, 6, 10
        ("ignore", [0.0, 0.2, 0.4, 0.6, 1.0]),
        ("apply", [-4 / 6, -2 / 6, 0.0, 2 / 6, 1.0]),
        ("clip", [0.0, 0.0, 0.0, 2 / 6, 1.0]),
        ("within", [0.0, 0.2, 0.4, 2 / 6, 1.0]),
    ],
)
def test_modes_of_a_lower_bound_and_of_its_mirror_image(mode: str, expected: list[float]) -> None:
    scores = [0.0, 2.0, 4.0, 6.0, 10.0]
    lower = Normalizer("minmax", lower=4.0, lower_mode=mode)
    assert scaled(scores, lower) == pytest.approx(expected)
    upper = Normalizer("minmax", upper=-4.0, upper_mode=mode)
    assert scaled([-s for s in scores], upper) == pytest.approx([1.0 - e for e in expected])


@pytest.mark.parametrize("mode", ["apply", "clip", "within"])
def test_a_list_wholly_beyond_a_bound_keeps_its_own_end(mode: str) -> None:
    assert scaled([1.0, 2.0, 3.0], Normalizer("minmax", lower=4.0, lower_mode=mode)) == [0.0, 0.5, 1.0]
    assert scaled([1.0, 2.0, 3.0], Normalizer("minmax", upper=0.0, upper_mode=mode)) == [0.0, 0.5, 1.0]


def test_two_applied_bounds_are_a_fixed_map_except_for_constant_lists() -> None:
    both = Normalizer("minmax", lower=0.0, upper=10.0)
    assert scaled([20.0, 30.0], both) == [2.0, 3.0]
    assert scaled([5.0], both) == [1.0]


def test_sample_variance_and_the_rule_for_the_mean() -> None:
    assert scaled([1.0, 2.0, 3.0], Normalizer("zscore", ddof=1.0)) == [-1.0, 0.0, 1.0]
    assert scaled([1.0, 2.0, 3.0], Normalizer("zscore", ddof=1.0, at_mean="max")) == [-1.0, 3.0, 1.0]
    assert scaled([1.0, 2.0, 3.0], Normalizer("zscore", ddof=1.0, at_mean=0.5)) == [-1.0, 0.5, 1.0]
    assert scaled([1.0, 3.0], Normalizer("zscore", ddof=2.0)) == [1.0, 1.0]


def test_ranks_fall_with_the_score_and_then_by_row() -> None:
    raw = np.array([[1.0, 5.0], [2.0, 0.0], [1.0, -0.0], [0.0, 7.0], [2.0, 0.0]])
    retrieved = np.array([[1, 0], [1, 1], [1, 1], [1, 1], [1, 0]], np.bool_)
    ranks = rank_lists(raw, retrieved, np.array([0, 4, 4, 5]))
    np.testing.assert_array_equal(ranks, [[2, 0], [1, 2], [3, 3], [4, 1], [1, 0]])


@settings(deadline=None, max_examples=60)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=5),
    n_rankers=st.integers(1, 4),
    seed=st.integers(0, 999),
)
def test_ranks_are_those_of_a_stable_sort(lengths: list[int], n_rankers: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    raw = rng.integers(-4, 5, (starts[-1], n_rankers)) / 3.0 * 10.0 ** rng.integers(-40, 38)
    special = np.array([-0.0, 0.0, float(np.finfo(np.float32).max), -float(np.finfo(np.float32).max), 2.0**-149])
    raw = np.where(rng.random(raw.shape) < 0.2, rng.choice(special, raw.shape), raw)
    retrieved = rng.random(raw.shape) < 0.8
    ranks = rank_lists(raw, retrieved, starts)
    for first, last in itertools.pairwise(starts):
        for k in range(n_rankers):
            held = first + np.flatnonzero(retrieved[first:last, k])
            expected = np.zeros(last - first, np.int32)
            expected[held[np.argsort(-raw[held, k], kind="stable")] - first] = np.arange(1, len(held) + 1)
            assert ranks[first:last, k].tolist() == expected.tolist()


def test_every_query_and_column_is_scaled_by_itself() -> None:
    raw = np.array([[1.0, 8.0], [3.0, 6.0], [5.0, 0.0], [50.0, 1.0], [70.0, 3.0]])
    retrieved = np.array([[1, 1], [1, 1], [1, 0], [1, 1], [1, 1]], np.bool_)
    rules = kernel_rules([Normalizer("minmax"), Normalizer("reciprocal", k=0.0)])
    scores = scale_lists(raw, retrieved, np.array([0, 3, 3, 5]), rules)
    np.testing.assert_allclose(scores, [[0, 1], [0.5, 0.5], [1, 0], [0, 0.5], [1, 1]])


extreme = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, LARGEST, -LARGEST, 1e308, -1e308, 1e-310, 1.0]),
)
numbers = st.one_of(st.none(), extreme)
normalizers = st.builds(
    Normalizer,
    kind=st.sampled_from([k for k in KINDS if k != "affine"]),
    floor=numbers,
    constant=st.one_of(st.just("raw"), extreme),
    at_mean=st.one_of(st.none(), st.just("max"), extreme),
    constant_within=st.sampled_from([0.0, 1e-6, 1e300]),
    ddof=st.sampled_from([0.0, 1.0]),
    k=st.sampled_from([0.0, 60.0, -0.999, 1e308]),
    scale=extreme,
    shift=extreme,
    missing=st.one_of(st.just("minimum"), extreme),
)
bounded = st.builds(
    Normalizer,
    kind=st.sampled_from(["minmax", "affine"]),
    lower=extreme,
    upper=extreme,
    lower_mode=st.sampled_from(MODES),
    upper_mode=st.sampled_from(MODES),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(numbers, max_size=6), st.one_of(normalizers, bounded, st.sampled_from(list(ENGINES.values()))))
def test_no_finite_input_gives_nan_or_infinity(scores: list[float | None], normalizer: Normalizer) -> None:
    assume(normalizer.lower is None or normalizer.upper is None or normalizer.lower < normalizer.upper)
    assert all(map(math.isfinite, scaled(scores, normalizer)))


tame = st.lists(st.sampled_from([-3.5, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 7.25]), min_size=1, max_size=8)


@settings(deadline=None, max_examples=100)
@given(
    tame, st.sampled_from(["minmax", "max", "sum", "zscore", "l2", "rank", "reciprocal"]), st.integers(-1020, 1020)
)
def test_powers_of_two_change_nothing(scores: list[float], kind: str, power: int) -> None:
    normalizer = Normalizer(kind)
    assert scaled([math.ldexp(s, power) for s in scores], normalizer) == scaled(scores, normalizer)


@settings(deadline=None, max_examples=100)
@given(
    tame,
    st.sampled_from(["minmax", "sum", "zscore", "rank", "reciprocal"]),
    st.floats(0.01, 100.0),
    st.floats(-100.0, 100.0),
)
def test_affine_maps_change_nothing_for_kinds_that_start_at_the_list(
    scores: list[float], kind: str, factor: float, offset: float
) -> None:
    moved = [factor * s + offset for s in scores]
    assume(len(set(moved)) == len(set(scores)))
    normalizer = Normalizer(kind)
    assert scaled(moved, normalizer) == pytest.approx(scaled(scores, normalizer), abs=1e-9)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.one_of(st.none(), st.floats(-50, 50)), max_size=7), st.randoms(use_true_random=False))
def test_the_order_of_documents_matters_to_ties_alone(scores: list[float | None], random: object) -> None:
    held = [s for s in scores if s is not None]
    assume(len(set(held)) == len(held))
    order = list(range(len(scores)))
    random.shuffle(order)
    for kind in ("minmax", "max", "sum", "zscore", "l2", "rank", "reciprocal"):
        straight = scaled(scores, Normalizer(kind, missing="minimum"))
        shuffled = scaled([scores[i] for i in order], Normalizer(kind, missing="minimum"))
        assert shuffled == pytest.approx([straight[i] for i in order])


def test_the_number_of_threads_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    raw, retrieved = rng.normal(size=(30_000, 2)), rng.random((30_000, 2)) < 0.7
    starts = np.concatenate(([0], np.sort(rng.integers(0, 30_000, 99)), [30_000]))
    rules = kernel_rules([Normalizer("zscore"), Normalizer("rank")])
    use_threads(monkeypatch, "1")
    alone = scale_lists(raw, retrieved, starts, rules)
    use_threads(monkeypatch, "3")
    np.testing.assert_array_equal(scale_lists(raw, retrieved, starts, rules), alone)
