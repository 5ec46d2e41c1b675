"""What all fusers have in common: what they refuse, and how they show themselves."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from judged_cases import qrels_of, run_of
from problems import made_up

from genm.align import align_runs, renormalize
from genm.errors import InputError, NotFittedError
from genm.evaluate import evaluate_aligned
from genm.evidence import gather_evidence
from genm.evidence.crossval import cross_validate
from genm.fuse import fuse_runs
from genm.learn import AutoFuser, BarrierFuser, ExactFuser, NewtonFuser, OnlineFuser, fit, make_fuser
from genm.learn.base import EqualFuser, FixedWeights
from genm.learn.starts import simple_starts
from genm.read import run_from_dict

METHODS = ("auto", "bat", "enm", "exact", "ip", "on", "uns")
RUNS = {"bm25": run_of({"q1": {"d1": 2.0, "d2": 1.0}}), "dense": run_of({"q1": {"d1": 1.0, "d2": 2.0}})}
FITTED = FixedWeights((0.25, 0.75)).fit(made_up(0, quality=(1.0, 0.5), n_queries=2, n_docs=8))
QRELS = qrels_of({"q1": {"d1": 1}})
TAKE_ALIGNED: dict[str, Callable[..., object]] = {
    "normalise": lambda runs: renormalize(runs, "max"),
    "evaluate": lambda runs: evaluate_aligned(runs, np.ones(2), "AP"),
    "evidence": lambda runs: gather_evidence(runs, NewtonFuser, "AP"),
}
TAKE_RUNS: dict[str, Callable[..., object]] = {
    **{f"fit by {method}": lambda *runs, method=method: fit(*runs, method=method) for method in METHODS},
    "fit under every normaliser": lambda *runs: AutoFuser(normalize="auto").fit(*runs),
    "fuse": lambda *runs: FITTED.fuse(runs[0]),
    "score": lambda *runs: FITTED.score(*runs),
    "one query after another": lambda *runs: OnlineFuser().partial_fit(*runs),
    "cross-validate": lambda *runs: cross_validate(NewtonFuser, *runs),
}


@pytest.mark.parametrize("function", TAKE_ALIGNED)
@pytest.mark.parametrize("wrong", [RUNS, "runs.trec", None, QRELS])
def test_what_is_not_aligned_is_refused_with_the_way_to_align_it(function: str, wrong: object) -> None:
    with pytest.raises(
        InputError, match=rf"aligned: expected Aligned; found {type(wrong).__name__}\. .*align_runs"
    ):
        TAKE_ALIGNED[function](wrong)


@pytest.mark.parametrize("function", TAKE_RUNS)
@pytest.mark.parametrize("wrong", ["runs.trec", None, QRELS, RUNS["bm25"]])
def test_what_holds_no_runs_is_refused_with_what_to_give(function: str, wrong: object) -> None:
    with pytest.raises(InputError, match=r"runs(\[0\])?: expected .*found .*(Give runs by name|genm.read_run)"):
        TAKE_RUNS[function](wrong)


@pytest.mark.parametrize("method", METHODS)
def test_runs_and_judgments_are_learned_from_as_aligned_ones_are(method: str) -> None:
    runs = {
        name: run_of({f"q{q}": {f"d{d}": float((d * (q + 2) * k) % 7) for d in range(6)} for q in range(5)})
        for name, k in (("a", 1), ("b", 3))
    }
    qrels = qrels_of({f"q{q}": {"d1": 1, "d2": 0, f"d{q}": 1} for q in range(5)})
    aligned = align_runs(runs, qrels)
    fuser = fit(runs, qrels, method=method)
    assert fuser.weights_.tolist() == fit(aligned, method=method).weights_.tolist()
    turned = {"b": runs["b"], "a": runs["a"]}  # by name, in any order
    assert fuser.fuse(turned) == fuser.fuse(aligned) == fuser.to_model().fuse(turned)
    values = evaluate_aligned(aligned, fuser.weights_, "RR").means
    assert fuser.score(turned, qrels, "RR") == fuser.score(aligned, measure="RR") == pytest.approx(values[0])


def test_without_judgments_runs_are_learned_from_by_z_scores() -> None:
    assert {normalizer.kind for normalizer in fit(RUNS, method="uns").normalizers_} == {"zscore"}
    assert {normalizer.kind for normalizer in fit(RUNS, QRELS, method="uns").normalizers_} == {"minmax"}


def test_a_stream_keeps_the_rules_of_its_first_runs() -> None:
    runs = {"bm25": RUNS["bm25"], "dense": RUNS["dense"]}
    stream = OnlineFuser().partial_fit(align_runs(runs, QRELS, normalize="zscore"))
    again = OnlineFuser().partial_fit(align_runs(runs, QRELS, normalize="zscore"))
    stream.partial_fit({"dense": runs["dense"], "bm25": runs["bm25"]}, QRELS)
    again.partial_fit(align_runs(runs, QRELS, normalize="zscore"))
    assert stream.weights_.tolist() == again.weights_.tolist()


def test_score_weighs_queries_and_knows_what_was_maximised() -> None:
    aligned = replace(made_up(0), query_weights=np.arange(1.0, 13.0))
    fuser = ExactFuser(measure="RR@10", n_climbs=1, n_random=0).fit(aligned)
    assert fuser.score(aligned) == pytest.approx(fuser.best_value_)
    per_query = evaluate_aligned(aligned, fuser.weights_, "AP").values[:, 0]
    assert fuser.score(aligned, measure="AP") == pytest.approx(np.average(per_query, weights=np.arange(1.0, 13.0)))
    assert NewtonFuser(level=1).fit(aligned).score(aligned) == pytest.approx(
        NewtonFuser().fit(aligned).score(aligned, measure="AP")
    )


def test_parameters_are_read_changed_and_cloned() -> None:
    fuser = NewtonFuser(beta=50.0, anneal=(0.5,)).fit(made_up(0))
    assert fuser.get_params() == {**NewtonFuser().get_params(), "beta": 50.0, "anneal": (0.5,)}
    assert fuser.set_params(seed=3, tol=1e-3) is fuser
    copied = fuser.clone()
    assert copied.get_params() == fuser.get_params()
    assert not hasattr(copied, "weights_")
    with pytest.raises(InputError, match=r"NewtonFuser: expected parameters of beta, .*; found gamma, delta\."):
        fuser.set_params(gamma=1, delta=2)
    assert EqualFuser(level=2).clone().get_params() == {"level": 2}
    assert FixedWeights((0.5, 0.5)).clone().weights == (0.5, 0.5)


def test_a_stream_goes_on_from_a_model_only() -> None:
    with pytest.raises(InputError, match=r"model: expected Model; found str\. .*load_model"):
        OnlineFuser.from_model("model.json")  # type: ignore[arg-type]


def test_a_fuser_shows_its_options_and_its_weights_on_one_line() -> None:
    assert repr(FITTED) == "<FixedWeights(weights=(0.25, 0.75)): r0 0.25, r1 0.75>"
    assert repr(NewtonFuser()) == "<NewtonFuser(): not fitted>"
    assert repr(NewtonFuser(anneal=(0.5,), seed=3)) == "<NewtonFuser(anneal=(0.5,), seed=3): not fitted>"
    assert repr(make_fuser("auto")) == "<AutoFuser(): not fitted>"
    assert repr(make_fuser("auto", measure="nDCG@10")) == "<AutoFuser(measure=nDCG@10): not fitted>"
    many = BarrierFuser(starts=np.vstack(simple_starts(np.full(50, 0.02), np.eye(50)[0])))
    assert "\n" not in repr(many)
    assert len(repr(many)) < 100


def test_every_ranker_gets_the_same_weight() -> None:
    runs = {
        "a": run_from_dict({"q": {"x": 3.0, "y": 1.0}}, name="a"),
        "b": run_from_dict({"q": {"y": 9.0, "z": 4.0}}, name="b"),
        "c": run_from_dict({"q": {"z": 0.5}}, name="c"),
    }
    aligned = align_runs(runs, normalize="zscore", depth=7)
    fuser = EqualFuser(level=2).fit(aligned)
    assert fuser.weights_ == pytest.approx(np.full(3, 1 / 3))
    fused, rule = fuser.fuse(aligned), fuse_runs(aligned, np.ones(3), method="sum")
    assert [fused.docs[int(doc)] for doc in fused.doc] == [rule.docs[int(doc)] for doc in rule.doc]
    model = fuser.to_model()
    assert (model.method, model.relevance_level, model.depths) == ("equal", 2, (7, 7, 7))
    assert model.normalizers == aligned.normalizers


def test_it_is_not_ready_before_it_has_seen_rankers() -> None:
    with pytest.raises(NotFittedError, match="EqualFuser has no weights yet"):
        EqualFuser().to_model()
