"""Gibbs sampling: a draw by hand, counts that stay true, and a likelihood that rises."""

import numpy as np
import pytest

from genm._math import lda_gibbs


@pytest.mark.parametrize(("draw", "topic"), [(0.0, 0), (0.27, 0), (0.28, 1), (0.99, 1)])
def test_a_draw_by_hand(draw, topic):
    # One document with the same word twice, topics 0 and 1; two words in the vocabulary; alpha = eta = 1.
    # Without the first token: topic 0 has (0 + 1)(0 + 1)/(0 + 2) = 0.5, topic 1 has (1 + 1)(1 + 1)/(1 + 2) = 4/3.
    # P(topic 0) = 0.5 / 1.833333 = 0.272727. The second token is drawn with 0, which always gives topic 0.
    starts, words, topics = np.array([0, 2]), np.zeros(2, np.int32), np.array([0, 1], np.int32)
    counts = lda_gibbs.count_topics(starts, words, topics, 2, 2)
    lda_gibbs.sweep(starts, words, topics, *counts, np.array([draw, 0.0], np.float32), 2, 1.0, 1.0)
    assert topics.tolist() == [topic, 0]


def chain(n_topics, n_sweeps, seed=0):
    generator = np.random.default_rng(seed)
    # twelve documents; six use words 0-9, six use words 10-19
    words = np.concatenate([generator.integers(0, 10, 30) + 10 * (d % 2) for d in range(12)]).astype(np.int32)
    starts = np.arange(0, 361, 30)
    topics = generator.integers(0, n_topics, len(words), dtype=np.int32)
    counts = lda_gibbs.count_topics(starts, words, topics, 20, n_topics)
    values = [lda_gibbs.joint_log_likelihood(counts[0], counts[1], n_topics, 0.1, 0.01)]
    for _ in range(n_sweeps):
        lda_gibbs.sweep(
            starts, words, topics, *counts, generator.random(len(words), dtype=np.float32), n_topics, 0.1, 0.01
        )
        values.append(lda_gibbs.joint_log_likelihood(counts[0], counts[1], n_topics, 0.1, 0.01))
    return starts, words, topics, counts, values


@pytest.mark.parametrize("n_topics", [2, 5, 16, 17, 40])
def test_counts_stay_what_the_topics_say(n_topics):
    starts, words, topics, counts, _ = chain(n_topics, 10)
    assert topics.min() >= 0
    assert topics.max() < n_topics
    for kept, fresh in zip(counts, lda_gibbs.count_topics(starts, words, topics, 20, n_topics), strict=True):
        assert np.array_equal(kept, fresh)


def test_sampling_raises_the_likelihood():
    values = chain(2, 60)[-1]
    assert np.mean(values[-20:]) > values[0] + 100


def test_two_subjects_are_told_apart():
    _, _, _, (_, of_words, _), _ = chain(2, 60)
    first, second = of_words[:10, :2].sum(axis=0), of_words[10:, :2].sum(axis=0)
    assert min(first.max() / first.sum(), second.max() / second.sum()) > 0.95
    assert first.argmax() != second.argmax()


def test_the_likelihood_by_hand():
    # One document, one word once, one topic, one word in the vocabulary: probability 1.
    one = lda_gibbs.joint_log_likelihood(np.ones((1, 1), np.float32), np.ones((1, 1), np.float32), 1, 0.1, 0.01)
    assert one == pytest.approx(0)
    # Two topics and two words: the topic has chance 1/2, the word given the topic 1/2.
    cell = np.array([[1, 0]], np.float32), np.array([[1, 0], [0, 0]], np.float32)
    assert lda_gibbs.joint_log_likelihood(*cell, 2, 0.1, 0.01) == pytest.approx(np.log(0.25))


def test_a_seed_is_a_chain():
    assert np.array_equal(chain(5, 5, seed=3)[2], chain(5, 5, seed=3)[2])
    assert not np.array_equal(chain(5, 5, seed=3)[2], chain(5, 5, seed=4)[2])
