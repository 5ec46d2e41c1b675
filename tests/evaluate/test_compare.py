"""Comparing runs: pairing by query, names, corrections, and what is refused."""

import numpy as np
import pytest
from judged_cases import qrels_of, run_of
from scipy import stats

from genm.errors import InputError
from genm.evaluate import Evaluation, compare_runs, evaluate_run, parse_measures
from genm.ids import Ids

RNG = np.random.default_rng(11)
BASE = RNG.random((40, 2))
BETTER = BASE + np.abs(RNG.normal(0.05, 0.05, (40, 2)))
LEVEL = BASE + RNG.normal(0.0, 0.05, (40, 2))


def evaluation(name: str, values: np.ndarray, query_ids: list[str]) -> Evaluation:
    return Evaluation(name, Ids.of(query_ids), parse_measures("AP,P@5")[: values.shape[1]], values)


def test_runs_are_compared_with_the_baseline_under_every_measure() -> None:
    found = compare_runs({"bm25": BASE, "dense": BETTER, "mixed": LEVEL})
    assert found.baseline == "bm25"
    assert [(c.name, c.measure) for c in found.contrasts] == [
        ("dense", "measure-1"),
        ("dense", "measure-2"),
        ("mixed", "measure-1"),
        ("mixed", "measure-2"),
    ]
    first = found.contrast("dense", "measure-1")
    assert first.difference == pytest.approx((BETTER - BASE)[:, 0].mean())
    assert first.mean - first.baseline_mean == pytest.approx(first.difference)
    assert (first.n_better, first.n_worse, first.n_equal) == (40, 0, 0)
    assert first.low < first.difference < first.high
    assert first.p_values["wilcoxon"] == pytest.approx(stats.wilcoxon(BETTER[:, 0] - BASE[:, 0]).pvalue)
    assert first.p_values["t"] == pytest.approx(stats.ttest_rel(BETTER[:, 0], BASE[:, 0]).pvalue)
    assert first.p_values["randomization"] == 1 / 10_001
    assert found.n_queries == 40
    assert found.notes == ()


def test_holm_is_over_all_runs_and_measures_of_a_test() -> None:
    found = compare_runs([BASE, BETTER, LEVEL], tests=["t"])
    raw = sorted(c.p_values["t"] for c in found.contrasts)
    corrected = sorted(c.corrected["t"] for c in found.contrasts)
    assert corrected[0] == pytest.approx(4 * raw[0])
    assert found.tests == ("t",)
    plain = compare_runs([BASE, BETTER, LEVEL], tests=["t"], correction="none")
    assert all(c.p_values == c.corrected for c in plain.contrasts)


def test_the_baseline_may_be_named_or_counted() -> None:
    by_name = compare_runs({"a": BASE, "b": LEVEL}, baseline="b")
    by_place = compare_runs({"a": BASE, "b": LEVEL}, baseline=1)
    assert by_name == by_place
    assert by_name.contrasts[0].name == "a"
    assert by_name.contrasts[0].difference == pytest.approx((BASE - LEVEL)[:, 0].mean())


def test_a_seed_settles_everything_and_resamples_are_heeded() -> None:
    assert compare_runs([BASE, LEVEL], seed=3) == compare_runs([BASE, LEVEL], seed=3)
    assert compare_runs([BASE, LEVEL], seed=3) != compare_runs([BASE, LEVEL], seed=4)
    few = compare_runs([BASE, BETTER], n_resamples=99).contrasts[0]
    assert few.p_values["randomization"] == 1 / 100
    wide = compare_runs([BASE, LEVEL], confidence=0.999).contrasts[0]
    narrow = compare_runs([BASE, LEVEL], confidence=0.5).contrasts[0]
    assert wide.low < narrow.low < narrow.high < wide.high


def test_evaluations_are_paired_by_query_not_by_row() -> None:
    one = evaluation("one", np.array([[0.1], [0.2], [0.3]]), ["a", "b", "c"])
    two = evaluation("two", np.array([[0.3], [0.1], [0.2]]), ["c", "a", "b"])
    found = compare_runs([one, two])
    assert found.names == ("one", "two")
    assert found.measures == ("AP",)
    assert found.contrasts[0].n_equal == 3
    assert found.contrast("two", "AP").p_values == {"wilcoxon": 1.0, "t": 1.0, "randomization": 1.0}


def test_only_shared_queries_are_compared_and_that_is_said() -> None:
    one = evaluation("one", np.array([[0.1], [0.2], [0.9]]), ["a", "b", "c"])
    two = evaluation("two", np.array([[0.5], [0.6]]), ["b", "d"])
    found = compare_runs([one, two])
    assert found.n_queries == 1
    assert found.contrasts[0].difference == pytest.approx(0.3)
    assert [(n.code, n.count) for n in found.notes] == [("queries-shared", 2), ("single-query", 1)]


