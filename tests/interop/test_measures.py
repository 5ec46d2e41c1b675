"""Measures of ir_measures are taken wherever a measure is, with the values that ir_measures gives."""

from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import genm
from genm.align import Aligned, align_runs
from genm.errors import InputError
from genm.evaluate import compare_runs, evaluate_aligned, evaluate_run, parse_measure
from genm.evaluate.measures import NamedMeasure
from genm.evidence import gather_evidence
from genm.evidence.crossval import cross_validate
from genm.explain.worth import measure_worth
from genm.interop import to_dict
from genm.learn import AutoFuser, ExactFuser, NewtonFuser, make_fuser
from genm.read import qrels_from_dict, run_from_dict
from genm.records import Qrels, Run

ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is not installed")
from ir_measures import AP, RR, IPrec, Judged, P, R, Rprec, Success, nDCG  # noqa: E402

THEIRS = [
    AP,
    AP @ 5,
    AP(rel=2),
    nDCG @ 10,
    nDCG(dcg="exp-log2") @ 5,
    P @ 3,
    P(rel=2) @ 5,
    R @ 5,
    RR,
    RR @ 3,
    RR(judged_only=True),
    Rprec,
    Success @ 2,
    Judged @ 5,
    IPrec @ 0.5,
    ir_measures.Bpref,
]


def data() -> tuple[dict[str, Run], Qrels]:
    draw = np.random.default_rng(5)
    grades = {
        f"{q}": {f"d{i}": int(draw.integers(0, 3)) for i in range(10)} for q in range(1, 9)
    }  # numbers, as their nDCG wants them
    runs = {
        name: run_from_dict(
            {
                q: {**{d: g + draw.normal(0, noise) for d, g in docs.items()}, "new": 1.5}
                for q, docs in grades.items()
            },
            name=name,
        )
        for name, noise in (("good", 0.8), ("bad", 3.0))
    }
    return runs, qrels_from_dict(grades)


def aligned() -> Aligned:
    runs, judged = data()
    return align_runs(runs, judged)


@pytest.mark.parametrize("measure", THEIRS, ids=str)
def test_the_value_is_theirs(measure: Any) -> None:
    runs, judged = data()
    found = evaluate_run(runs["good"], judged, measure)
    expected = ir_measures.calc_aggregate([measure], to_dict(judged), to_dict(runs["good"]))[measure]
    assert found.mean(measure) == pytest.approx(expected, abs=1e-5)  # some of theirs are printed so
    assert str(found.measures[0]) == str(measure)
    assert parse_measure(str(measure)) == parse_measure(measure)  # and so the command line takes its name


def test_wherever_a_measure_is_evaluated() -> None:
    runs, judged = data()
    both = [evaluate_run(run, judged, [AP, nDCG @ 5]) for run in runs.values()]
    compared = compare_runs(both, n_resamples=100)
    assert compared.contrast("bad", nDCG @ 5).measure == "nDCG@5"
    assert evaluate_aligned(aligned(), np.array([0.5, 0.5]), AP).mean(AP) > 0
    assert both[0].per_query(nDCG @ 5).shape == (8,)


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_wherever_a_measure_is_learned(method: str) -> None:
    assert genm.fit(aligned(), method=method, measure=nDCG @ 5).to_model().measure == "nDCG@5"


def test_the_fusers_themselves() -> None:
    assert ExactFuser(measure=P @ 3).fit(aligned()).to_model().measure == "P@3"
    assert AutoFuser(measure=P(rel=2) @ 3).fit(aligned()).to_model().measure == "P(rel=2)@3"


def test_wherever_a_measure_is_held_out() -> None:
    held = cross_validate(aligned(), NewtonFuser, nDCG @ 5, folds=2)
    assert held.mean == pytest.approx(cross_validate(aligned(), NewtonFuser, parse_measure("nDCG@5"), folds=2).mean)
    fuser, evidence = gather_evidence(aligned(), NewtonFuser, nDCG @ 5, folds=2)
    assert fuser.weights_.sum() == pytest.approx(1.0)
    assert evidence.measure == parse_measure(nDCG @ 5)


@pytest.mark.parametrize(
    "measure", [ir_measures.ERR @ 5, ir_measures.RBP, ir_measures.NumRet, ir_measures.SetF], ids=str
)
def test_a_measure_that_genm_has_not_is_named(measure: Any) -> None:
    runs, judged = data()
    with pytest.raises(InputError, match=r"is not known"):
        evaluate_run(runs["good"], judged, measure)


@pytest.mark.parametrize(
    "function",
    [genm.fit, make_fuser, cross_validate, AutoFuser.__init__, ExactFuser.__init__, measure_worth, gather_evidence],
)
def test_type_checkers_see_that_theirs_are_taken(function: Any) -> None:
    assert isinstance(nDCG @ 10, NamedMeasure)
    assert NamedMeasure in get_args(get_type_hints(function)["measure"])
