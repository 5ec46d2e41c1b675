import math
import statistics
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from judged_cases import run_of, tied_runs

from genm.align import Aligned, align_runs
from genm.errors import InputError
from genm.fuse import METHODS, fuse_runs, fuse_scores, rule_scores
from genm.normalizers import Normalizer
from genm.records import Run

A = {"q": {"d1": 4.0, "d2": 3.0, "d3": 0.0}}
B = {"q": {"d3": 10.0, "d4": 5.0, "d1": 0.0}}
C = {"q": {"d4": 2.0, "d3": 1.0}}


def three(**options: object) -> Aligned:
    return align_runs({"a": run_of(A), "b": run_of(B), "c": run_of(C)}, **options)


def scores_of(run: Run) -> dict[str, dict[str, float]]:
    return {
        query_id: {run.docs[run.doc[i]]: float(run.score[i]) for i in range(run.starts[q], run.starts[q + 1])}
        for q, query_id in enumerate(run.queries)
    }


def order_of(run: Run) -> dict[str, list[str]]:
    return {query_id: list(scores) for query_id, scores in scores_of(run).items()}


# Min-max: a d1 1, d2 .75, d3 0; b d3 1, d4 .5, d1 0; c d4 1, d3 0. Ranks: a d1 d2 d3; b d3 d4 d1; c d4 d3.
@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("sum", {"d1": 1 / 3, "d2": 0.25, "d3": 1 / 3, "d4": 0.5}),
        ("combsum", {"d1": 1.0, "d2": 0.75, "d3": 1.0, "d4": 1.5}),
        ("combmnz", {"d1": 2.0, "d2": 0.75, "d3": 3.0, "d4": 3.0}),
        ("combanz", {"d1": 0.5, "d2": 0.75, "d3": 1 / 3, "d4": 0.75}),
        ("combmax", {"d1": 1.0, "d2": 0.75, "d3": 1.0, "d4": 1.0}),
        ("combmin", {"d1": 0.0, "d2": 0.75, "d3": 0.0, "d4": 0.5}),
        ("combmed", {"d1": 0.5, "d2": 0.75, "d3": 0.0, "d4": 0.75}),
        ("rrf", {"d1": 1 / 61 + 1 / 63, "d2": 1 / 62, "d3": 1 / 63 + 1 / 61 + 1 / 62, "d4": 1 / 62 + 1 / 61}),
        ("isr", {"d1": 2 * (1 + 1 / 9), "d2": 1 / 4, "d3": 3 * (1 / 9 + 1 + 1 / 4), "d4": 2 * (1 / 4 + 1)}),
        (
            "logisr",
            {
                "d1": math.log(2) * (1 + 1 / 9),
                "d2": 0.0,
                "d3": math.log(3) * (1 / 9 + 1 + 1 / 4),
                "d4": math.log(2) * (1 / 4 + 1),
            },
        ),
        # four candidates: a gives 4 3 2 and d4 the last point; b likewise, d2 1; c gives 4 3, the others 1.5
        ("borda", {"d1": 4 + 2 + 1.5, "d2": 3 + 1 + 1.5, "d3": 2 + 4 + 3, "d4": 1 + 3 + 4}),
        # two lists of three put d3 before d4, d3 before d1, d4 before d1; d2 loses to d1 in both that tell
        ("condorcet", {"d3": 4.0, "d4": 3.0, "d1": 2.0, "d2": 1.0}),
    ],
)
def test_every_method_worked_by_hand(method: str, expected: dict[str, float]) -> None:
    found = scores_of(fuse_runs(three(), method=method))["q"]
    assert found == pytest.approx(expected)
    ranked = sorted(found.items(), key=lambda item: (item[1], item[0]), reverse=True)
    assert list(found.items()) == ranked


def test_every_method_is_listed_and_described() -> None:
    import genm.fuse

    assert METHODS[:2] == ("sum", "rrf")
    for method in METHODS:
        assert f"\n| {method} |" in genm.fuse.__doc__


def test_rule_scores_are_what_the_run_is_ranked_by() -> None:
    aligned = three()
    for method in METHODS:
        found = scores_of(fuse_runs(aligned, method=method))["q"]
        by_row = [found[aligned.docs[d]] for d in aligned.doc]
        np.testing.assert_array_equal(rule_scores(aligned, method), by_row)
    np.testing.assert_allclose(rule_scores(aligned, "rrf", k=0.0).max(), 1 / 3 + 1 + 1 / 2)


def test_weights_come_by_name_or_in_order_and_use_the_filled_gaps() -> None:
    aligned = three(normalize=Normalizer("minmax", missing=-1.0))
    expected = {"d1": 2.0 - 3.0, "d2": 2 * 0.75 - 1 - 3, "d3": 1.0, "d4": -2 + 0.5 + 3}
    for weights in ({"c": 3, "a": 2, "b": 1}, [2, 1, 3], np.array([2.0, 1.0, 3.0])):
        assert scores_of(fuse_runs(aligned, weights))["q"] == pytest.approx(expected)
        assert fuse_scores(aligned, weights) == pytest.approx([expected[f"d{i}"] for i in (4, 3, 2, 1)])


