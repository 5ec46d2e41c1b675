"""What all fusers have in common: what they refuse, and how they show themselves."""

from collections.abc import Callable

import numpy as np
import pytest
from judged_cases import qrels_of, run_of
from problems import made_up

from genm.align import renormalize
from genm.errors import InputError
from genm.evaluate import evaluate_aligned
from genm.evidence import GivenFuser, gather_evidence
from genm.evidence.crossval import cross_validate
from genm.learn import BarrierFuser, NewtonFuser, OnlineFuser
from genm.learn.auto import AutoFuser, fit, make_fuser
from genm.learn.starts import simple_starts

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
