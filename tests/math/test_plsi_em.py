"""Tempered EM: a step by hand, an oracle in plain numpy, and the objective that must rise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm._math import topic_models


def sparse(counts):
    rows = [np.flatnonzero(row) for row in counts]
    starts = np.concatenate(([0], np.cumsum([len(r) for r in rows]))).astype(np.int64)
    terms = np.concatenate(rows).astype(np.int32)
    return starts, terms, np.concatenate([row[r] for row, r in zip(counts, rows, strict=True)]).astype(np.float64)


def start(n_docs, n_terms, k, seed):
    generator = np.random.default_rng(seed)
    pd, pw = (generator.standard_exponential((n, k)) for n in (n_docs, n_terms))
    return np.full(k, 1 / k), pd / pd.sum(axis=0), pw / pw.sum(axis=0)


@pytest.mark.parametrize(
    ("b", "s", "posterior"),
    [
        (1.0, 0.3125, 0.9),  # (0.75 * 0.75 + 0.25 * 0.25) / 2; 0.28125 / 0.3125
        (0.5, 0.5, 0.75),  # (0.75 + 0.25) / 2; 0.375 / 0.5
    ],
)
def test_a_step_by_hand(b, s, posterior):
    # document 1 holds word 1 once, document 2 word 2; both tables are (3/4, 1/4), (1/4, 3/4)
    table = np.array([[0.75, 0.25], [0.25, 0.75]])
    value, pz, pd, pw = topic_models.step(*sparse(np.eye(2)), np.array([0.5, 0.5]), table, table, b)
    expected = np.array([[posterior, 1 - posterior], [1 - posterior, posterior]])
    assert value == pytest.approx(2 * np.log(s))
    assert pz == pytest.approx([0.5, 0.5])
    assert pd == pytest.approx(expected)
    assert pw == pytest.approx(expected)


counts_tables = st.lists(
    st.lists(st.integers(0, 4), min_size=5, max_size=5).filter(any), min_size=2, max_size=6
).map(np.array)


@settings(deadline=None, max_examples=30)
@given(counts_tables, st.sampled_from([0.5, 0.7, 0.8, 1.0]), st.integers(0, 9))
def test_a_step_agrees_with_the_formula_written_out(counts, b, seed):
    pz, pd, pw = start(*counts.shape, 3, seed)
    joint = pz * (pd[:, None, :] * pw[None, :, :]) ** b
    s = joint.sum(axis=2)
    weighted = counts[:, :, None] * joint / s[:, :, None]
    value, new_z, new_d, new_w = topic_models.step(*sparse(counts), pz, pd, pw, b)
    assert value == pytest.approx((counts * np.log(s)).sum())
    mass = weighted.sum(axis=(0, 1))
    assert new_z == pytest.approx(mass / mass.sum())
    assert new_d == pytest.approx(weighted.sum(axis=1) / mass)
    assert new_w == pytest.approx(weighted.sum(axis=0) / mass)


@settings(deadline=None, max_examples=30)
@given(counts_tables, st.sampled_from([0.5, 0.8, 1.0]), st.integers(0, 9))
def test_every_step_raises_the_tempered_objective(counts, b, seed):
    pz, pd, pw = start(*counts.shape, 3, seed)
    values = []
    for _ in range(15):
        value, pz, pd, pw = topic_models.step(*sparse(counts), pz, pd, pw, b)
        values.append(value)
    assert (np.diff(values) >= -1e-9 * abs(values[0])).all()


def test_without_tempering_the_objective_is_the_likelihood():
    counts = np.array([[2, 1, 0], [0, 1, 3]])
    pz, pd, pw = start(2, 3, 2, 0)
    value, *_ = topic_models.step(*sparse(counts), pz, pd, pw, 1.0)
    assert topic_models.log_likelihood(*sparse(counts), pd * pz, pw) == pytest.approx(value)
    assert value == pytest.approx((counts * np.log((pd * pz) @ pw.T)).sum())


def test_permuted_documents_give_permuted_parameters():
    counts = np.array([[2, 1, 0], [0, 1, 3], [1, 1, 1]])
    pz, pd, pw = start(3, 3, 2, 0)
    turn = np.array([2, 0, 1])
    one = topic_models.step(*sparse(counts), pz, pd, pw, 0.8)
    two = topic_models.step(*sparse(counts[turn]), pz, pd[turn], pw, 0.8)
    assert two[0] == pytest.approx(one[0])
    assert two[2] == pytest.approx(one[2][turn])
    assert two[3] == pytest.approx(one[3])


def test_a_topic_without_mass_stays_out():
    _, pd, pw = start(2, 3, 2, 0)
    _, new_z, new_d, new_w = topic_models.step(
        *sparse(np.array([[1, 1, 0], [0, 1, 1]])), np.array([1.0, 0.0]), pd, pw, 0.8
    )
    assert new_z.tolist() == [1, 0]
    assert np.isfinite(new_d).all()
    assert np.array_equal(new_w[:, 1], pw[:, 1])


def test_powers_keep_zeros():
    p = np.array([[0.0, 0.25], [1.0, 0.5]])
    assert topic_models.raised(p, 0.5) == pytest.approx(np.sqrt(p))
    assert topic_models.raised(p, 1.0).tolist() == p.tolist()


def test_folding_in_climbs_the_likelihood_of_the_text():
    _, _, pw = start(1, 6, 3, 4)
    counts = sparse(np.array([[3, 1, 0, 0, 2, 0]]))
    values = []
    for steps in (1, 2, 5, 20):
        mixture = np.zeros((1, 3))
        topic_models.fold_in(*counts, pw, np.ones(3), 1.0, steps, mixture)
        assert mixture.sum() == pytest.approx(1)
        values.append(topic_models.log_likelihood(*counts, mixture, pw))
    assert values == sorted(values)
