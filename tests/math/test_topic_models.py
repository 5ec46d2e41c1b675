"""Gibbs sampling: a draw by hand, an oracle, counts that stay true, and a likelihood that rises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm._math import topic_models

ALPHA, ETA = 0.1, 0.01

counts_tables = st.lists(
    st.lists(st.integers(0, 4), min_size=5, max_size=5).filter(any), min_size=2, max_size=6
).map(np.array)


def counted(words, topics, n_terms, n_topics):
    n_wz = topic_models.count_words(words, topics, n_terms, n_topics)
    return n_wz, n_wz.sum(axis=0, dtype=np.float64)


@pytest.mark.parametrize(("draw", "topic"), [(0.0, 0), (0.27, 0), (0.28, 1), (0.99, 1)])
def test_a_draw_by_hand(draw, topic):
    # One document with the same word twice, topics 0 and 1; two words in the vocabulary; alpha = eta = 1.
    # Without the first token: topic 0 has (0 + 1)(0 + 1)/(0 + 2) = 0.5, topic 1 has (1 + 1)(1 + 1)/(1 + 2) = 4/3.
    # P(topic 0) = 0.5 / 1.833333 = 0.272727. The second token is drawn with 0, which always gives topic 0.
    words, topics = np.zeros(2, np.int32), np.repeat(np.array([[0], [1]], np.int32), 8, axis=1)
    draws = np.repeat(np.array([[draw], [0.0]], np.float32), 8, axis=1)
    topic_models.gibbs_sweep(np.array([0, 2]), words, topics, *counted(words, topics, 2, 2), draws, 1.0, 1.0)
    assert topics.tolist() == [[topic] * 8, [0] * 8]


def texts(seed):
    """Twelve documents; six use words 0-9, six use words 10-19."""
    generator = np.random.default_rng(seed)
    words = np.concatenate([generator.integers(0, 10, 30) + 10 * (d % 2) for d in range(12)]).astype(np.int32)
    return generator, np.arange(0, 361, 30), words


def likelihoods(starts, words, topics, n_wz):
    """The likelihood of every chain."""
    doc = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    n_topics, found = n_wz.shape[1], []
    for c in range(8):
        n_dz = np.bincount(doc * n_topics + topics[:, c], minlength=len(np.unique(doc)) * n_topics)
        found.append(
            topic_models.lda_log_likelihood(n_dz.reshape(-1, n_topics).astype(float), n_wz[:, :, c], ALPHA, ETA)
        )
    return np.array(found)


def chains(n_topics, n_sweeps, seed=0):
    generator, starts, words = texts(seed)
    topics = generator.integers(0, n_topics, (len(words), 8), dtype=np.int32)
    n_wz, n_z = counted(words, topics, 20, n_topics)
    values = [likelihoods(starts, words, topics, n_wz)]
    for _ in range(n_sweeps):
        topic_models.gibbs_sweep(
            starts, words, topics, n_wz, n_z, generator.random((len(words), 8), dtype=np.float32), ALPHA, ETA
        )
        values.append(likelihoods(starts, words, topics, n_wz))
    return words, topics, n_wz, n_z, np.array(values)


def slow_sweep(starts, words, topic, n_terms, n_topics, draws):
    """One chain, one sweep, as the formula says it."""
    doc = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    topic = topic.copy()
    for i, w in enumerate(words):
        others = np.arange(len(words)) != i
        of_doc = np.bincount(topic[others & (doc == doc[i])], minlength=n_topics)
        of_word = np.bincount(topic[others & (words == w)], minlength=n_topics)
        in_all = np.bincount(topic[others], minlength=n_topics)
        chance = (of_doc + ALPHA) * (of_word + ETA) / (in_all + n_terms * ETA)
        topic[i] = min(np.searchsorted(np.cumsum(chance), draws[i] * chance.sum(), side="right"), n_topics - 1)
    return topic


@pytest.mark.parametrize("n_topics", [2, 8, 13, 40])
def test_a_sweep_is_that_of_the_formula(n_topics):
    generator, starts, words = texts(1)
    topics = generator.integers(0, n_topics, (len(words), 8), dtype=np.int32)
    draws = generator.random((len(words), 8), dtype=np.float32)
    expected = [slow_sweep(starts, words, topics[:, c], 20, n_topics, draws[:, c]) for c in range(8)]
    topic_models.gibbs_sweep(starts, words, topics, *counted(words, topics, 20, n_topics), draws, ALPHA, ETA)
    assert topics.T.tolist() == [one.tolist() for one in expected]


@pytest.mark.parametrize("n_topics", [2, 5, 16, 17, 40])
def test_counts_stay_what_the_topics_say(n_topics):
    words, topics, n_wz, n_z, _ = chains(n_topics, 10)
    assert topics.min() >= 0
    assert topics.max() < n_topics
    fresh_words, fresh = counted(words, topics, 20, n_topics)
    assert np.array_equal(n_wz, fresh_words)
    assert np.array_equal(n_z, fresh)


def test_sampling_raises_the_likelihood_of_every_chain():
    values = chains(2, 60)[-1]
    assert (values[-20:].mean(axis=0) > values[0] + 100).all()


def test_two_subjects_are_told_apart_by_every_chain():
    n_wz = chains(2, 60)[2]
    for c in range(8):
        first, second = n_wz[:10, :, c].sum(axis=0), n_wz[10:, :, c].sum(axis=0)
        assert min(first.max() / first.sum(), second.max() / second.sum()) > 0.95
        assert first.argmax() != second.argmax()


def test_the_likelihood_by_hand():
    # One document, one word once, one topic, one word in the vocabulary: probability 1.
    assert topic_models.lda_log_likelihood(np.ones((1, 1)), np.ones((1, 1)), 0.1, 0.01) == pytest.approx(0)
    # Two topics and two words: the topic has chance 1/2, the word given the topic 1/2.
    cell = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])
    assert topic_models.lda_log_likelihood(*cell, 0.1, 0.01) == pytest.approx(np.log(0.25))


def test_a_seed_is_a_chain():
    assert np.array_equal(chains(5, 5, seed=3)[1], chains(5, 5, seed=3)[1])
    assert not np.array_equal(chains(5, 5, seed=3)[1], chains(5, 5, seed=4)[1])


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
    value, pz, pd, pw = topic_models.em_step(*sparse(np.eye(2)), np.array([0.5, 0.5]), table, table, b)
    expected = np.array([[posterior, 1 - posterior], [1 - posterior, posterior]])
    assert value == pytest.approx(2 * np.log(s))
    assert pz == pytest.approx([0.5, 0.5])
    assert pd == pytest.approx(expected)
    assert pw == pytest.approx(expected)


@settings(deadline=None, max_examples=30)
@given(counts_tables, st.sampled_from([0.5, 0.7, 0.8, 1.0]), st.integers(0, 9))
def test_a_step_agrees_with_the_formula_written_out(counts, b, seed):
    pz, pd, pw = start(*counts.shape, 3, seed)
    joint = pz * (pd[:, None, :] * pw[None, :, :]) ** b
    s = joint.sum(axis=2)
    weighted = counts[:, :, None] * joint / s[:, :, None]
    value, new_z, new_d, new_w = topic_models.em_step(*sparse(counts), pz, pd, pw, b)
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
        value, pz, pd, pw = topic_models.em_step(*sparse(counts), pz, pd, pw, b)
        values.append(value)
    assert (np.diff(values) >= -1e-9 * abs(values[0])).all()


def test_without_tempering_the_objective_is_the_likelihood():
    counts = np.array([[2, 1, 0], [0, 1, 3]])
    pz, pd, pw = start(2, 3, 2, 0)
    value, *_ = topic_models.em_step(*sparse(counts), pz, pd, pw, 1.0)
    assert topic_models.plsi_log_likelihood(*sparse(counts), pd * pz, pw) == pytest.approx(value)
    assert value == pytest.approx((counts * np.log((pd * pz) @ pw.T)).sum())


def test_permuted_documents_give_permuted_parameters():
    counts = np.array([[2, 1, 0], [0, 1, 3], [1, 1, 1]])
    pz, pd, pw = start(3, 3, 2, 0)
    turn = np.array([2, 0, 1])
    one = topic_models.em_step(*sparse(counts), pz, pd, pw, 0.8)
    two = topic_models.em_step(*sparse(counts[turn]), pz, pd[turn], pw, 0.8)
    assert two[0] == pytest.approx(one[0])
    assert two[2] == pytest.approx(one[2][turn])
    assert two[3] == pytest.approx(one[3])


def test_a_topic_without_mass_stays_out():
    _, pd, pw = start(2, 3, 2, 0)
    _, new_z, new_d, new_w = topic_models.em_step(
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
        topic_models.plsi_fold_in(*counts, pw, np.ones(3), 1.0, steps, mixture)
        assert mixture.sum() == pytest.approx(1)
        values.append(topic_models.plsi_log_likelihood(*counts, mixture, pw))
    assert values == sorted(values)
