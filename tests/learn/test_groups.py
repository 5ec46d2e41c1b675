import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import made_up, two_kinds

from genm.errors import InputError
from genm.evaluate import AlignedEvaluator
from genm.fuse import fuse_scores_by_query
from genm.learn import learn_groups
from genm.learn.groups import FEWEST_QUERIES, pooled

CENTRE = np.full(3, 1.0 / 3.0)


@pytest.fixture(scope="module")
def kinds():
    return two_kinds()


def test_groups_that_differ_get_weights_of_their_own(kinds):
    aligned, groups, _ = kinds
    found = learn_groups(aligned, groups, CENTRE)
    assert found.groups.pooling is not None
    assert found.inner_gain > 0.05
    weights = found.groups.weights
    assert weights["id"][0] > 0.6 > 0.3 > weights["id"][1]
    assert weights["question"][1] > 0.6 > 0.3 > weights["question"][0]
    assert found.n_queries == {name: groups.count(name) for name in weights}
    further, others, _ = two_kinds(1)
    mine = np.array([weights[group] for group in others])
    values = AlignedEvaluator(further, ["AP"])
    assert values.values(fuse_scores_by_query(further, mine)).mean() > values.values(CENTRE).mean() + 0.05


def test_groups_by_chance_end_at_the_global_weights():
    aligned = made_up(3, n_queries=60, n_docs=15, n_relevant=3)
    names = ["a" if q % 2 else "b" for q in range(60)]
    found = learn_groups(aligned, names, np.array([0.6, 0.3, 0.1]))
    assert found.groups.pooling is None
    assert set(found.groups.weights.values()) == {(0.6, 0.3, 0.1)}
    assert found.inner_gain == 0.0


def test_a_small_group_ends_at_the_global_weights(kinds):
    aligned, groups, _ = kinds
    names = [group if q >= FEWEST_QUERIES - 1 else "few" for q, group in enumerate(groups)]
    weights = learn_groups(aligned, names, CENTRE).groups.weights
    assert weights["few"] == tuple(CENTRE.tolist())
    assert weights["id"] != tuple(CENTRE.tolist())


def test_other_measures_and_unknown_groups(kinds):
    aligned, groups, _ = kinds
    names = [None if q < 5 else group for q, group in enumerate(groups)]
    found = learn_groups(aligned, names, CENTRE, measure="nDCG@3", repeats=1, folds=3)
    assert found.groups.weights["id"][0] > 0.5
    assert sum(found.n_queries.values()) == len(groups) - 5


def test_the_number_of_groups_must_fit(kinds):
    with pytest.raises(InputError, match="expected one for each of 60 queries; found 1"):
        learn_groups(kinds[0], ["a"], CENTRE)


@given(st.integers(0, 500), st.sampled_from([0.0, 5.0, 320.0]), st.floats(0.0, 1.0))
def test_pooled_weights_stay_a_distribution_between_both(n, pooling, share):
    own, centre = np.array([share, 1.0 - share]), np.array([0.3, 0.7])
    found = pooled(own, centre, max(n, 1), pooling)
    assert np.isclose(found.sum(), 1.0)
    assert (found >= np.minimum(own, centre) - 1e-12).all()
    assert (found <= np.maximum(own, centre) + 1e-12).all()
    if pooling == 0.0:
        assert np.allclose(found, own)