def test_the_constant_of_rrf_is_read() -> None:
    found = scores_of(fuse_runs(three(), method="rrf", k=0.0))["q"]
    assert found == pytest.approx({"d1": 1 + 1 / 3, "d2": 1 / 2, "d3": 1 / 3 + 1 + 1 / 2, "d4": 1 / 2 + 1})


def test_weighted_rrf_is_the_sum_over_reciprocal_ranks() -> None:
    aligned = three(normalize=Normalizer("reciprocal", k=10.0))
    found = scores_of(fuse_runs(aligned, [1.0, 1.0, 1.0]))["q"]
    assert found == pytest.approx(scores_of(fuse_runs(three(), method="rrf", k=10.0))["q"])


def test_top_keeps_the_best_of_each_query() -> None:
    runs = {"a": run_of({"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}, "q2": {"d1": 1.0}, "q3": {"d5": 1.0, "d4": 2.0}})}
    fused = fuse_runs(align_runs(runs), top=2, name="mine")
    assert fused.name == "mine"
    assert order_of(fused) == {"q1": ["d1", "d2"], "q2": ["d1"], "q3": ["d4", "d5"]}


def test_ties_fall_by_doc_id_downwards() -> None:
    runs = {"a": run_of({"q": {"b": 1.0, "é": 1.0, "c": 1.0, "a": 2.0}})}
    assert order_of(fuse_runs(align_runs(runs)))["q"] == ["a", "é", "c", "b"]


def test_equal_scores_tie_wherever_they_stand() -> None:
    """A matrix product may round equal rows apart; then the order of doc ids would be lost."""
    table = {f"d{i:04}": 0.1 for i in range(1001)}
    runs = {name: run_of({"q": table}) for name in "abcdefg"}
    weights = [0.1, 0.2, 0.3, 0.7, 0.15, 0.35, 0.05]
    fused = fuse_runs(align_runs(runs, normalize="none"), weights)
    assert len(set(fused.score.tolist())) == 1
    assert order_of(fused)["q"] == sorted(table, reverse=True)


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        (None, {"method": "magic"}, "method: expected one of sum, rrf, combsum.*; found 'magic'"),
        ([1.0, 1.0, 1.0], {"method": "rrf"}, "weights: the method 'rrf' takes none; only 'sum' does.*reciprocal"),
        ([1.0, 1.0], {}, r"expected 3 numbers, for a, b, c; found shape \(2,\)"),
        ({"a": 1.0, "b": 1.0}, {}, "expected one for each of the rankers a, b, c; found a, b"),
        ({"a": 1.0, "b": 1.0, "x": 2.0}, {}, "found a, b, x"),
        ([1.0, math.nan, 1.0], {}, "weights: expected finite numbers"),
        (None, {"method": "rrf", "k": -1.0}, "k: expected a number above -1"),
        (None, {"top": 0}, "top: expected a positive integer of 64 bits; found 0"),
    ],
)
def test_what_cannot_be_fused_is_refused(weights: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fuse_runs(three(), weights, **options)


def test_sums_beyond_double_precision_are_refused_not_infinite() -> None:
    runs = {name: run_of({"q": {"d": 1.7e308}}) for name in "ab"}
    aligned = align_runs(runs, normalize="none")
    with pytest.raises(InputError, match=r"too large to be added up.*minmax"):
        fuse_runs(aligned, [1.0, 1.0])
    with pytest.raises(InputError, match="fusing by 'combmnz'"):
        fuse_runs(aligned, method="combmnz")
    assert scores_of(fuse_runs(aligned, method="combmed"))["q"]["d"] == 1.7e308


def test_queries_without_documents_stay_empty() -> None:
    aligned = align_runs({"a": run_of({"q1": {}, "q2": {"d": 1.0}, "q3": {}})})
    for method in METHODS:
        assert order_of(fuse_runs(aligned, method=method)) == {"q1": [], "q2": ["d"], "q3": []}


Lists = list[Mapping[str, float]]
Ranks = list[Mapping[str, int]]


def slow_borda(ranks: Ranks, document: str, n: int) -> float:
    return sum(n + 1 - r[document] if document in r else (n - len(r) + 1) / 2 for r in ranks)


SCORE_RULES: dict[str, Callable[[list[float]], float]] = {
    "combsum": sum,
    "combmnz": lambda s: len(s) * sum(s),
    "combanz": statistics.mean,
    "combmax": max,
    "combmin": min,
    "combmed": statistics.median,
}
RANK_RULES: dict[str, Callable[[list[int]], float]] = {
    "rrf": lambda r: sum(1 / (60 + x) for x in r),
    "isr": lambda r: len(r) * sum(1 / x**2 for x in r),
    "logisr": lambda r: math.log(len(r)) * sum(1 / x**2 for x in r),
}


@settings(deadline=None, max_examples=60)
@given(st.lists(tied_runs(min_docs=0), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_fusing_agrees_with_dictionaries(tables: list[dict[str, dict[str, float]]], random: object) -> None:
    aligned = align_runs(
        {f"r{k}": run_of(t) for k, t in enumerate(tables)}, normalize=Normalizer("none", missing=9.0)
    )
    weights = [random.uniform(-1, 2) for _ in tables]
    fused = {method: scores_of(fuse_runs(aligned, method=method)) for method in METHODS if method != "sum"}
    summed = scores_of(fuse_runs(aligned, weights))
    for query_id in aligned.queries:
        lists: Lists = [table.get(query_id, {}) for table in tables]
        ranks: Ranks = [
            {d: i + 1 for i, d in enumerate(sorted(one, key=lambda d, o=one: (o[d], d.encode()), reverse=True))}
            for one in lists
        ]
        documents = {d for one in lists for d in one}
        assert set(summed[query_id]) == documents
        for d in documents:
            held, places = [one[d] for one in lists if d in one], [one[d] for one in ranks if d in one]
            filled = sum(w * one.get(d, 9.0) for w, one in zip(weights, lists, strict=True))
            assert summed[query_id][d] == pytest.approx(filled, abs=1e-12)
            for method, rule in SCORE_RULES.items():
                assert fused[method][query_id][d] == pytest.approx(rule(held), abs=1e-12)
            for method, rule in RANK_RULES.items():
                assert fused[method][query_id][d] == pytest.approx(rule(places), abs=1e-12)
            borda = slow_borda(ranks, d, len(documents))
            assert fused["borda"][query_id][d] == pytest.approx(borda)


@settings(deadline=None, max_examples=60)
@given(tied_runs(min_docs=0), st.sampled_from([m for m in METHODS if m != "logisr"]))
def test_a_single_ranker_keeps_its_order(table: dict[str, dict[str, float]], method: str) -> None:
    run = run_of(table)
    assert order_of(fuse_runs(align_runs([run]), method=method)) == order_of(run)


@settings(deadline=None, max_examples=40)
@given(st.lists(tied_runs(), min_size=2, max_size=4), st.sampled_from(METHODS), st.randoms(use_true_random=False))
def test_the_order_of_the_rankers_does_not_matter(
    tables: list[dict[str, dict[str, float]]], method: str, random: object
) -> None:
    runs = [(f"r{k}", run_of(table)) for k, table in enumerate(tables)]
    straight = scores_of(fuse_runs(align_runs(dict(runs)), method=method))
    random.shuffle(runs)
    shuffled = scores_of(fuse_runs(align_runs(dict(runs)), method=method))
    assert set(straight) == set(shuffled)
    for query_id, scores in straight.items():
        assert shuffled[query_id] == pytest.approx(scores)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(tied_runs(), min_size=2, max_size=3),
    st.lists(st.integers(0, 6), min_size=3, max_size=3),
    st.integers(-20, 20),
)
def test_weights_scaled_together_rank_the_same(
    tables: list[dict[str, dict[str, float]]], weights: list[int], power: int
) -> None:
    aligned = align_runs({f"r{k}": run_of(t) for k, t in enumerate(tables)})
    chosen = np.array(weights[: len(tables)], np.float64)
    assert order_of(fuse_runs(aligned, chosen)) == order_of(fuse_runs(aligned, chosen * 2.0**power))


@settings(deadline=None, max_examples=40)
@given(st.lists(tied_runs(), min_size=2, max_size=3), st.floats(0.1, 30.0), st.floats(-9.0, 9.0))
def test_minmax_fusion_does_not_see_affine_maps_of_a_ranker(
    tables: list[dict[str, dict[str, float]]], factor: float, offset: float
) -> None:
    moved = {q: {d: factor * s + offset for d, s in t.items()} for q, t in tables[0].items()}
    assume(all(len(set(t.values())) == len(set(moved[q].values())) for q, t in tables[0].items()))
    rest = {f"r{k}": run_of(t) for k, t in enumerate(tables[1:])}
    one = scores_of(fuse_runs(align_runs({"x": run_of(tables[0])} | rest)))
    other = scores_of(fuse_runs(align_runs({"x": run_of(moved)} | rest)))
    for query_id, scores in one.items():
        assert other[query_id] == pytest.approx(scores, abs=1e-9)


def test_runs_are_aligned_under_the_rules_given_and_aligned_ones_have_theirs() -> None:
    runs = {"a": run_of(A), "b": run_of(A)}
    assert fuse_runs(runs, method="rrf") == fuse_runs(align_runs(runs), method="rrf")
    wanted = fuse_runs(align_runs(runs, normalize="zscore", depth=1), [0.3, 0.7], top=1)
    assert fuse_runs(runs, [0.3, 0.7], top=1, normalize="zscore", depth=1) == wanted
    with pytest.raises(InputError, match="depth: expected None with runs that are aligned already"):
        fuse_runs(align_runs(runs), depth=1)


def test_what_is_mixed_up_easily() -> None:
    with pytest.raises(InputError, match=r"runs: expected several runs; found Run. Give runs by name"):
        fuse_runs(run_of(A))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"weights: expected numbers; found 'rrf'. A rule .* is named by `method`"):
        fuse_runs(three(), "rrf")  # type: ignore[arg-type]