def test_evaluated_runs_go_straight_into_a_comparison() -> None:
    qrels = qrels_of({"1": {"a": 1}, "2": {"a": 1}})
    runs = [run_of({"1": {"a": s, "b": 1.0}, "2": {"a": s, "b": 2.0}}, "same") for s in (0.5, 3.0)]
    found = compare_runs([evaluate_run(run, qrels, "RR") for run in runs])
    assert found.names == ("same-1", "same-2")
    assert found.contrasts[0].difference == 0.5


def test_runs_without_any_difference_have_p_1_and_no_width() -> None:
    contrast = compare_runs([BASE, BASE.copy()]).contrasts[0]
    assert contrast.p_values == {"wilcoxon": 1.0, "t": 1.0, "randomization": 1.0}
    assert (contrast.difference, contrast.low, contrast.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ([BASE], {}, "expected at least two runs, found 1"),
        ([BASE, BASE[:5]], {}, "run-1 has (40, 2), run-2 (5, 2)"),
        ([BASE, np.full((40, 2), np.nan)], {}, "expected finite values"),
        ([np.zeros((0, 1)), np.zeros((0, 1))], {}, "one value for each query"),
        ([BASE, LEVEL], {"baseline": "x"}, "expected one of run-1, run-2; found 'x'"),
        ([BASE, LEVEL], {"baseline": 2}, "expected a position from 0 to 1; found 2"),
        ([BASE, LEVEL], {"tests": ["sign"]}, "expected a list of wilcoxon, t, randomization; found 'sign'"),
        ([BASE, LEVEL], {"tests": "t"}, "expected a list of wilcoxon, t, randomization; found 't'"),
        ([BASE, LEVEL], {"correction": "tukey"}, "expected holm or none; found 'tukey'"),
        ([BASE, LEVEL], {"confidence": 95}, "expected a number between 0 and 1"),
        ([BASE, LEVEL], {"n_resamples": 0}, "expected 1 to 10,000,000"),
        ([BASE, evaluation("e", BASE, [str(i) for i in range(40)])], {}, "expected either evaluations or arrays"),
    ],
)
def test_what_cannot_be_compared_is_refused(given: list[object], options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as refused:
        compare_runs(given, **options)  # type: ignore[arg-type]
    assert said in str(refused.value)


def test_different_measures_and_strange_queries_are_refused() -> None:
    one = evaluation("one", np.ones((1, 1)), ["a"])
    with pytest.raises(InputError, match=r"one has AP, two has AP, P@5\. Evaluate all runs with the same measures"):
        compare_runs([one, evaluation("two", np.ones((1, 2)), ["a"])])
    with pytest.raises(InputError, match="expected queries in common, found none"):
        compare_runs([one, evaluation("two", np.ones((1, 1)), ["b"])])
    with pytest.raises(InputError, match="found no contrast of 'three' under AP"):
        compare_runs([one, evaluation("two", np.ones((1, 1)), ["a"])]).contrast("three", "AP")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([run_of({"q": {"a": 1.0}}), run_of({"q": {"a": 1.0}})], "run-1 is of the kind Run"),
        ({"bm25": "bm25.trec", "dense": "dense.trec"}, "bm25 is of the kind str"),
        ("bm25.trec", "expected a list; found str"),
        (7, "expected a list; found int"),
        (evaluation("e", BASE, [str(i) for i in range(40)]), "expected a list; found Evaluation"),
    ],
)
def test_what_is_no_evaluation_is_refused_with_the_way_to_get_one(given: object, said: str) -> None:
    with pytest.raises(InputError) as refused:
        compare_runs(given)  # type: ignore[arg-type]
    assert said in str(refused.value)
    assert "genm.evaluate_run" in str(refused.value)


def test_a_baseline_is_a_name_or_a_position() -> None:
    with pytest.raises(InputError, match=r"expected a position from 0 to 1; found None"):
        compare_runs([BASE, LEVEL], baseline=None)  # type: ignore[arg-type]
    assert compare_runs([BASE, LEVEL], baseline=np.int64(1)).baseline == "run-2"  # type: ignore[arg-type]


def test_a_comparison_shows_the_gains_on_one_line() -> None:
    values = np.linspace(0.0, 0.5, 40)
    compared = compare_runs({"bm25": values, "dense": values + 0.25}, tests=["t"])
    assert repr(compared) == "<Comparison with 'bm25': dense +0.2500 measure-1 (p = 0); 40 queries>"
    assert "(p" not in repr(compare_runs({"bm25": values, "dense": values + 0.25}, tests=[]))
