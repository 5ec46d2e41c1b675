import numpy as np
import pytest

from genm.errors import InputError
from genm.rankers.ldi import LdiRanker, sample_topics, topics_of_words
from genm.rankers.text import TextProfile, read_documents, read_queries


def test_words_become_topics_by_hand():
    # phi / column sums (0.8, 0.6, 0.6)
    w = topics_of_words(np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]))
    assert w == pytest.approx(np.array([[0.75, 0.25], [0.5, 0.5], [1 / 6, 5 / 6]]))


def test_scores_by_hand():
    documents = read_documents(["alpha beta", "gamma gamma", "beta"], TextProfile("plain"))
    ranker = LdiRanker(n_topics=(2,), n_sweeps=1).fit(documents)
    ranker.learned_ = {"topics2": np.array([[0.75, 0.25], [0.5, 0.5], [1 / 6, 5 / 6]])}
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
    singles = [LdiRanker(n_topics=(k,), n_sweeps=5).fit(three).score(ask("cat dog")) for k in (2, 20)]
    both = LdiRanker(n_topics=(2, 20), n_sweeps=5).fit(three).score(ask("cat dog"))
    assert both == pytest.approx((singles[0] + singles[1]) / 2)


def test_phi_holds_distributions_and_follows_its_seed(three):
    first, again, other = (
        sample_topics(three.counts, 3, n_sweeps=4, alpha=0.1, eta=0.01, seed=s) for s in (0, 0, 1)
    )
    assert first.sum(axis=1) == pytest.approx(np.ones(3))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"alpha": 0.0}, "alpha above 0"), ({"eta": -1.0}, "eta above 0"), ({"n_topics": (5, 5)}, "distinct")],
)
def test_options_that_cannot_be_used(three, options, message):
    with pytest.raises(InputError, match=message):
        LdiRanker(**options).fit(three)
