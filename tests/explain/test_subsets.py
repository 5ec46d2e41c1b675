"""Subsets are learned once, on the same folds, by the method that was asked for."""

from dataclasses import replace

import numpy as np
import pytest
from problems import made_up
from spreads import alike
from thread_counts import use_threads

from genm.align import select_rankers
from genm.errors import InputError
from genm.evaluate import parse_measure
from genm.evidence.crossval import cross_validate, measure_queries
from genm.explain import SubsetValues
from genm.explain.subsets import SharedRefits, Views, members_of, returned_by, split_by_fold
from genm.learn import BoostFuser
from genm.learn.auto import AutoFuser
from genm.learn.objectives import Problem, beta_of, fold_of_queries

AP = parse_measure("AP")


def held_out(refits, subsets):
    return [table.held_out for table in refits.values(subsets)]


@pytest.mark.parametrize("method", ["auto", "newton", "enm"])
def test_training_values_are_those_of_the_folds_that_learned_from_the_query(method):
    """Held out the weights do worse; a ranker alone learns nothing; of equal values the mean is that value."""
    aligned = made_up(3, n_queries=24)
    values = SubsetValues(aligned, method=method, measure=AP, folds=4)
    assert values.training_mean(7) == pytest.approx(values.table(7).training.mean())
    assert values.training_mean(7) > values.mean(7)
    assert (values.table(2).training == values.table(2).held_out).all()
    assert values.learning_variance(7) > values.learning_variance(2) == values.learning_variance(0) == 0.0


def test_values_by_fold_are_split_into_held_out_and_training():
    by_fold = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]])
    table = split_by_fold(by_fold, np.array([0, 1, 2]))
    assert table.held_out.tolist() == [0.1, 0.5, 0.9]
    assert table.training == pytest.approx([0.55, 0.5, 0.45])
    same = split_by_fold(np.full((5, 3), 0.1), np.array([0, 3, 4]))
    assert (same.training == same.held_out).all()


def test_other_methods_are_cross_validated_as_they_are():
    aligned = made_up(0, n_queries=12)
    values = SubsetValues(aligned, method="enm", measure=AP, folds=3, seed=4)
    there = cross_validate(select_rankers(aligned, ["r0", "r2"]), BoostFuser, AP, folds=3, seed=4)
    assert (values.per_query(0b101) == there.per_query).all()
    assert values.mean(0b101) == pytest.approx(there.mean)
    assert values.names(0b101) == ("r0", "r2")


def test_each_is_learned_once_and_the_empty_one_is_worth_nothing():
    told = []
    aligned = made_up(1, n_queries=10)
    values = SubsetValues(aligned, measure=AP, progress=lambda *step: told.append(step))
    assert not values.per_query(0).any()
    values.learn(range(8))
    assert told[0] == ("learning subsets", 0, 7)
    assert told[-1] == ("learning subsets", 7, 7)
    before, n_told = values.per_query(5), len(told)
    values.learn([5, 7])
    assert values.per_query(5) is before
    assert (values.n_learned, len(told), values.everyone) == (7, n_told, 7)


def test_label_free_learning_needs_no_measure():
    values = SubsetValues(made_up(1, n_queries=6), method="uns", measure=AP, folds=2)
    assert values.mean(7) > 0


def test_few_queries_make_fewer_folds():
    assert SubsetValues(made_up(1, n_queries=3), measure=AP).folds == 3


def test_queries_count_by_their_weights():
    aligned = made_up(1, n_queries=10)
    from dataclasses import replace

    heavy = replace(aligned, query_weights=np.arange(1.0, 11.0))
    values = SubsetValues(heavy, measure=AP)
    assert values.mean(1) == pytest.approx(np.average(values.per_query(1), weights=np.arange(1.0, 11.0)))


def test_refusals():
    aligned = made_up(1, n_queries=4)
    with pytest.raises(InputError, match="expected one of auto, newton"):
        SubsetValues(aligned, method="nix", measure=AP)
    with pytest.raises(InputError, match="maximises AP, not nDCG@10"):
        SubsetValues(aligned, method="bat", measure=parse_measure("nDCG@10"))
    with pytest.raises(InputError, match="subset 8: expected an integer from 0 to 7"):
        SubsetValues(aligned, measure=AP).learn([8])


