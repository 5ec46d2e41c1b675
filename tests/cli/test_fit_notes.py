from dataclasses import replace

import numpy as np
import pytest

from genm.align import align_runs
from genm.cli.fit_notes import say_what_does_better, say_what_is_not_held_back, say_what_weight_0_still_does
from genm.evidence import RRF, UNIFORM, gather_evidence
from genm.export.equal import EqualFuser
from genm.model import Model
from genm.read import qrels_from_dict, run_from_dict
from genm.records import Normalizer

A = run_from_dict({f"q{q}": {f"d{d}": 9.0 - d for d in range(4)} for q in range(6)}, name="a")
B = run_from_dict({f"q{q}": {f"d{d}": float(d) for d in range(2, 7)} for q in range(6)}, name="b")
JUDGED = {f"q{q}": {f"d{q % 4}": 1} for q in range(6)}


@pytest.fixture(scope="module")
def evidence():
    aligned = align_runs([A, B], qrels_from_dict(JUDGED))
    _, found = gather_evidence(aligned, EqualFuser, "AP", folds=2)
    even = {name: replace(gain, difference=0.0, low=-0.1, high=0.1) for name, gain in found.gains.items()}
    return replace(found, gains=even)


@pytest.mark.parametrize(("rule", "use"), [(RRF, "genm fuse --method rrf"), (UNIFORM, "genm fuse --method sum")])
def test_a_rule_that_beats_learning_is_told_of(evidence, capsys, rule, use):
    """Whoever reads of the best single ranker alone would serve the worse of two."""
    assert "no learning" not in evidence.verdict()
    say_what_does_better(evidence, may_choose=True)
    assert capsys.readouterr().err == ""
    lost = replace(
        evidence.gains[rule], difference=-0.1, low=-0.2, high=-0.05, n_worse=5, p_values={"wilcoxon": 1e-9}
    )
    worse = replace(evidence, gains={**evidence.gains, rule: lost})
    mean, learned = np.mean(evidence.rules[rule]), evidence.held_out.mean
    figures = f"What needs no learning does better: {rule} ({mean:.4f} against {learned:.4f} AP, p = 1e-09)."
    assert worse.verdict().endswith(figures)
    for may_choose, advice in ((False, "Use it"), (True, "Try --normalize auto, or use it")):
        say_what_does_better(worse, may_choose=may_choose)
        assert capsys.readouterr().err == (
            f"note: held out, what needs no learning does better: {rule}. {advice}: {use}\n"
        )


def test_what_was_learned_from_is_no_test(capsys):
    judged = qrels_from_dict(JUDGED)
    say_what_is_not_held_back(judged, qrels_from_dict({"x": {"d": 1}}))
    assert capsys.readouterr().err == ""
    say_what_is_not_held_back(judged, qrels_from_dict({"x": {"d": 1}, "q4": {"d": 1}, "q2": {"d": 0}}))
    assert "2 of 3 queries of --test-qrels were also learned from (first: q4)" in capsys.readouterr().err


def test_a_ranker_of_weight_0_may_still_bring_documents(capsys):
    def model(*weights):
        return Model(("a", "b"), weights, (Normalizer(),) * 2, (None, None), "auto", "AP")

    aligned = align_runs([A, B])
    for weights in ((0.5, 0.5), (1e-9, 1 - 1e-9)):
        say_what_weight_0_still_does(model(*weights), aligned)
    assert capsys.readouterr().err == ""
    say_what_weight_0_still_does(model(1.0, 0.0), aligned)
    said = "note: b has weight 0, but it brings 18 rows of the fused run that no ranker with a weight returned."
    assert capsys.readouterr().err.startswith(said)
