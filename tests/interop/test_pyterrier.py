"""The estimators inside PyTerrier: its operators, its experiment, its inspection. No Java is started."""

from typing import Any

import numpy as np
import pytest

import genm
from genm.errors import InputError
from genm.model import fuse_with_model
from genm.read import qrels_from_frame, run_from_frame

ir_measures = pytest.importorskip("ir_measures", reason="ir-measures is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")
pt = pytest.importorskip("pyterrier", reason="pyterrier is not installed", exc_type=ImportError)

from genm.interop.pyterrier import FeatureFusion, PipelineFusion  # noqa: E402

N_QUERIES, N_DOCS = 12, 15


def data() -> tuple[Any, Any, dict[str, Any]]:
    """Topics, judgments, and a good and a bad ranker's results, which lack some documents."""
    draw = np.random.default_rng(1)
    topics = pd.DataFrame({"qid": [f"q{q}" for q in range(N_QUERIES)], "query": "words"})
    pairs = [(qid, f"d{i}") for qid in topics["qid"] for i in range(N_DOCS)]
    qrels = pd.DataFrame(pairs, columns=["qid", "docno"])
    qrels["label"] = (draw.random(len(qrels)) < 0.3).astype(int)
    found = {}
    for name, noise in (("good", 0.4), ("bad", 3.0)):
        results = qrels[["qid", "docno"]].assign(
            query="words", score=qrels["label"] + draw.normal(0, noise, len(qrels))
        )
        results = results[draw.random(len(results)) < 0.8]
        found[name] = pt.model.add_ranks(results.reset_index(drop=True))
    return topics, qrels, found


def pipelines(found: dict[str, Any]) -> dict[str, Any]:
    return {name: pt.Transformer.from_df(results) for name, results in found.items()}


def test_pipelines_are_fused_as_by_the_library() -> None:
    topics, qrels, found = data()
    fusion = PipelineFusion(pipelines(found), depth=10)
    assert fusion.fit(topics, qrels) is fusion
    runs = {name: run_from_frame(results, name=name) for name, results in found.items()}
    fuser = genm.fit(genm.align_runs(runs, qrels_from_frame(qrels), depth=10))
    assert list(fusion.weights_.values()) == pytest.approx(fuser.weights_)
    ours = run_from_frame(fusion(topics), name="fused")
    theirs = fuse_with_model(fusion.to_model(), runs)
    assert ours.score == pytest.approx(theirs.score)
    assert [ours.docs[i] for i in ours.doc] == [theirs.docs[i] for i in theirs.doc]


def test_the_frame_is_pyterriers() -> None:
    topics, qrels, found = data()
    fusion = PipelineFusion(pipelines(found))
    fusion.fit(topics, qrels)
    results = fusion(topics)
    assert results.groupby("qid")["rank"].min().eq(0).all()  # ranks count from 0
    assert set(results.columns) == {"qid", "query", "docno", "score", "rank"}
    assert (
        results.sort_values(["qid", "rank"])
        .groupby("qid")["score"]
        .apply(lambda s: s.is_monotonic_decreasing)
        .all()
    )
    assert set(fusion.search("words", qid="q1")["qid"]) == {"q1"}


def test_a_stage_may_follow_and_an_experiment_be_run() -> None:
    topics, qrels, found = data()
    ways = pipelines(found)
    fusion = PipelineFusion(ways, measure=ir_measures.nDCG @ 5)
    fusion.fit(topics, qrels)
    table = pt.Experiment(
        [fusion % 5, ways["bad"] % 5], topics, qrels, [ir_measures.nDCG @ 5], names=["fused", "bad"]
    )
    assert table["nDCG@5"][0] > table["nDCG@5"][1]


def features(found: dict[str, Any], qrels: Any) -> Any:
    """Every judged document with both scores, as `**` leaves them."""
    merged = qrels[["qid", "docno"]].assign(query="words")
    for name, results in found.items():
        merged = merged.merge(results[["qid", "docno", "score"]].rename(columns={"score": name}), how="left")
    filled = merged.fillna({"good": -9.0, "bad": -9.0})
    merged["features"] = list(filled[["good", "bad"]].to_numpy())
    return merged.assign(score=0.0, rank=0)


