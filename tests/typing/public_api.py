"""What a type checker says of the public API: mypy reads this file in `make types`, nothing runs it.

One function per part. A new name on the root needs a line here; `tests/test_project.py` tells which is missing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import genm
from genm.evaluate import Comparison, Evaluation, Measure, parse_measure, parse_measures
from genm.export import Exported, export_model
from genm.learn import BarrierFuser, BoostFuser, CotrainFuser, ExactFuser, Fuser, NewtonFuser, OnlineFuser

Floats = NDArray[np.float64]


def version_and_errors() -> None:
    assert_type(genm.__version__, str)
    assert_type(genm.GenmError.code, str)


def reading(path: Path, frame: object, table: Mapping[str, Mapping[str, float]]) -> None:
    assert_type(genm.read_run("a.trec"), genm.Run)
    assert_type(genm.read_run(path, name="a", lenient=True, duplicates="max"), genm.Run)
    assert_type(genm.read_run(table), genm.Run)
    assert_type(genm.read_run(frame), genm.Run)
    assert_type(genm.read_qrels(path, format="csv"), genm.Qrels)
    genm.write_run(genm.read_run(path), path)
    genm.read_run(path, duplicates="sum")  # type: ignore[arg-type]


def evaluating(run: genm.Run, qrels: genm.Qrels) -> None:
    evaluation = genm.evaluate_run(run, qrels, "AP, nDCG@10")
    assert_type(evaluation, Evaluation)
    assert_type(evaluation.means, Floats)
    assert_type(evaluation.mean("AP"), float)
    assert_type(genm.compare_runs([evaluation, evaluation]), Comparison)
    assert_type(parse_measure("nDCG@10"), Measure)
    assert_type(parse_measures("AP, RR"), tuple[Measure, ...])


def fusing(a: genm.Run, b: genm.Run, qrels: genm.Qrels) -> None:
    aligned = genm.align_runs({"a": a, "b": b}, qrels, normalize=genm.Normalizer("zscore"), depth=100)
    assert_type(aligned, genm.Aligned)
    assert_type(genm.align_runs([a, b], normalize={"a": "minmax", "b": "none"}), genm.Aligned)
    assert_type(aligned.rankers, tuple[str, ...])
    assert_type(genm.fuse_runs(aligned, {"a": 0.3, "b": 0.7}, top=10), genm.Run)
    assert_type(genm.fuse_runs(aligned, method="rrf", k=60), genm.Run)


def learning(aligned: genm.Aligned) -> None:
    fuser = genm.fit(aligned, method="auto", measure="nDCG@10")
    assert_type(fuser, Fuser)
    assert_type(fuser.rankers_, tuple[str, ...])
    assert_type(fuser.weights_, Floats)
    assert_type(fuser.converged_, bool)
    assert_type(fuser.fuse(aligned, name="fused", top=10), genm.Run)
    assert_type(fuser.to_model(), genm.Model)


def fit_returns_the_fuser_itself(aligned: genm.Aligned) -> None:
    assert_type(BarrierFuser().fit(aligned), BarrierFuser)
    assert_type(BoostFuser().fit(aligned), BoostFuser)
    assert_type(CotrainFuser().fit(aligned), CotrainFuser)
    assert_type(ExactFuser(measure="RR@10").fit(aligned), ExactFuser)
    assert_type(NewtonFuser(beta=200.0).fit(aligned), NewtonFuser)
    assert_type(OnlineFuser().fit(aligned).partial_fit(aligned), OnlineFuser)


def models(path: Path) -> None:
    model = genm.load_model(path)
    assert_type(model, genm.Model)
    assert_type(model.weights, tuple[float, ...])
    assert_type(model.target, str | None)
    genm.save_model(model, str(path))
    assert_type(export_model(model, "opensearch"), Exported)
    assert_type(OnlineFuser.from_model(model), OnlineFuser)
