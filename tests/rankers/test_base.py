"""What holds for every ranker, and the parts they share."""

import numpy as np
import pytest
from thread_counts import use_threads

from genm.errors import InputError, NotFittedError
from genm.rankers import make_ranker
from genm.rankers.base import cosines, in_threads, unit_rows_sparse
from genm.rankers.text import TextProfile, read_documents, read_queries

PLAIN = TextProfile("plain")
RANKERS = {
    "tfidf": {},
    "lsa": {"n_factors": (1, 2)},
    "plsi": {"n_topics": (2, 3), "n_steps": 10, "exponent": 0.8},
    "ldi": {"n_topics": (2, 3), "n_chains": 2, "n_sweeps": 10, "n_samples": 1},
    "bm25": {},
}
every_ranker = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.needs("bm25s")) if name == "bm25" else name for name in RANKERS]
)


@pytest.fixture
def corpus():
    texts = ["cat cat dog", "", "dog bird", "bird bird fish", "the cat", "..."]
    return read_documents(texts, PLAIN)


@every_ranker
def test_empty_queries_and_documents_score_nothing(name, corpus):
    scores = make_ranker(name, **RANKERS[name]).fit(corpus).score(read_queries(["cat dog", "", "wolf"], corpus))
    assert scores.shape == (3, 6)
    assert scores[:, [1, 5]].tolist() == [[0, 0]] * 3
    assert scores[1:].tolist() == [[0] * 6] * 2
    assert scores[0, 0] > 0
    assert scores.dtype == np.float64


@every_ranker
def test_a_corpus_without_a_single_term_scores_nothing(name):
    documents = read_documents(["", "!"], PLAIN)
    scores = make_ranker(name, **RANKERS[name]).fit(documents).score(read_queries(["cat", ""], documents))
    assert scores.tolist() == [[0, 0], [0, 0]]


@every_ranker
def test_fitting_again_gives_the_same_bits(name, corpus):
    queries = read_queries(["cat dog", "fish"], corpus)
    ranker = make_ranker(name, **RANKERS[name])
    first = ranker.fit(corpus).score(queries)
    assert np.array_equal(first, ranker.fit(corpus).score(queries))


@every_ranker
def test_the_number_of_threads_changes_nothing(name, corpus, monkeypatch):
    queries = read_queries(["cat dog", "fish"], corpus)
    found = []
    for threads in ("1", "4"):
        use_threads(monkeypatch, threads)
        found.append(make_ranker(name, **RANKERS[name]).fit(corpus).score(queries))
    assert np.array_equal(*found)


@pytest.mark.parametrize("name", ["plsi", "ldi"])
def test_another_seed_gives_another_model(name, corpus):
    queries = read_queries(["cat dog"], corpus)
    one, two = (make_ranker(name, **RANKERS[name], seed=s).fit(corpus).score(queries) for s in (0, 1))
    assert not np.array_equal(one, two)


# the others draw their start in the documents' order
@pytest.mark.parametrize("name", ["tfidf", "lsa", pytest.param("bm25", marks=pytest.mark.needs("bm25s"))])
def test_order_of_documents_is_kept(name, corpus):
    turned = read_documents(corpus.raw[::-1], PLAIN)
    one = make_ranker(name, **RANKERS[name]).fit(corpus).score(read_queries(["cat dog"], corpus))
    two = make_ranker(name, **RANKERS[name]).fit(turned).score(read_queries(["cat dog"], turned))
    assert one == pytest.approx(two[:, ::-1], abs=1e-12)


@every_ranker
def test_what_was_learned_comes_back_from_disk(name, corpus, monkeypatch, tmp_path):
    monkeypatch.setenv("GENM_CACHE", str(tmp_path))
    queries = read_queries(["cat dog"], corpus)
    first = make_ranker(name, **RANKERS[name]).fit(corpus, cache=True)
    again = make_ranker(name, **RANKERS[name])
    if name in ("lsa", "plsi", "ldi"):
        monkeypatch.setattr(type(again), "_learn", None)  # must not be called
    assert np.array_equal(first.score(queries), again.fit(corpus, cache=True).score(queries))


def test_the_cache_tells_options_and_texts_apart(corpus):
    ranker, other = make_ranker("lsa", n_factors=(1,)), make_ranker("lsa", n_factors=(2,))
    changed = read_documents([*corpus.raw[:-1], "fish"], PLAIN)
    assert len({str(r.key(d)) for r in (ranker, other) for d in (corpus, changed)}) == 4


def test_scoring_before_fitting(corpus):
    with pytest.raises(NotFittedError, match="tfidf: expected a fitted ranker"):
        make_ranker("tfidf").score(corpus)


def test_queries_counted_in_another_vocabulary(corpus, three):
    with pytest.raises(InputError, match="found another one"):
        make_ranker("tfidf").fit(corpus).score(three)


def test_rows_of_zeros_stay_zero():
    assert cosines(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [2.0, 0.0]])).tolist() == [
        [0, 0],
        [0, pytest.approx(0.5**0.5)],
    ]


def test_sparse_rows_of_length_one(three):
    lengths = np.linalg.norm(unit_rows_sparse(three.counts).toarray(), axis=1)
    assert lengths == pytest.approx(np.ones(3))


def test_work_in_threads_keeps_its_order_and_tells_its_progress():
    told = []
    done = in_threads(lambda k: k * k, [3, 5, 4], "squares", lambda *a: told.append(a), cost=int)
    assert done == [9, 25, 16]
    assert told == [("squares", n, 3) for n in range(4)]
