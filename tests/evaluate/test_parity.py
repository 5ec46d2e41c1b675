"""Every value equals trec_eval's, bit for bit, on random runs full of ties, grades and gaps."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from judged_cases import DOC_IDS, Grades, Scores, judgments, qrels_of, run_of, tied_runs

from genm.evaluate import evaluate_run, parse_measure

ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is not installed")
pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec-eval-terrier is not installed")

CUTOFFS = (1, 2, 3, 5, 10, 100)
LEVELS = (0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 1.0)
TREC_NAMES = [
    "map",
    "ndcg",
    "recip_rank",
    "Rprec",
    "bpref",
    *(f"{name}_{k}" for name in ("map_cut", "P", "recall", "ndcg_cut", "success") for k in CUTOFFS),
    *(f"iprec_at_recall_{level:.2f}" for level in LEVELS),
]
NO_JUDGED_ONLY = {"bpref"}


def as_ours(name: str, rel: int, *, judged_only: bool) -> str:
    """Spell trec_eval's measure with our parameters."""
    measure = str(parse_measure(name))
    params = [] if measure.startswith("nDCG") or rel == 1 else [f"rel={rel}"]
    params += ["judged_only=True"] if judged_only else []
    base, at, cutoff = measure.partition("@")
    return base + (f"({','.join(params)})" if params else "") + at + cutoff


def trec_values(scores: Scores, grades: Grades, names: list[str], rel: int, *, judged_only: bool) -> np.ndarray:
    """Return (judged queries, names) values as `trec_eval -c` has them: a query the run lacks counts 0."""
    flags = {"relevance_level": rel, "judged_docs_only_flag": int(judged_only)}
    found = pytrec_eval.RelevanceEvaluator(grades, names, **flags).evaluate(scores)
    values = np.array([[found.get(q, {}).get(name, 0.0) for name in names] for q in grades])
    return np.nan_to_num(values)  # iprec_at_recall divides by 0 where judged_only leaves nothing


@settings(deadline=None, max_examples=150)
@given(scores=tied_runs(), grades=judgments(), rel=st.integers(1, 3), judged_only=st.booleans())
def test_values_equal_those_of_trec_eval(scores: Scores, grades: Grades, rel: int, judged_only: bool) -> None:
    assume(set(scores) & set(grades))
    names = [name for name in TREC_NAMES if not (judged_only and name in NO_JUDGED_ONLY)]
    ours = evaluate_run(
        run_of(scores), qrels_of(grades), [as_ours(name, rel, judged_only=judged_only) for name in names]
    )
    theirs = trec_values(scores, grades, names, rel, judged_only=judged_only)
    np.testing.assert_array_equal(ours.values, theirs)


@settings(deadline=None, max_examples=60)
@given(
    order=st.permutations(DOC_IDS), depth=st.integers(1, len(DOC_IDS)), grades=judgments(), rel=st.integers(1, 2)
)
def test_what_trec_eval_lacks_equals_ir_measures(order: list[str], depth: int, grades: Grades, rel: int) -> None:
    # without ties: there ir_measures' own measures rank by doc id upwards
    scores = {query_id: {doc_id: -float(i) for i, doc_id in enumerate(order[:depth])} for query_id in grades}
    theirs = [ir_measures.Judged @ 3, ir_measures.Judged, ir_measures.RR(rel=rel) @ 3]
    ours = evaluate_run(run_of(scores), qrels_of(grades), theirs)
    for metric in ir_measures.iter_calc(theirs, grades, scores):
        at = ours.query_ids.index(metric.query_id), theirs.index(metric.measure)
        assert ours.values[at] == metric.value
