"""Subsets are learned once, on the same folds, by the method that was asked for."""

import numpy as np
import pytest
from problems import made_up

from genm.align import select_rankers
from genm.errors import InputError
from genm.evaluate import parse_measure
from genm.evidence.crossval import cross_validate
from genm.explain import SubsetValues
from genm.learn import BoostFuser

AP = parse_measure("AP")


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
    with pytest.raises(InputError, match="expected one of auto, bat"):
        SubsetValues(aligned, method="nix", measure=AP)
    with pytest.raises(InputError, match="maximises AP, not nDCG@10"):
        SubsetValues(aligned, method="bat", measure=parse_measure("nDCG@10"))
    with pytest.raises(InputError, match="subset 8: expected an integer from 0 to 7"):
        SubsetValues(aligned, measure=AP).learn([8])