def test_a_subset_of_one_is_that_ranker():
    aligned = made_up(0, n_queries=10)
    for k, values in enumerate(held_out(SharedRefits(aligned, AP, folds=3), [1, 2, 4])):
        assert np.allclose(values, measure_queries(aligned, np.eye(3)[k], AP))


@pytest.mark.parametrize("measure", ["AP", "nDCG@10"])
def test_what_is_learned_comes_close_to_auto(measure):
    aligned, wanted = made_up(6, n_queries=40), parse_measure(measure)
    [values] = held_out(SharedRefits(aligned, wanted, folds=4, seed=1), [7])
    auto = cross_validate(aligned, lambda: AutoFuser(measure=wanted), wanted, folds=4, seed=1)
    assert alike(values, auto.per_query)
    best_single = max(measure_queries(aligned, unit, wanted).mean() for unit in np.eye(3))
    assert values.mean() > best_single


@pytest.mark.parametrize("measure", ["AP", "nDCG@10"])
def test_weights_of_any_sign_come_close_to_auto(measure):
    """The third ranker prefers documents that are not relevant, so that only a negative weight makes use of it."""
    aligned, wanted = made_up(6, quality=(0.8, 0.6, -0.7), n_queries=40), parse_measure(measure)
    values, without = held_out(SharedRefits(aligned, wanted, folds=4, seed=1, signs="any"), [7, 3])
    auto = cross_validate(aligned, lambda: AutoFuser(measure=wanted, signs="any"), wanted, folds=4, seed=1)
    assert alike(values, auto.per_query)
    assert values.mean() > without.mean() + 0.02
    [positive] = held_out(SharedRefits(aligned, wanted, folds=4, seed=1), [7])
    assert values.mean() > positive.mean() + 0.02


def test_the_gradient_of_weights_of_any_sign_is_that_of_their_parts():
    aligned = made_up(2, n_queries=8)
    view, parts = Views(aligned, AP, "any").of(0b101), np.array([0.5, 0.1, 0.0, 0.4])
    assert view.whole(parts).tolist() == [0.5, 0.0, -0.30000000000000004]
    _, gradient = view.gradient(parts)
    plain = Views(aligned, AP).of(0b101).gradient(np.array([0.5, -0.3]))[1]
    assert np.allclose(gradient, [*plain, *-plain])


def test_documents_leave_with_their_ranker(short_lists):
    """A subset is learned and measured as if the others had never been given."""
    [values] = held_out(SharedRefits(short_lists, AP, folds=3), [0b101])
    own = select_rankers(short_lists, ["r0", "r2"])
    [there] = held_out(SharedRefits(own, AP, folds=3), [0b11])
    assert len(own.doc) < len(short_lists.doc)
    assert alike(values, there)  # climbs begin elsewhere
    for k, name in enumerate(short_lists.rankers):
        [values] = held_out(SharedRefits(short_lists, AP, folds=3), [1 << k])
        assert np.allclose(values, measure_queries(select_rankers(short_lists, [name]), np.ones(1), AP))


def test_a_store_of_its_own_or_shared_is_all_one():
    aligned = made_up(2, n_queries=18)
    shared = held_out(SharedRefits(aligned, AP, folds=3), [0b011])[0]
    own = held_out(SharedRefits(select_rankers(aligned, ["r0", "r1"]), AP, folds=3), [0b11])[0]
    assert alike(shared, own)  # climbs begin elsewhere


def test_nothing_depends_on_what_was_asked_before():
    aligned = made_up(3, n_queries=20)
    at_once = held_out(SharedRefits(aligned, AP, folds=3), [7, 3, 5, 6])
    one_by_one = SharedRefits(aligned, AP, folds=3)
    for subset, values in zip([6, 3, 7, 5], [at_once[i] for i in (3, 1, 0, 2)], strict=True):
        assert (held_out(one_by_one, [subset])[0] == values).all()


def test_shrinking_is_an_option_that_is_read():
    aligned = made_up(7, n_queries=20)
    held = held_out(SharedRefits(aligned, AP, folds=3), [7])[0]
    free = held_out(SharedRefits(aligned, AP, folds=3, shrinks=False), [7])[0]
    assert not np.allclose(held, free)


