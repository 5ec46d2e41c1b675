import numpy as np
import pytest
from scipy.sparse import csr_array

from genm.errors import InputError
from genm.rankers.lsa import LsaRanker, truncated_svd
from genm.rankers.text import TextProfile, read_documents, read_queries

PLAIN = TextProfile("plain")


@pytest.fixture
def pair():
    return read_documents(["x y", "x y", "z"], PLAIN)


def test_scores_by_hand(pair):
    # c = ln(3/2) weighs x and y, a = ln 3 weighs z. The rows are c(1, 1, 0) twice and a(0, 0, 1): the singular
    # values are a = 1.098612 (z) and 2c = 0.810930 with the direction (1, 1, 0)/sqrt 2.
    # Query "x z" has the coordinates (a, c/sqrt 2) = (1.098612, 0.286707), length 1.135407.
    # D1 = D2 = (0, c sqrt 2): 0.286707/1.135407 = 0.252515. D3 = (a, 0): 1.098612/1.135407 = 0.967593
    ranker = LsaRanker(n_factors=(2,), weighting="tf-idf").fit(pair)
    scores = ranker.score(read_queries(["x z", "x"], pair))
    assert scores[0] == pytest.approx([0.252515, 0.252515, 0.967593], abs=1e-5)
    assert scores[1] == pytest.approx([1, 1, 0], abs=1e-12)  # y came along although the query lacks it


def test_the_average_over_numbers_of_factors_by_hand(pair):
    # with one factor only z exists: "x" scores 0 everywhere; with two it scores 1, 1, 0
    ranker = LsaRanker(n_factors=(1, 2), weighting="tf-idf").fit(pair)
    assert ranker.score(read_queries(["x"], pair))[0] == pytest.approx([0.5, 0.5, 0], abs=1e-12)


def test_documents_are_scaled_by_the_singular_values(three, ask):
    # against an SVD done here: with k = 2 the documents are U S, the queries q V
    ranker = LsaRanker(n_factors=(2,), weighting="tf-idf").fit(three)
    weights = np.log(3 / np.array([2, 1, 2, 1]))
    u, s, vt = np.linalg.svd(three.counts.toarray() * weights, full_matrices=False)
    q = (np.array([1, 0, 1, 0]) * weights) @ vt[:2].T
    docs = u[:, :2] * s[:2]
    expected = docs @ q / np.linalg.norm(docs, axis=1) / np.linalg.norm(q)
    assert ranker.score(ask("bird dog"))[0] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("weighting", ["log-entropy", "log-idf", "tf-idf"])
def test_every_weighting_gives_its_own_scores(three, ask, weighting):
    scores = LsaRanker(n_factors=(2,), weighting=weighting).fit(three).score(ask("cat dog"))
    others = {"log-entropy", "log-idf", "tf-idf"} - {weighting}
    for other in others:
        assert not np.allclose(scores, LsaRanker(n_factors=(2,), weighting=other).fit(three).score(ask("cat dog")))


def test_the_random_subspace_finds_the_true_triplets():
    draw = np.random.default_rng(3)
    rows = csr_array(np.where(draw.random((300, 200)) < 0.05, draw.random((300, 200)), 0.0))
    rows = csr_array(rows + csr_array(np.outer(np.arange(300) % 3 == 0, np.arange(200) % 5 == 0) * 1.0))
    left, values, right = truncated_svd(rows, 5, 0, n_passes=30)
    exact = np.linalg.svd(rows.toarray(), compute_uv=False)[:5]
    assert values == pytest.approx(exact, rel=1e-3)
    assert left.T @ left == pytest.approx(np.eye(5), abs=1e-8)
    assert right @ right.T == pytest.approx(np.eye(5), abs=1e-6)
    assert np.linalg.norm(rows.toarray() @ right[0] - values[0] * left[:, 0]) < 1e-6


def test_more_factors_than_rank_are_cut(pair):
    assert LsaRanker(n_factors=(50, 100)).fit(pair).learned_["terms"].shape == (3, 2)


def test_factors_must_be_numbers_from_one(pair):
    with pytest.raises(InputError, match=r"n_factors; found \[0\]"):
        LsaRanker(n_factors=(0,)).fit(pair)