def test_features_are_fused_behind_a_pipeline() -> None:
    topics, qrels, found = data()
    first = pt.Transformer.from_df(features(found, qrels))
    pipe = first >> FeatureFusion(names=["good", "bad"], normalize="none")
    pipe.fit(topics, qrels)
    weights = pipe[-1].weights_
    assert weights["good"] > weights["bad"]
    results = pipe(topics)
    expected = np.stack(results["features"].to_numpy()) @ np.array(list(weights.values()))
    assert results["score"].to_numpy() == pytest.approx(expected)
    assert results.groupby("qid")["rank"].apply(lambda r: list(r) == list(range(len(r)))).all()


def test_the_operator_for_features_stands_before_the_fusion() -> None:
    topics, qrels, found = data()
    pairs = pd.concat(list(found.values()))[["qid", "query", "docno"]].drop_duplicates().assign(score=0.0)
    scores = {name: results.set_index(["qid", "docno"])["score"] for name, results in found.items()}
    good, bad = (
        pt.apply.doc_score(lambda row, own=own: float(own.get((row["qid"], row["docno"]), -9.0)))
        for own in scores.values()
    )
    first = pt.Transformer.from_df(pt.model.add_ranks(pairs))
    pipe = first >> (good**bad) >> FeatureFusion(names=["good", "bad"])
    pipe.fit(topics, qrels)
    assert pipe[-1].weights_["good"] > 0.5
    table = pt.Experiment([pipe, first >> bad], topics, qrels, ["map"], names=["fused", "bad"])
    assert table["map"][0] > table["map"][1]


def test_score_columns_are_fused_and_gaps_are_documents_not_returned() -> None:
    topics, qrels, found = data()
    table = features(found, qrels)
    fusion = FeatureFusion(columns=["good", "bad"])
    fusion.fit(table, qrels)
    same = PipelineFusion(pipelines(found)).fit(topics, qrels)
    assert list(fusion.weights_.values()) == pytest.approx(list(same.weights_.values()))


def test_inspection_knows_the_columns() -> None:
    found = data()[2]
    assert pt.inspect.transformer_inputs(PipelineFusion(pipelines(found))) == [["qid", "query"]]
    outputs = pt.inspect.transformer_outputs(PipelineFusion(pipelines(found)), ["qid", "query"])
    assert outputs == ["qid", "query", "docno", "score", "rank"]
    outputs = pt.inspect.transformer_outputs(FeatureFusion(), ["qid", "docno", "score", "rank", "features"])
    assert outputs == ["qid", "docno", "features", "score", "rank"]


def test_no_topics_give_no_results() -> None:
    topics, qrels, found = data()
    fusion = PipelineFusion(pipelines(found)).fit(topics, qrels)
    assert list(fusion(topics.head(0)).columns) == ["qid", "query", "docno", "score", "rank"]
    behind = FeatureFusion(columns=["good", "bad"]).fit(features(found, qrels), qrels)
    assert len(behind(features(found, qrels).head(0))) == 0


def test_a_ranker_that_finds_nothing_takes_part_with_nothing() -> None:
    topics, qrels, found = data()
    fusion = PipelineFusion(pipelines(found)).fit(topics, qrels)
    fusion.pipelines["bad"] = pt.Transformer.from_df(found["bad"].head(0))
    assert set(fusion(topics)["docno"]) <= set(found["good"]["docno"])


def test_mistakes_are_named() -> None:
    topics, qrels, found = data()
    with pytest.raises(InputError, match="no weights yet"):
        PipelineFusion(pipelines(found)).transform(topics)
    with pytest.raises(InputError, match="expected at least one"):
        PipelineFusion({})
    with pytest.raises(InputError, match="Drop one of the two"):
        FeatureFusion(columns=["a"], names=["b"])
    with pytest.raises(InputError, match=r"expected the columns qid, docno, features; found qid, docno"):
        FeatureFusion().fit(found["good"], qrels)
    with pytest.raises(InputError, match="names: expected 2, one for each feature; found 1"):
        FeatureFusion(names=["good"]).fit(features(found, qrels), qrels)
