import numpy as np
import pytest

from genm._math import topic_models
from genm.errors import InputError
from genm.progress import silent
from genm.rankers.plsi import EXPONENTS, Mixture, PlsiRanker, choose_exponent, fit_mixture, fold_in, hide
from genm.rankers.text import TextProfile, read_documents, read_queries


@pytest.fixture
def two_subjects():
    sea = ["ship sail wave", "sail wind wave", "ship wind", "wave ship sail wind"]
    wood = ["oak leaf root", "leaf moss root", "oak moss", "root oak leaf moss"]
    return read_documents(sea + wood, TextProfile("plain"))


def test_term_space_by_hand(three, ask):
    # One topic is the word distribution of all 8 words: bird 3/8, cat 2/8, dog 2/8, fish 1/8, for every document.
    # share 1/2: D1 = (0.1875, 0.458333, 0.291667, 0.0625), D2 = (0.4375, 0.125, 0.375, 0.0625),
    # D3 = (0.520833, 0.125, 0.125, 0.229167). Times idf (0.405465, 1.098612, 0.405465, 1.098612):
    # D1 = (0.076025, 0.503531, 0.118261, 0.068663), length 0.527280
    # D2 = (0.177391, 0.137327, 0.152049, 0.068663), length 0.279573
    # D3 = (0.211180, 0.137327, 0.050683, 0.251765), length 0.359738
    # "cat" is (0, 1.098612, 0, 0): the cosines are 0.503531/0.527280, 0.137327/0.279573, 0.137327/0.359738
    ranker = PlsiRanker(n_topics=(1,), exponent=0.8, n_steps=3, share=0.5).fit(three)
    assert ranker.score(ask("cat"))[0] == pytest.approx([0.954960, 0.491203, 0.381742], abs=2e-6)


def test_without_a_share_one_topic_cannot_tell_documents_apart(three, ask):
    scores = PlsiRanker(n_topics=(1,), exponent=0.8, n_steps=3, share=0).fit(three).score(ask("cat"))
    assert scores[0] == pytest.approx(np.full(3, scores[0, 0]))


def test_share_one_is_the_cosine_of_tf_idf(three, ask):
    scores = PlsiRanker(n_topics=(2,), exponent=0.8, n_steps=3, share=1).fit(three).score(ask("cat dog"))
    assert scores[0] == pytest.approx([0.985402, 0.244830, 0], abs=1e-6)


def test_topic_space_by_hand(three, ask):
    # P(z) = 1/2, 1/2. P(d|z) = (1, 0, 0), (0, 1/2, 1/2): P(z|d) = (1, 0), (0, 1), (0, 1).
    # P(cat|z) = 3/5, 1/5. Exponent 1: folding in multiplies by 3 : 1 at each step and ends at (1, 0).
    ranker = PlsiRanker(n_topics=(2,), exponent=1.0, n_steps=1, space="topics").fit(three)
    ranker.learned_ |= {
        "topics2": np.array([0.5, 0.5]),
        "documents2": np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]]),
        "terms2": np.array([[0.2, 0.4], [0.6, 0.2], [0.2, 0.2], [0.0, 0.2]]),
    }
    assert ranker.score(ask("cat"))[0] == pytest.approx([1, 0, 0], abs=1e-9)


def test_folding_in_halfway_by_hand(three, ask):
    # Exponent 1/2: P(z|q) is the fixed point of p ~ p^(1/2) P(w|z)^(1/2), so p ~ P(w|z): 3/4, 1/4 for cat.
    model = Mixture(
        np.array([0.5, 0.5]), np.ones((3, 2)) / 3, np.array([[0.2, 0.4], [0.6, 0.2], [0.2, 0.2], [0, 0.2]])
    )
    assert fold_in(ask("cat", "").counts, model, 0.5) == pytest.approx(np.array([[0.75, 0.25], [0, 0]]), abs=1e-6)


@pytest.mark.parametrize("space", ["terms", "topics"])
def test_topics_bring_in_words_the_query_lacks(two_subjects, space):
    queries = read_queries(["ship"], two_subjects)
    scores = PlsiRanker(n_topics=(2,), exponent=0.9, space=space).fit(two_subjects).score(queries)[0]
    assert scores[1] > scores[4:].max() + 0.1  # "sail wind wave" has no ship, but is about the sea


def test_a_fitted_model_is_a_set_of_distributions(two_subjects):
    model = fit_mixture(two_subjects.counts, 3, exponent=0.8, n_steps=20, patience=None, seed=0)
    for table in (model.topics[:, None], model.documents, model.terms):
        assert table.sum(axis=0) == pytest.approx(np.ones(table.shape[1]))
    assert model.of_documents().sum(axis=1) == pytest.approx(np.ones(8))


def test_the_default_averages_single_models(two_subjects):
    queries = read_queries(["ship oak"], two_subjects)
    singles = [PlsiRanker(n_topics=(k,), exponent=0.8).fit(two_subjects).score(queries) for k in (2, 3)]
    both = PlsiRanker(n_topics=(2, 3), exponent=0.8).fit(two_subjects).score(queries)
    assert both == pytest.approx((singles[0] + singles[1]) / 2)


def test_patience_keeps_the_step_that_predicts_best(two_subjects):
    counts = two_subjects.counts
    stopped = fit_mixture(counts, 8, exponent=1.0, n_steps=200, patience=3, seed=1)
    generator = np.random.default_rng([1, 8])
    _, hidden = hide(counts, generator)
    parts = (hidden.indptr.astype(np.int64), hidden.indices.astype(np.int32), hidden.data)

    def held_out(model):
        return topic_models.plsi_log_likelihood(*parts, model.documents * model.topics, model.terms)

    patient = fit_mixture(counts, 8, exponent=1.0, n_steps=200, patience=1000, seed=1)
    last = fit_mixture(counts, 8, exponent=1.0, n_steps=200, patience=None, seed=1)
    assert held_out(patient) >= held_out(stopped)
    assert not np.array_equal(stopped.terms, last.terms)


def test_hiding_splits_every_occurrence_once(two_subjects):
    seen, hidden = hide(two_subjects.counts, np.random.default_rng(0))
    assert (seen + hidden - two_subjects.counts).toarray().any() == np.False_
    assert 0 < hidden.sum() < seen.sum()


def test_the_exponent_is_chosen_without_queries_and_used(two_subjects):
    chosen = choose_exponent(two_subjects.counts, 0, silent)
    assert chosen in EXPONENTS
    ranker = PlsiRanker(n_topics=(2,), n_steps=5).fit(two_subjects)
    fixed = PlsiRanker(n_topics=(2,), n_steps=5, exponent=chosen).fit(two_subjects)
    assert np.array_equal(ranker.learned_["terms2"], fixed.learned_["terms2"])
    other = PlsiRanker(n_topics=(2,), n_steps=5, exponent=0.5).fit(two_subjects)
    assert not np.array_equal(ranker.learned_["terms2"], other.learned_["terms2"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exponent": 0.0}, "above 0 and up to 1; found 0.0"),
        ({"share": 1.5}, "from 0 to 1; found 1.5"),
        ({"space": "words"}, "one of terms, topics; found 'words'"),
        ({"n_topics": ()}, "n_topics; found"),
        ({"patience": 0}, "patience; found"),
    ],
)
def test_options_that_cannot_be_used(three, options, message):
    with pytest.raises(InputError, match=message):
        PlsiRanker(**options).fit(three)