def test_two_queries_get_uniform_weights():
    """One training query cannot be cross-validated, and `auto` then keeps uniform weights unless they are worse."""
    aligned = made_up(7, n_queries=2)
    [values] = held_out(SharedRefits(aligned, AP), [7])
    auto = cross_validate(aligned, AutoFuser, AP, folds=2)
    assert np.allclose(values, auto.per_query)


def test_two_folds_leave_training_queries_to_choose_from():
    aligned = made_up(7, n_queries=12)
    assert held_out(SharedRefits(aligned, AP, folds=2), [7])[0].shape == (12,)


def test_queries_without_a_relevant_document_teach_nothing_and_count_nothing():
    aligned = made_up(3, n_queries=8)
    query = np.repeat(np.arange(8), np.diff(aligned.starts))
    poor = replace(aligned, relevance=np.where(query < 5, 0, aligned.relevance).astype(np.int32))
    [values] = held_out(SharedRefits(poor, AP, folds=5), [7])
    assert not values[:5].any()
    assert (values[5:] > 0).all()
    with pytest.raises(InputError, match="1 query with a relevant document: expected at least 2"):
        SharedRefits(replace(poor, relevance=np.where(query < 7, 0, aligned.relevance).astype(np.int32)), AP)


def test_with_many_rankers_subsets_shrink_as_the_whole_does(monkeypatch):
    """And what is learned so is worth about the same."""
    aligned = made_up(4, quality=(1.0, 0.8, 0.6, 0.4), n_queries=30)
    chosen = held_out(SharedRefits(aligned, AP), [0b1111, 0b0111, 0b1001])
    monkeypatch.setattr("genm.explain.subsets.CHOOSE_UP_TO", 3)
    shared = held_out(SharedRefits(aligned, AP), [0b1111, 0b0111, 0b1001])
    assert (shared[0] == chosen[0]).all()
    for one, other in zip(chosen[1:], shared[1:], strict=True):
        assert not (one == other).all()
        assert alike(one, other)


def test_bits_are_members():
    assert members_of(0b1101) == [0, 2, 3]
    assert members_of(0) == []


@pytest.mark.parametrize("subset", [0b0011, 0b0110, 0b1011, 0b1111])
@pytest.mark.parametrize("lists", ["complete", "short"])
def test_a_view_measures_like_the_rankers_alone(subset, lists, short_lists):
    """Shared, narrowed or a store of its own: value, slope and sharpness are those of the subset by itself."""
    aligned = made_up(3, quality=(1.0, 0.7, 0.5, 0.2), n_docs=150) if lists == "complete" else short_lists
    subset &= (1 << len(aligned.rankers)) - 1
    own = select_rankers(aligned, [aligned.rankers[k] for k in members_of(subset)])
    there, view = Problem(own), Views(aligned, AP).of(subset)
    weights = np.random.default_rng(subset).dirichlet(np.ones(len(own.rankers)))
    assert view.problem.beta == pytest.approx(beta_of(own), rel=1e-9)
    assert (view.per_query(weights) == there.exact_per_query(weights)).all()
    value, slope = view.gradient(weights)
    expected, expected_slope = there.gradient(weights)
    assert value == pytest.approx(expected, abs=1e-4)
    assert slope == pytest.approx(expected_slope, abs=2e-3)  # of sigmoids that are nearly 0 or 1
    some = np.array([4, 1, 7])
    assert (view.select(some).per_query(weights) == there.exact_per_query(weights)[some]).all()


def test_constant_scores_have_some_sharpness():
    aligned = made_up(0, quality=(1.0, 0.5), n_queries=3)
    aligned.scores[:] = 0.1
    assert Views(aligned, AP).of(0b11).problem.beta > 0.0


def test_what_is_far_down_in_every_list_does_not_steer_a_climb(monkeypatch):
    """The slope is nearly the same, and what is measured is exactly the same."""
    aligned = made_up(1, quality=(1.0, 0.8, 0.6), n_queries=10, n_docs=600)
    whole = Views(aligned, AP).of(0b111)
    monkeypatch.setattr("genm.explain.subsets.DEEP", 200)
    near, weights = Views(aligned, AP).of(0b111), np.array([0.5, 0.3, 0.2])
    assert near.problem.tiles.sizes.sum() < 0.9 * whole.problem.tiles.sizes.sum()
    assert (near.per_query(weights) == whole.per_query(weights)).all()
    (value, slope), (expected, expected_slope) = near.gradient(weights), whole.gradient(weights)
    assert value == pytest.approx(expected, abs=0.002)
    assert slope - slope.mean() == pytest.approx(expected_slope - expected_slope.mean(), abs=0.02)


