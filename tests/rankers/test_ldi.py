import numpy as np
import pytest
from scipy.sparse import csr_array

from genm.errors import InputError
from genm.rankers.ldi import LdiRanker, sample_topics, tokens_of, topics_of_words, word_distributions
from genm.rankers.text import TextProfile, read_documents, read_queries

KEPT_CHAIN = (2347, [7, 20, 20, 20, 15, 15, 10, 10, 14, 4, 15, 15], [9, 4, 18, 18, 15, 9, 16, 19, 15, 17, 19, 19])


def test_words_become_topics_by_hand():
    # phi / column sums (0.8, 0.6, 0.6)
    w = topics_of_words(np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]))
    assert w == pytest.approx(np.array([[0.75, 0.25], [0.5, 0.5], [1 / 6, 5 / 6]]))


def test_scores_by_hand(monkeypatch):
    documents = read_documents(["alpha beta", "gamma gamma", "beta"], TextProfile("plain"))
    ranker = LdiRanker(n_topics=(2,), n_sweeps=1, n_samples=1).fit(documents)
    monkeypatch.setattr(ranker, "_models", lambda: iter([np.array([[0.75, 0.25], [0.5, 0.5], [1 / 6, 5 / 6]])]))
    # query alpha (0.75, 0.25). D1 (1.25, 0.75): 1.125 / (0.790569 * 1.457738) = 0.976187
    # D2 (1/3, 5/3): 0.666667 / (0.790569 * 1.699673) = 0.496139
    # D3 (0.5, 0.5): 0.5 / (0.790569 * 0.707107) = 0.894427
    scores = ranker.score(read_queries(["alpha"], documents))
    assert scores[0] == pytest.approx([0.976187, 0.496139, 0.894427], abs=1e-6)


def test_topics_bring_in_words_the_query_lacks():
    sea, wood = ["ship sail wave wind"] * 6 + ["sail wind wave"], ["oak leaf root moss"] * 6 + ["leaf moss root"]
    documents = read_documents(sea + wood, TextProfile("plain"))
    scores = LdiRanker(n_topics=(2,)).fit(documents).score(read_queries(["ship"], documents))[0]
    assert scores[6] > scores[7:].max() + 0.3


def test_the_default_averages_single_models(three, ask):
    singles = [LdiRanker(n_topics=(k,), n_sweeps=5, n_samples=1).fit(three).score(ask("cat dog")) for k in (2, 20)]
    both = LdiRanker(n_topics=(2, 20), n_sweeps=5, n_samples=1).fit(three).score(ask("cat dog"))
    assert both == pytest.approx((singles[0] + singles[1]) / 2)


def test_chains_are_averaged(three, ask):
    one, two = (LdiRanker(n_topics=(3,), n_chains=n, n_sweeps=2, n_samples=1).fit(three) for n in (1, 2))
    assert np.array_equal(two.learned_["topics3"][:1], one.learned_["topics3"])
    second = LdiRanker(n_topics=(3,), n_chains=1, n_samples=1).fit(three)
    second.learned_ = {"topics3": two.learned_["topics3"][1:]}
    asked = ask("cat dog")
    assert two.score(asked) == pytest.approx((one.score(asked) + second.score(asked)) / 2)


@pytest.mark.parametrize(("n_chains", "n_samples"), [(1, 1), (8, 2), (9, 1), (24, 2)])
def test_as_many_samples_as_asked_for(three, n_chains, n_samples):
    ranker = LdiRanker(n_topics=(3,), n_chains=n_chains, n_sweeps=21, n_samples=n_samples).fit(three)
    samples = ranker.learned_["topics3"]
    assert len(samples) == n_chains * n_samples
    assert n_chains == 1 or len(np.unique(samples, axis=0)) > 1


def test_samples_stand_ten_sweeps_apart(three):
    how = {"alpha": 0.1, "eta": 0.01, "seed": (0,)}
    longer = sample_topics(three.counts, 3, n_sweeps=25, n_samples=3, **how)
    each = [sample_topics(three.counts, 3, n_sweeps=n, n_samples=1, **how) for n in (5, 15, 25)]
    assert np.array_equal(longer[:3], [samples[0] for samples in each])
    assert np.array_equal(longer[-3:], [samples[-1] for samples in each])


def test_a_chain_follows_its_seed(three):
    first, again, other = (
        sample_topics(three.counts, 3, n_sweeps=4, n_samples=1, alpha=0.1, eta=0.01, seed=(s,)) for s in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_phi_by_hand():
    # tokens a b b | b c; topics 0 0 1 | 1 1: topic 0 has a and b once, topic 1 has b twice and c once
    counts = csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]))
    _, words = tokens_of(counts)
    phi = word_distributions(words, np.array([0, 0, 1, 1, 1], np.int32), 3, 2, eta=0.5)
    assert phi == pytest.approx(np.array([[1.5, 1.5, 0.5], [0.5, 2.5, 1.5]]) / [[3.5], [4.5]])


def test_a_chain_has_the_same_topics_on_every_processor():
    """The first and the last topics of a chain that was drawn once."""
    rng = np.random.default_rng(3)
    counts = csr_array(rng.integers(0, 3, (60, 40)).astype(np.float64))
    topic = sample_topics(counts, 21, n_sweeps=60, n_samples=1, alpha=0.1, eta=0.01, seed=(0, 21, 0))[0]
    assert (len(topic), topic[:12].tolist(), topic[-12:].tolist()) == KEPT_CHAIN


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha above 0"),
        ({"eta": -1.0}, "eta above 0"),
        ({"n_topics": (5, 5)}, "distinct"),
        ({"n_chains": 0}, "n_chains"),
    ],
)
def test_options_that_cannot_be_used(three, options, message):
    with pytest.raises(InputError, match=message):
        LdiRanker(**options).fit(three)
