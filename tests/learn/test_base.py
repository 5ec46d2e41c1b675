"""What all fusers have in common: what they refuse, and how they show themselves."""

from collections.abc import Callable

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
from genm.learn import BarrierFuser, NewtonFuser, OnlineFuser
from genm.learn.auto import AutoFuser, fit, make_fuser
from genm.learn.base import EqualFuser, GivenFuser
from genm.learn.starts import simple_starts
from genm.read import run_from_dict

METHODS = ("auto", "bat", "enm", "exact", "ip", "on", "uns")
RUNS = {"bm25": run_of({"q1": {"d1": 2.0, "d2": 1.0}}), "dense": run_of({"q1": {"d1": 1.0, "d2": 2.0}})}
FITTED = GivenFuser((0.25, 0.75)).fit(made_up(0, quality=(1.0, 0.5), n_queries=2, n_docs=8))
DOORS: dict[str, Callable[..., object]] = {
    **{f"fit by {method}": lambda runs, method=method: fit(runs, method=method) for method in METHODS},
    "fit under every normaliser": lambda runs: AutoFuser(normalize="auto").fit(runs),
    "fuse": lambda runs: FITTED.fuse(runs),
    "one query after another": lambda runs: OnlineFuser().partial_fit(runs),
    "normalise": lambda runs: renormalize(runs, "max"),
    "evaluate": lambda runs: evaluate_aligned(runs, np.ones(2), "AP"),
    "cross-validate": lambda runs: cross_validate(runs, NewtonFuser, "AP"),
    "evidence": lambda runs: gather_evidence(runs, NewtonFuser, "AP"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("wrong", [RUNS, "runs.trec", None, qrels_of({"q1": {"d1": 1}})])
def test_what_is_not_aligned_is_refused_with_the_way_to_align_it(door: str, wrong: object) -> None:
    with pytest.raises(
        InputError, match=rf"aligned: expected Aligned; found {type(wrong).__name__}\. .*align_runs"
    ):
        DOORS[door](wrong)


def test_a_stream_goes_on_from_a_model_only() -> None:
    with pytest.raises(InputError, match=r"model: expected Model; found str\. .*load_model"):
        OnlineFuser.from_model("model.json")  # type: ignore[arg-type]


def test_a_fuser_shows_its_options_and_its_weights_on_one_line() -> None:
    assert repr(FITTED) == "<GivenFuser(weights=(0.25, 0.75)): r0 0.25, r1 0.75>"
    assert repr(NewtonFuser()) == "<NewtonFuser(): not fitted>"
    assert repr(NewtonFuser(anneal=(0.5,), seed=3)) == "<NewtonFuser(anneal=(0.5,), seed=3): not fitted>"
    assert repr(make_fuser("auto")) == "<AutoFuser(): not fitted>"
    assert repr(make_fuser("auto", measure="nDCG@10")) == "<AutoFuser(measure=nDCG@10): not fitted>"
    many = BarrierFuser(starts=np.vstack(simple_starts(np.eye(50)[0])))
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
