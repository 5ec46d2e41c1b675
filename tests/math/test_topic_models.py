"""Gibbs sampling: a draw by hand, an oracle, counts that stay true, and a likelihood that rises."""

import numpy as np
import pytest

from genm._math import lda_gibbs

ALPHA, ETA = 0.1, 0.01


def counted(words, topics, n_terms, n_topics):
    n_wz = lda_gibbs.count_words(words, topics, n_terms, n_topics)
    return n_wz, n_wz.sum(axis=0, dtype=np.float64)


@pytest.mark.parametrize(("draw", "topic"), [(0.0, 0), (0.27, 0), (0.28, 1), (0.99, 1)])
def test_a_draw_by_hand(draw, topic):
    # One document with the same word twice, topics 0 and 1; two words in the vocabulary; alpha = eta = 1.
    # Without the first token: topic 0 has (0 + 1)(0 + 1)/(0 + 2) = 0.5, topic 1 has (1 + 1)(1 + 1)/(1 + 2) = 4/3.
    # P(topic 0) = 0.5 / 1.833333 = 0.272727. The second token is drawn with 0, which always gives topic 0.
    words, topics = np.zeros(2, np.int32), np.repeat(np.array([[0], [1]], np.int32), 8, axis=1)
    draws = np.repeat(np.array([[draw], [0.0]], np.float32), 8, axis=1)
    lda_gibbs.sweep(np.array([0, 2]), words, topics, *counted(words, topics, 2, 2), draws, 1.0, 1.0)
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
            lda_gibbs.joint_log_likelihood(n_dz.reshape(-1, n_topics).astype(float), n_wz[:, :, c], ALPHA, ETA)
        )
    return np.array(found)


def chains(n_topics, n_sweeps, seed=0):
    generator, starts, words = texts(seed)
    topics = generator.integers(0, n_topics, (len(words), 8), dtype=np.int32)
    n_wz, n_z = counted(words, topics, 20, n_topics)
    values = [likelihoods(starts, words, topics, n_wz)]
    for _ in range(n_sweeps):
        lda_gibbs.sweep(
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
    lda_gibbs.sweep(starts, words, topics, *counted(words, topics, 20, n_topics), draws, ALPHA, ETA)
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
    assert lda_gibbs.joint_log_likelihood(np.ones((1, 1)), np.ones((1, 1)), 0.1, 0.01) == pytest.approx(0)
    # Two topics and two words: the topic has chance 1/2, the word given the topic 1/2.
    cell = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])
    assert lda_gibbs.joint_log_likelihood(*cell, 0.1, 0.01) == pytest.approx(np.log(0.25))


def test_a_seed_is_a_chain():
    assert np.array_equal(chains(5, 5, seed=3)[1], chains(5, 5, seed=3)[1])
    assert not np.array_equal(chains(5, 5, seed=3)[1], chains(5, 5, seed=4)[1])
