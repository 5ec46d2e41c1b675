"""Every judged query has a value, and nothing is counted, left out or reordered in silence."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from judged_cases import Grades, Scores, judgments, qrels_of, run_of, tied_runs

from genm.errors import InputError
from genm.evaluate import Measure, evaluate_run, evaluate_runs, precision_recall_curve
from genm.evaluate.evaluation import codes_in
from genm.ids import Ids
from genm.records import Note

ONE_QUERY = {"q": {"a": 2, "b": 1, "c": 0, "d": 1}}
RANKED = {"q": {"c": 9.0, "a": 8.0, "x": 7.0, "b": 6.0}}

RUN, QRELS = run_of({"q1": {"a": 2.0}}), qrels_of({"q1": {"a": 1}})

# few letters and one long ending: many ids that agree in their last eight bytes and in length
short_ids = st.text("ab", max_size=3)
ids = short_ids | st.builds(lambda a: a + "-the-same-ending", st.text("abc", max_size=3)) | st.text(max_size=12)


def notes_of(notes: tuple[Note, ...]) -> dict[str, int]:
    return {note.code: note.count for note in notes}


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("AP", (1 / 2 + 2 / 4) / 3),  # d is never found, and counts
        ("AP@2", (1 / 2) / 3),
        ("AP(rel=2)", 1 / 2),
        ("P@4", 2 / 4),
        ("P@10", 2 / 10),
        ("R@2", 1 / 3),
        ("RR", 1 / 2),
        ("RR@1", 0.0),
        ("Rprec", 1 / 3),
        ("Success@1", 0.0),
        ("Success@2", 1.0),
        ("Judged@4", 3 / 4),
        ("Judged@100", 3 / 4),
        ("Judged", 3 / 4),
        ("Bpref", 0.0),  # c, the one document judged not relevant, stands above both
        ("nDCG", (2 / np.log2(3) + 1 / np.log2(5)) / (2 + 1 / np.log2(3) + 1 / 2)),
        ("nDCG@2", (2 / np.log2(3)) / (2 + 1 / np.log2(3))),
        ("nDCG(dcg='exp-log2')@2", (3 / np.log2(3)) / (3 + 1 / np.log2(3))),
        ("AP(judged_only=True)", (1 / 2 + 2 / 3) / 3),
        ("IPrec@0.0", 1 / 2),
        ("IPrec@0.6", 1 / 2),
        ("IPrec@1.0", 0.0),
    ],
)
def test_worked_by_hand(measure: str, expected: float) -> None:
    evaluation = evaluate_run(run_of(RANKED), qrels_of(ONE_QUERY), measure)
    assert evaluation.values.shape == (1, 1)
    assert evaluation.mean(measure) == pytest.approx(expected, abs=1e-15)
    assert evaluation.notes == ()


def test_an_evaluation_is_read_by_measure_and_query() -> None:
    grades = {"1": {"a": 1}, "2": {"a": 1}}
    evaluation = evaluate_run(run_of({"1": {"a": 1.0}, "2": {"b": 1.0}}, "bm25"), qrels_of(grades), "AP,P@1")
    assert evaluation.name == "bm25"
    assert evaluation.query_ids == ("1", "2")
    assert evaluation.per_query("P@1").tolist() == [1.0, 0.0]
    assert evaluation.mean(Measure("AP")) == 0.5
    assert evaluation.means.tolist() == [0.5, 0.5]
    with pytest.raises(InputError, match=r"measure RR: expected one that was evaluated \(AP, P@1\)"):
        evaluation.mean("RR")


def test_judged_queries_that_the_run_lacks_count_0_or_are_left_out_and_either_is_said() -> None:
    run, qrels = run_of({"1": {"a": 1.0}, "empty": {}}), qrels_of({"1": {"a": 1}, "empty": {"a": 1}, "9": {"b": 1}})
    evaluation = evaluate_run(run, qrels, "AP,Judged@10,IPrec@0.0")
    assert evaluation.values.tolist() == [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert notes_of(evaluation.notes) == {"missing-zero": 2}
    assert "2 of 3 judged queries have no documents and count 0 (first: empty)" in evaluation.notes[0].text
    skipping = evaluate_run(run, qrels, "AP", skip_missing=True)
    assert skipping.query_ids == ("1",)
    assert skipping.means.tolist() == [1.0]
    assert notes_of(skipping.notes) == {"missing-skipped": 2}


def test_queries_without_judgments_are_set_aside_and_said() -> None:
    run = run_of({"0": {"a": 1.0}, "1": {"a": 1.0}, "none": {}}, "dense")
    evaluation = evaluate_run(run, qrels_of({"1": {"a": 1}, "nobody": {}}), "AP")
    assert evaluation.query_ids == ("1",)
    assert notes_of(evaluation.notes) == {"unjudged-query": 1}
    assert evaluation.notes[0].text.startswith("run dense: 1 of 3 queries have no judgments")
    assert "first: 0" in evaluation.notes[0].text


def test_queries_without_a_relevant_document_count_0_and_are_said() -> None:
    run = run_of({"1": {"a": 1.0}, "2": {"a": 1.0}, "3": {"a": 1.0}})
    qrels = qrels_of({"1": {"a": 2}, "2": {"a": 0, "b": -1}, "3": {"b": 1}})
    evaluation = evaluate_run(run, qrels, "AP,nDCG,Bpref")
    assert evaluation.values[1].tolist() == [0.0, 0.0, 0.0]
    assert evaluation.mean("AP") == pytest.approx(1 / 3)
    assert notes_of(evaluation.notes) == {"no-relevant": 1}
    strict = evaluate_run(run, qrels, "AP(rel=2)")
    assert (
        "2 of 3 judged queries have no document of grade 2 or more and count 0 (first: 2)" in strict.notes[0].text
    )


def test_all_grades_negative_is_a_query_without_a_relevant_document() -> None:
    evaluation = evaluate_run(run_of({"1": {"a": 1.0}}), qrels_of({"1": {"a": -1}}), "AP,nDCG,P@1,Judged@1,Bpref")
    assert evaluation.values.tolist() == [[0.0, 0.0, 0.0, 1.0, 0.0]]
    assert notes_of(evaluation.notes) == {"no-relevant": 1}


@pytest.mark.parametrize("grades", [{}, {"9": {"a": 1}}, {"1": {}}])
def test_nothing_in_common_is_an_error_with_an_example_of_both_sides(grades: Grades) -> None:
    with pytest.raises(
        InputError, match="run r: expected at least one judged query; found no query in common"
    ) as e:
        evaluate_run(run_of({"1": {"a": 1.0}}, "r"), qrels_of(grades), "AP")
    assert "the run has 1 queries, such as '1'" in str(e.value)


def test_ties_are_said_only_where_they_touch_a_value_that_was_asked_for() -> None:
    qrels = qrels_of({"1": {"a": 1}, "2": {"a": 1}, "3": {"a": 1, "b": 1}})
    scores = {"1": {"a": 1.0, "b": 1.0, "c": 0.5}, "2": {"a": 2.0, "b": 1.0, "c": 1.0}, "3": {"a": 1.0, "b": 1.0}}
    evaluation = evaluate_run(run_of(scores, "tied"), qrels, "AP,R@2")
    assert evaluation.values.tolist() == [[0.5, 1.0], [1.0, 1.0], [1.0, 1.0]]
    assert notes_of(evaluation.notes) == {"ties": 1}
    text = evaluation.notes[0].text
    assert text.startswith("run tied: equal scores touch the values of 1 of 3 queries (first: 1).")
    assert "AP between 0.8333 and 1.0000" in text
    assert "R@2" not in text
    assert evaluate_run(run_of(scores), qrels, "R@2").notes == ()


@settings(deadline=None, max_examples=25)
@given(scores=tied_runs(), grades=judgments())
def test_no_order_of_tied_documents_leaves_the_span_that_the_note_gives(scores: Scores, grades: Grades) -> None:
    query_id = next(iter(scores))
    assume(query_id in grades)
    ranked = dict(list(scores[query_id].items())[:5])
    qrels, measures = qrels_of({query_id: grades[query_id]}), "AP,nDCG@3,Bpref,RR,P@2,Judged@2,IPrec@0.5"
    measured = evaluate_run(run_of({query_id: ranked}), qrels, measures)
    seen = []
    for order in itertools.permutations(ranked):
        below = sorted(order, key=lambda d: -ranked[d])  # stable: ties stay in the order of the permutation
        untied = {doc_id: float(-i) for i, doc_id in enumerate(below)}
        seen.append(evaluate_run(run_of({query_id: untied}), qrels, measures).values[0])
    low, high = np.min(seen, axis=0), np.max(seen, axis=0)
    note = next((n.text for n in measured.notes if n.code == "ties"), "")
    for m, measure in enumerate(measured.measures):
        span = f"{measure} between {low[m]:.4f} and {high[m]:.4f}"
        assert (span in note) == (low[m] != high[m])


@settings(deadline=None, max_examples=60)
@given(scores=tied_runs(), grades=judgments())
def test_means_add_up_in_the_order_of_the_query_ids_as_trec_eval_does(scores: Scores, grades: Grades) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec-eval-terrier is not installed")
    assume(set(scores) & set(grades))
    theirs = pytrec_eval.RelevanceEvaluator(grades, {"map", "P_5", "ndcg"}).evaluate(scores)
    sums = [0.0, 0.0, 0.0]
    for query_id in sorted(theirs, key=str.encode):
        for m, name in enumerate(("map", "P_5", "ndcg")):
            sums[m] += theirs[query_id][name]
    ours = evaluate_run(run_of(scores), qrels_of(grades), "AP,P@5,nDCG").means
    assert ours.tolist() == [total / len(grades) for total in sums]


def test_the_curve_has_eleven_points_that_never_rise() -> None:
    curve = precision_recall_curve(run_of(RANKED), qrels_of(ONE_QUERY))
    np.testing.assert_array_equal(curve.recall, np.arange(11) / 10)
    # as in trec_eval 9, recall r of three asks for int(3 r + 0.9) documents, in floating point: 2 up to r = 0.7
    np.testing.assert_allclose(curve.precision, [0.5] * 8 + [0.0] * 3)
    assert curve.evaluation.values.shape == (1, 11)
    strict = precision_recall_curve(run_of(RANKED), qrels_of(ONE_QUERY), rel=2, levels=(0.0, 1.0))
    np.testing.assert_allclose(strict.precision, [0.5, 0.5])


def test_the_curve_leaves_out_missing_queries_when_asked() -> None:
    qrels = qrels_of({**ONE_QUERY, "gone": {"a": 1}})
    assert precision_recall_curve(run_of(RANKED), qrels).precision[0] == 0.25
    assert precision_recall_curve(run_of(RANKED), qrels, skip_missing=True).precision[0] == 0.5


def test_a_grade_too_high_for_an_exponential_gain_is_refused() -> None:
    run, qrels = run_of({"1": {"a": 1.0}}), qrels_of({"1": {"a": 2000}})
    assert evaluate_run(run, qrels, "nDCG").means.tolist() == [1.0]
    with pytest.raises(InputError, match="expected grades up to 500, found 2000"):
        evaluate_run(run, qrels, "nDCG(dcg='exp-log2')")


def test_arrays_that_may_not_be_written_are_read() -> None:
    run, qrels = run_of(RANKED), qrels_of(ONE_QUERY)
    for array in (run.doc, run.score, run.starts, qrels.doc, qrels.relevance, qrels.starts):
        array.flags.writeable = False
    assert evaluate_run(run, qrels, "RR").means.tolist() == [0.5]


def test_every_note_is_explained_in_the_choices() -> None:
    root = Path(__file__).parents[2]
    sources = "".join(path.read_text("utf-8") for path in (root / "src/genm/evaluate").glob("*.py"))
    codes = set(re.findall(r'Note\(\s*"([a-z-]+)"', sources))
    assert {"ties", "missing-zero", "missing-skipped", "unjudged-query", "no-relevant", "queries-shared"} <= codes
    explained = set(re.findall(r"`([a-z-]+)`", (root / "docs/choices.md").read_text("utf-8")))
    assert codes <= explained


def test_an_evaluation_shows_its_means_on_one_line() -> None:
    run, qrels = run_of({"q1": {"a": 2.0, "b": 1.0}}, "bm25"), qrels_of({"q1": {"b": 1}, "q2": {"a": 1}})
    assert (
        repr(evaluate_run(run, qrels, "AP,P@1")) == "<Evaluation 'bm25': AP 0.2500, P@1 0.0000; 2 queries; 1 note>"
    )
    curve = precision_recall_curve(run, qrels).evaluation
    assert "and 7 more; 2 queries" in repr(curve)
    assert "\n" not in repr(curve)


@pytest.mark.parametrize(
    ("run", "qrels", "said"),
    [
        ("run.trec", QRELS, r"run: expected Run; found str\. .*read_run"),
        (QRELS, RUN, r"run: expected Run; found Qrels\. "),
        (RUN, "qrels.txt", r"qrels: expected Qrels; found str\. .*read_qrels"),
        (RUN, {"q1": {"a": 1}}, r"qrels: expected Qrels; found dict\. "),
    ],
)
def test_what_is_no_run_and_what_are_no_judgments_is_refused(run: object, qrels: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        evaluate_run(run, qrels, "AP")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=said):
        precision_recall_curve(run, qrels)  # type: ignore[arg-type]


def test_a_tie_among_many_queries_is_told_in_as_many_places_as_it_takes() -> None:
    n = 20_000
    scores: Scores = {f"q{i}": {"a": 2.0, "b": 1.0 + (i == 7)} for i in range(n)}
    qrels = qrels_of({query: {"a": 1} for query in scores})
    (note,) = evaluate_run(run_of(scores), qrels, "AP,R@2").notes
    assert note.code == "ties"
    assert note.text.endswith("other orders would put AP between 0.999975 and 1.000000.")


@settings(deadline=None)
@given(table=st.sets(ids, max_size=40), wanted=st.sets(ids, max_size=4), shared=st.integers(0, 4))
def test_codes_are_those_of_the_same_id(table: set[str], wanted: set[str], shared: int) -> None:
    listed = sorted(table)
    sought = sorted(wanted | set(listed[:shared]))
    codes = codes_in(Ids.of(listed), Ids.of(sought))
    assert codes.tolist() == [listed.index(s) if s in table else -1 for s in sought]


def test_few_ids_are_found_in_a_table_of_several_blocks() -> None:
    listed = [f"document-{i}" for i in range(150_000)]
    sought = ["document-0", "document-149999", "document-70000", "nowhere", "ocument-70000", "x"]
    assert codes_in(Ids.of(listed), Ids.of(sought)).tolist() == [0, 149999, 70000, -1, -1, -1]


def test_a_table_is_its_own_translation() -> None:
    table = Ids.of(["b", "a"])
    assert codes_in(table, table).tolist() == [0, 1]


def test_several_runs_are_evaluated_by_name() -> None:
    runs = {"good": run_of({"q": {"d": 2.0, "e": 1.0}}), "bad": run_of({"q": {"d": 1.0, "e": 2.0}})}
    qrels = qrels_of({"q": {"d": 1}})
    found = evaluate_runs(runs, qrels, "AP,RR")
    assert list(found) == ["good", "bad"]
    for name, run in runs.items():
        assert found[name].values.tolist() == evaluate_run(run, qrels, "AP,RR").values.tolist()
