"""Sharing work changes the time, not what is learned."""

from dataclasses import replace

import numpy as np
import pytest
from problems import made_up
from spreads import alike

from genm.align import select_rankers
from genm.errors import InputError
from genm.evaluate import parse_measure
from genm.evidence.crossval import cross_validate, measure_queries
from genm.explain.refits import SharedRefits
from genm.learn.auto import AutoFuser

AP = parse_measure("AP")


def test_a_subset_of_one_is_that_ranker():
    aligned = made_up(0, n_queries=10)
    for k, values in enumerate(SharedRefits(aligned, AP, folds=3).values([1, 2, 4])):
        assert np.allclose(values, measure_queries(aligned, np.eye(3)[k], AP))


@pytest.mark.parametrize("measure", ["AP", "nDCG@10"])
def test_what_is_learned_comes_close_to_auto(measure):
    aligned, wanted = made_up(6, n_queries=40), parse_measure(measure)
    [values] = SharedRefits(aligned, wanted, folds=4, seed=1).values([7])
    auto = cross_validate(aligned, lambda: AutoFuser(measure=wanted), wanted, folds=4, seed=1)
    assert alike(values, auto.per_query)
    best_single = max(measure_queries(aligned, unit, wanted).mean() for unit in np.eye(3))
    assert values.mean() > best_single


def test_documents_leave_with_their_ranker(short_lists):
    """A subset is learned and measured as if the others had never been given."""
    [values] = SharedRefits(short_lists, AP, folds=3).values([0b101])
    own = select_rankers(short_lists, ["r0", "r2"])
    [there] = SharedRefits(own, AP, folds=3).values([0b11])
    assert len(own.doc) < len(short_lists.doc)
    assert alike(values, there)  # climbs begin elsewhere
    for k, name in enumerate(short_lists.rankers):
        [values] = SharedRefits(short_lists, AP, folds=3).values([1 << k])
        assert np.allclose(values, measure_queries(select_rankers(short_lists, [name]), np.ones(1), AP))


def test_a_store_of_its_own_or_shared_is_all_one():
    aligned = made_up(2, n_queries=18)
    shared = SharedRefits(aligned, AP, folds=3).values([0b011])[0]
    own = SharedRefits(select_rankers(aligned, ["r0", "r1"]), AP, folds=3).values([0b11])[0]
    assert alike(shared, own)  # climbs begin elsewhere


def test_nothing_depends_on_what_was_asked_before():
    aligned = made_up(3, n_queries=20)
    at_once = SharedRefits(aligned, AP, folds=3).values([7, 3, 5, 6])
    one_by_one = SharedRefits(aligned, AP, folds=3)
    for subset, values in zip([6, 3, 7, 5], [at_once[i] for i in (3, 1, 0, 2)], strict=True):
        assert (one_by_one.values([subset])[0] == values).all()


def test_held_back_or_not_is_an_option_that_is_read():
    aligned = made_up(7, n_queries=20)
    held = SharedRefits(aligned, AP, folds=3).values([7])[0]
    free = SharedRefits(aligned, AP, folds=3, hold_back=False).values([7])[0]
    assert not np.allclose(held, free)


def test_two_folds_have_none_left_to_advise():
    aligned = made_up(7, n_queries=12)
    assert SharedRefits(aligned, AP, folds=2).values([7])[0].shape == (12,)


def test_queries_without_a_relevant_document_teach_nothing_and_count_nothing():
    aligned = made_up(3, n_queries=8)
    query = np.repeat(np.arange(8), np.diff(aligned.starts))
    poor = replace(aligned, relevance=np.where(query < 5, 0, aligned.relevance).astype(np.int32))
    [values] = SharedRefits(poor, AP, folds=5).values([7])
    assert not values[:5].any()
    assert (values[5:] > 0).all()
    with pytest.raises(InputError, match="1 query with a relevant document: expected at least 2"):
        SharedRefits(replace(poor, relevance=np.where(query < 7, 0, aligned.relevance).astype(np.int32)), AP)


def test_of_many_rankers_subsets_are_held_back_as_the_whole_is(monkeypatch):
    """And what is learned so is worth about the same."""
    aligned = made_up(4, quality=(1.0, 0.8, 0.6, 0.4), n_queries=30)
    chosen = SharedRefits(aligned, AP).values([0b1111, 0b0111, 0b1001])
    monkeypatch.setattr("genm.explain.refits.CHOOSE_UP_TO", 3)
    shared = SharedRefits(aligned, AP).values([0b1111, 0b0111, 0b1001])
    assert (shared[0] == chosen[0]).all()
    for one, other in zip(chosen[1:], shared[1:], strict=True):
        assert not (one == other).all()
        assert alike(one, other)
