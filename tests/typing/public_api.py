"""What a type checker says of the public API: mypy reads this file in `make types`, nothing runs it.

One function per part. A new name on the root needs a line here; `tests/test_project.py` tells which is missing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import genm
from genm.align import as_aligned
from genm.evaluate import Measure, parse_measure
from genm.evidence import Evidence, HeldOut
from genm.export import Exported, export_model
from genm.learn import METHODS, Fuser, Method, find_method
from genm.training import Tested

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


def mappings(run: genm.Run, qrels: genm.Qrels) -> None:
    assert_type(run["q1"], dict[str, float])
    assert_type(qrels["q1"], dict[str, int])
    assert_type(len(run), int)
    assert_type(list(run), list[str])
    assert_type(run.get("q1"), dict[str, float] | None)
    assert_type("q1" in qrels, bool)
    assert_type(run.to_dict(), dict[str, dict[str, float]])
    assert_type(genm.Run.from_dict({"q1": {"d1": 1.0}}, name="a"), genm.Run)
    assert_type(genm.Qrels.from_dict({"q1": {"d1": 1}}), genm.Qrels)
    for query_id, documents in run.items():
        assert_type(query_id, str)
        assert_type(documents, dict[str, float])


def evaluating(run: genm.Run, qrels: genm.Qrels) -> None:
    evaluation = genm.evaluate_run(run, qrels, "AP, nDCG@10")
    assert_type(evaluation, genm.Evaluation)
    assert_type(genm.evaluate(run, qrels, ["AP", Measure("RR")]), genm.Evaluation)
    assert_type(evaluation.means, Floats)
    assert_type(evaluation.mean("AP"), float)
    assert_type(genm.evaluate_runs({"a": run}, qrels, "AP"), dict[str, genm.Evaluation])
    assert_type(genm.compare_runs([evaluation, evaluation]), genm.Comparison)
    assert_type(parse_measure("nDCG@10"), Measure)
    assert_type(genm.parse_measures("AP, RR"), tuple[Measure, ...])


def fusing(a: genm.Run, b: genm.Run, qrels: genm.Qrels) -> None:
    aligned = genm.align_runs({"a": a, "b": b}, qrels, normalize=genm.Normalizer("zscore"), depth=100)
    assert_type(aligned, genm.Aligned)
    assert_type(genm.align_runs([a, b], normalize={"a": "minmax", "b": "none"}), genm.Aligned)
    assert_type(aligned.rankers, tuple[str, ...])
    assert_type(genm.fuse_runs(aligned, {"a": 0.3, "b": 0.7}, top=10), genm.Run)
    assert_type(genm.fuse_runs(aligned, method="rrf", k=60), genm.Run)
    assert_type(genm.fuse([a, b], method="rrf"), genm.Run)
    assert_type(genm.fuse({"a": a, "b": b}, [0.3, 0.7], normalize="zscore", depth=10), genm.Run)
    assert_type(as_aligned(aligned), genm.Aligned)
    assert_type(as_aligned([a, b], qrels), genm.Aligned)
    genm.fuse(a)  # type: ignore[arg-type]


def learning(aligned: genm.Aligned) -> None:
    fuser = genm.fit(aligned, method="auto", measure="nDCG@10")
    assert_type(fuser, Fuser)
    assert_type(fuser.rankers_, tuple[str, ...])
    assert_type(fuser.weights_, Floats)
    assert_type(fuser.converged_, bool)
    assert_type(fuser.fuse(aligned, name="fused", top=10), genm.Run)
    assert_type(fuser.to_model(), genm.Model)
    assert_type(fuser.score(aligned, measure="AP"), float)
    assert_type(fuser.clone(), Fuser)
    assert_type(METHODS, tuple[str, ...])
    assert_type(find_method("gEnM.BAT"), Method)


def learning_from_runs(a: genm.Run, b: genm.Run, qrels: genm.Qrels) -> None:
    assert_type(genm.fit([a, b], qrels, method="newton"), Fuser)
    assert_type(genm.fit({"a": a, "b": b}, method="cotrain").fuse([a, b]), genm.Run)
    assert_type(genm.NewtonFuser().fit([a, b], qrels).score([a, b], qrels, "nDCG@10"), float)
    assert_type(genm.cross_validate(genm.NewtonFuser(beta=200), [a, b], qrels, "AP"), HeldOut)
    assert_type(genm.cross_validate(genm.NewtonFuser, genm.align_runs([a, b], qrels)).mean, float)


def training(a: genm.Run, b: genm.Run, qrels: genm.Qrels, path: Path) -> None:
    trained = genm.train([a, b], qrels, measure="nDCG@10", target="opensearch", folds=5, seed=0)
    assert_type(trained, genm.Trained)
    assert_type(trained.model, genm.Model)
    assert_type(trained.evidence, Evidence | None)
    assert_type(trained.verdict, str)
    assert_type(trained.weights, dict[str, float])
    assert_type(trained.tested, Tested | None)
    assert_type(trained.fuse([a, b]), genm.Run)
    trained.save(path)
    trained.report(str(path), title="both")
    assert_type(genm.train(genm.align_runs([a, b], qrels), method="exact", certify=True), genm.Trained)


def fit_returns_the_fuser_itself(aligned: genm.Aligned) -> None:
    assert_type(genm.AutoFuser(measure="RR@10").fit(aligned), genm.AutoFuser)
    assert_type(genm.BarrierFuser().fit(aligned), genm.BarrierFuser)
    assert_type(genm.BoostFuser().fit(aligned), genm.BoostFuser)
    assert_type(genm.CotrainFuser().fit(aligned), genm.CotrainFuser)
    assert_type(genm.ExactFuser(measure="RR@10").fit(aligned), genm.ExactFuser)
    assert_type(genm.ExpectedFuser().fit(aligned), genm.ExpectedFuser)
    assert_type(genm.NewtonFuser(beta=200.0).fit(aligned).clone(), genm.NewtonFuser)
    assert_type(genm.OnlineFuser().fit(aligned).partial_fit(aligned), genm.OnlineFuser)


def models(path: Path) -> None:
    model = genm.load_model(path)
    assert_type(model, genm.Model)
    assert_type(model.weights, tuple[float, ...])
    assert_type(model.target, str | None)
    genm.save_model(model, str(path))
    assert_type(export_model(model, "opensearch"), Exported)
    assert_type(genm.OnlineFuser.from_model(model), genm.OnlineFuser)
