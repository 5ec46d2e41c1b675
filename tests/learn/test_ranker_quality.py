"""Quality without judgments: fake labels, overlaps less chance, specificity, shares and their scale."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import made_up

from genm.align import Aligned, align_runs
from genm.errors import InputError
from genm.ids import Ids
from genm.learn.ranker_quality import LUCK, RIDGE, Quality, estimate_quality, pseudo_labels
from genm.records import ranked_run


def listed(*rankers: dict[str, dict[str, float]]) -> Aligned:
    """Align rankers given as query -> document -> score."""
    runs = {}
    for k, ranker in enumerate(rankers):
        queries, docs = sorted(ranker), sorted({d for found in ranker.values() for d in found})
        starts = np.cumsum([0] + [len(ranker[q]) for q in queries])
        doc = np.array([docs.index(d) for q in queries for d in ranker[q]], np.int32)
        score = np.array([s for q in queries for s in ranker[q].values()], np.float64)
        runs[f"r{k}"] = ranked_run(f"r{k}", Ids.of(queries), Ids.of(docs), starts, doc, score)
    return align_runs(runs, None, normalize="none")


def marked(aligned: Aligned, marks: np.ndarray, ranker: int) -> set[tuple[int, str]]:
    query = np.repeat(np.arange(len(aligned.queries)), np.diff(aligned.starts))
    return {(int(query[i]), aligned.docs[int(aligned.doc[i])]) for i in np.flatnonzero(marks[:, ranker])}


def test_the_top_is_marked_without_ties_across_its_edge() -> None:
    aligned = listed({"p": {"a": 4, "b": 3, "c": 2, "d": 1}, "q": {"a": 4, "b": 2, "c": 2, "d": 1}})
    assert marked(aligned, pseudo_labels(aligned, n=2), 0) == {(0, "a"), (0, "b"), (1, "a")}


def test_a_list_no_longer_than_the_top_is_marked_whole_and_equal_scores_mark_nothing() -> None:
    aligned = listed({"p": {"a": 4, "b": 4}, "q": {"a": 1, "b": 1, "c": 1}})
    assert marked(aligned, pseudo_labels(aligned, n=2), 0) == {(0, "a"), (0, "b")}


def test_documents_a_ranker_did_not_return_are_never_marked() -> None:
    aligned = listed({"p": {"a": 2, "b": 1}}, {"p": {"c": -5.0, "d": -6.0}})
    assert marked(aligned, pseudo_labels(aligned, n=3), 1) == {(0, "c"), (0, "d")}
    assert marked(aligned, pseudo_labels(aligned, labels="threshold", threshold=-5.5), 1) == {(0, "c")}


def test_overlap_by_hand() -> None:
    """Eight times the tops {a, b} and {c, d} against {a, c} and {c, d}, each time of documents of their own."""
    first, second = {}, {}
    for i in range(8):
        a, b, c, d = (f"{letter}{i}" for letter in "abcd")
        first |= {f"p{i}": {a: 9, b: 8, c: 1, d: 0}, f"q{i}": {c: 9, d: 8, a: 1, b: 0}}
        second |= {f"p{i}": {a: 9, c: 8, b: 1, d: 0}, f"q{i}": {c: 9, d: 8, a: 1, b: 0}}
    aligned = listed(first, second)
    quality = estimate_quality(aligned, pseudo_labels(aligned, n=2))
    # of 32 places 24 are common; of the 15 other queries one shares c with a_1(q_i), and none with a_1(p_i)
    observed, by_chance = 24 / 32, 8 / 15 / 32
    luck = by_chance + LUCK * (by_chance / 32) ** 0.5
    assert quality.overlap[0, 1] == pytest.approx((observed - luck) / (1 - by_chance))
    np.testing.assert_allclose(quality.specificity, [32 / 32, 32 / 48])  # the second names each c twice
    np.testing.assert_allclose(quality.agreement, quality.overlap[0, 1])
    np.testing.assert_allclose(quality.height, [8.5 - 4.5, 8.5 - 4.5])


def test_what_few_queries_show_may_be_luck() -> None:
    """Two queries, tops of two, three of four places in common where chance gives one: no evidence yet."""
    first = {"p": {"a": 9, "b": 8, "c": 1, "d": 0}, "q": {"c": 9, "d": 8, "a": 1, "b": 0}}
    second = {"p": {"a": 9, "c": 8, "b": 1, "d": 0}, "q": {"c": 9, "d": 8, "a": 1, "b": 0}}
    aligned = listed(first, second)
    assert estimate_quality(aligned, pseudo_labels(aligned, n=2)).overlap[0, 1] == 0.0


def test_naming_the_same_documents_whatever_is_asked_earns_no_agreement() -> None:
    hub = {q: {"a": 9.0, "b": 8.0, "c": 1.0, "d": 0.5} for q in "pqrs"}
    aligned = listed(hub, hub)
    quality = estimate_quality(aligned, pseudo_labels(aligned, n=2))
    assert quality.agreement.tolist() == [0.0, 0.0]
    np.testing.assert_allclose(quality.specificity, 1 / 4)
    assert quality.shares().tolist() == [1.0, 1.0]


def test_shares_solve_the_ridge_system_where_all_are_positive() -> None:
    overlap = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])
    quality = Quality(overlap, np.array([0.9, 0.8, 1.0]), np.array([1.0, 2.0, 4.0]))
    solved = np.linalg.solve(overlap + RIDGE * np.eye(3), quality.merit / quality.merit.max())
    assert (solved > 0).all()
    np.testing.assert_allclose(quality.shares(), solved, rtol=1e-9)
    weights = solved / quality.height
    np.testing.assert_allclose(quality.weights(), weights / weights.sum(), rtol=1e-9)


def test_a_copy_adds_no_agreement_and_shares_the_say_of_its_twin() -> None:
    pair = Quality(np.array([[1.0, 0.5], [0.5, 1.0]]), np.ones(2), np.ones(2))
    twins = Quality(np.array([[1.0, 0.5, 0.5], [0.5, 1.0, 1.0], [0.5, 1.0, 1.0]]), np.ones(3), np.ones(3))
    np.testing.assert_allclose(twins.agreement, 0.5)
    assert pair.weights()[0] == pytest.approx(0.5)
    assert twins.weights()[1] == pytest.approx(twins.weights()[2])
    assert twins.weights()[1:].sum() < 0.55
    copies = Quality(np.ones((2, 2)), np.ones(2), np.ones(2))
    np.testing.assert_allclose(copies.weights(), 0.5)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 8))
def test_estimates_are_within_bounds_and_follow_the_rankers(seed: int, n_rankers: int, n: int) -> None:
    """Shares and specificities are in range; rankers in another order give the same in that order."""
    quality = tuple(np.random.default_rng(seed).uniform(0, 1.5, n_rankers).tolist())
    aligned = made_up(seed, quality=quality, n_queries=4, n_docs=20)
    marks = pseudo_labels(aligned, n=n)
    found = estimate_quality(aligned, marks)
    assert ((found.overlap >= 0) & (found.overlap <= 1)).all()
    assert ((found.specificity > 0) & (found.specificity <= 1)).all()
    assert (found.height > 0).all()
    weights = found.weights()
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1.0)
    order = np.random.default_rng(seed).permutation(n_rankers)
    turned = Quality(found.overlap[np.ix_(order, order)], found.specificity[order], found.height[order])
    np.testing.assert_allclose(turned.weights(), weights[order], atol=1e-9)


def test_better_rankers_have_more_merit() -> None:
    aligned = made_up(0, quality=(1.4, 1.0, 0.6, 0.2), n_queries=40, n_docs=200)
    merit = estimate_quality(aligned, pseudo_labels(aligned, n=5)).merit
    assert merit.tolist() == sorted(merit.tolist(), reverse=True)


def test_senseless_labels_are_refused() -> None:
    with pytest.raises(InputError, match="n=True"):
        pseudo_labels(made_up(0), n=True)
    with pytest.raises(InputError, match="top, threshold"):
        pseudo_labels(made_up(0), labels="best")  # type: ignore[arg-type]