@pytest.mark.parametrize("step_from", [2, 5])
@pytest.mark.parametrize("measure", ["AP", "nDCG@5"])
def test_many_rankers_are_learned_alike_one_by_one_or_at_once_on_any_number_of_threads(
    measure, step_from, monkeypatch
):
    monkeypatch.setattr("genm.explain.subsets.CHOOSE_UP_TO", 3)
    monkeypatch.setattr("genm.explain.subsets.STEP_FROM", step_from)
    aligned, subsets = made_up(5, quality=(1.0, 0.8, 0.6, 0.4), n_queries=15), [3, 5, 7, 11, 14, 15]
    found = []
    for threads in ("1", "3"):
        use_threads(monkeypatch, threads)
        refits = SharedRefits(aligned, parse_measure(measure), folds=3)
        found += [refits.values(subsets), [refits.values([subset])[0] for subset in subsets]]
    for values in found[1:]:
        np.testing.assert_array_equal(values, found[0])


def test_subsets_of_many_rankers_are_as_soft_as_all_of_them():
    aligned = made_up(6, quality=(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1), n_queries=6)
    for subset in (0b11, 0b111111111):
        names = [f"r{k}" for k in members_of(subset)]
        own = beta_of(select_rankers(aligned, names))
        assert Views(aligned, AP).of(subset).problem.beta == pytest.approx(0.25 * own, rel=1e-9)


def test_documents_of_a_subset_are_those_that_one_of_its_rankers_returned():
    returned = np.random.default_rng(0).random((50, 11)) < 0.2
    bits = np.ascontiguousarray(np.packbits(returned, axis=1, bitorder="little").T)
    for subset in (1, 0b101, 1 << 10, 0b11100000010):
        wanted = returned[:, members_of(subset)].any(axis=1)
        np.testing.assert_array_equal(returned_by(bits, subset), wanted)


@pytest.mark.parametrize("trusted", [0.0, 0.01, 1.0])
def test_what_folds_share_says_nothing_about_the_fold_left_out(trusted, monkeypatch):
    """Other judgments of its queries change the weights of all folds but its own."""
    monkeypatch.setattr("genm.explain.subsets.CHOOSE_UP_TO", 3)
    monkeypatch.setattr("genm.explain.subsets.STEP_FROM", 2)
    monkeypatch.setattr("genm.explain.subsets.TRUSTED_GAIN", trusted)
    aligned = made_up(5, quality=(1.0, 0.8, 0.6, 0.4), n_queries=15)
    fold = fold_of_queries(15, 3, 0)
    turned = aligned.relevance.copy()
    for q in np.flatnonzero(fold == 1).tolist():
        turned[aligned.starts[q] : aligned.starts[q + 1]] = turned[aligned.starts[q] : aligned.starts[q + 1]][::-1]
    ends = []
    for relevance in (aligned.relevance, turned):
        refits = SharedRefits(replace(aligned, relevance=relevance), AP, folds=3)
        refits.values([15])
        ends.append([end.alpha for end in refits._ends_of_folds(refits._prepare(0b0101))])
    same = [bool((one == other).all()) for one, other in zip(*ends, strict=True)]
    assert same == [False, True, False]


def test_steps_that_folds_share_come_close_to_searches(monkeypatch):
    monkeypatch.setattr("genm.explain.subsets.CHOOSE_UP_TO", 3)
    aligned = made_up(4, quality=(1.0, 0.8, 0.6, 0.4), n_queries=40)
    searched = held_out(SharedRefits(aligned, AP), [0b0011, 0b1001, 0b0110])
    monkeypatch.setattr("genm.explain.subsets.STEP_FROM", 2)
    stepped = held_out(SharedRefits(aligned, AP), [0b0011, 0b1001, 0b0110])
    for one, other in zip(searched, stepped, strict=True):
        assert not (one == other).all()
        assert alike(one, other)
