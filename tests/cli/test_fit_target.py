import json

import pytest

from genm.export import training_rules
from genm.model import load_model
from genm.read import read_run

RUNS = ("bm25.trec", "dense.trec")
QUICK = ("--qrels", "qrels.txt", *RUNS, "--method", "bat", "--folds", "2", "-o", "model.json")
pytestmark = pytest.mark.usefixtures("little_evidence")


def test_the_model_holds_the_engines_rules(genm, sample):
    assert genm("fit", "--target", "opensearch", *QUICK).code == 0
    model = load_model("model.json")
    rules = training_rules("opensearch", model.rankers)
    assert model.target == "opensearch"
    assert model.normalizers == tuple(rules.normalizers.values())
    assert model.depths == (rules.depth, rules.depth) == (100, 100)


def test_techniques_and_window_are_followed(genm, sample):
    assert genm("fit", "--target", "opensearch", "--technique", "l2", "--window", "20", *QUICK).code == 0
    model = load_model("model.json")
    assert [normalizer.kind for normalizer in model.normalizers] == ["l2", "l2"]
    assert model.depths == (20, 20)
    assert json.loads(genm("export", "model.json").out)["query"]["hybrid"]["pagination_depth"] == 20
    assert genm("fit", "--target", "milvus", "--technique", "dense=IP", *QUICK).code == 0
    wanted = training_rules("milvus", model.rankers, techniques={"dense": "IP"}).normalizers
    assert load_model("model.json").normalizers == tuple(wanted.values())


def test_fixed_bounds_are_the_ends_of_the_runs(genm, sample):
    assert genm("fit", "--target", "qdrant", *QUICK).code == 0
    dense = load_model("model.json").normalizers[1]
    assert dense.upper == float(read_run("dense.trec", name="dense").score.max())


def test_it_learns_without_judgments_too(genm, sample):
    found = genm("fit", "--target", "weaviate", *RUNS, "-o", "model.json")
    assert found.code == 0
    assert load_model("model.json").target == "weaviate"
    assert genm("export", "model.json").code == 0


@pytest.mark.parametrize("judged", [True, False])
def test_an_engine_that_takes_equal_weights_only_gets_them(genm, sample, judged):
    words = ("--qrels", "qrels.txt") if judged else ()
    found = genm("fit", "--target", "qdrant-rrf", *words, *RUNS, "--format", "json", "-o", "model.json")
    assert found.code == 0
    assert "the engine takes equal weights only: nothing is learned" in found.err
    shown = json.loads(found.out)
    assert shown["weights"] == {"bm25": 0.5, "dense": 0.5}
    assert ("cv" in shown) == judged
    if judged:
        assert shown["cv"]["mean"] == pytest.approx(shown["train"]["AP"])


def test_a_stream_stays_with_its_engine(genm, sample):
    words = ("--qrels", "qrels.txt", *RUNS)
    fitted = genm("fit", "--target", "weaviate", "--method", "on", "--folds", "2", *words, "-o", "model.json")
    assert fitted.code == 0
    assert genm("update", "--model", "model.json", *words).code == 0
    assert load_model("model.json").target == "weaviate"
    assert genm("export", "model.json").code == 0


def test_mixed_techniques_are_trained_and_said_not_to_fit(genm, sample):
    found = genm("fit", "--target", "opensearch", "--technique", "bm25=l2,dense=z_score", *QUICK)
    assert found.code == 0
    assert "note: opensearch does not take this model exactly: these normalisations cannot be combined" in found.err


def test_lists_with_gaps_are_said_to_be_no_candidates(genm, sample):
    found = genm("fit", "--target", "vespa", *QUICK)
    assert found.code == 0
    assert "note: Vespa rank profile scores every candidate by every ranker, and " in found.err
    assert "of the scores are missing in these runs" in found.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "elastic"), "export: expected a target of elasticsearch, "),
        (
            ("--target", "weaviate", "--normalize", "minmax"),
            "the target weaviate sets the normaliser",
        ),
        (
            ("--target", "weaviate", "--normalize", "auto"),
            "the target weaviate sets the normaliser",
        ),
        (("--target", "weaviate", "--depth", "50"), "depth (--depth): the target weaviate sets the depth"),
        (("--technique", "l2"), "technique (--technique) belongs to an engine"),
        (("--window", "50"), "window (--window) belongs to an engine"),
        (("--target", "weaviate", "--window", "0"), "Invalid value for '--window'"),
        (("--target", "opensearch", "--window", "10001"), "window: expected 1 to 10000 for OpenSearch"),
        (("--target", "vespa", "--window", "50"), "scores every candidate by every ranker: there is no window"),
        (("--target", "opensearch", "--technique", "zscore"), "expected a technique of min_max, l2, z_score"),
        (("--target", "opensearch", "--technique", "sparse=l2"), "expected the rankers bm25, dense; found sparse"),
        (("--target", "weaviate", "third=dense.trec"), "fuses exactly 2 rankers; found 3"),
        (
            ("--target", "qdrant-rrf", "--method", "bat"),
            "bat: Qdrant RRF takes equal weights only",
        ),
    ],
)
def test_refusals(genm, sample, words, message):
    found = genm("fit", "--qrels", "qrels.txt", *RUNS, *words, "-o", "model.json")
    assert message in found.fault
    assert not (sample / "model.json").exists()
