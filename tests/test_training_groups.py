"""`genm.train` with weights by group of queries, or with a per-query gate."""

import pytest
from problems import runs_of, two_kinds

from genm.errors import InputError
from genm.evaluate import evaluate_run
from genm.model import load_model
from genm.records import Qrels
from genm.training import train


@pytest.fixture(autouse=True)
def few_refits(monkeypatch):
    """Refit a few times only."""
    monkeypatch.setattr("genm.evidence.resampling.N_RESAMPLES", 4)
    monkeypatch.setattr("genm.evidence.resampling.N_WHOLE", 4)


@pytest.fixture(scope="module")
def kinds():
    aligned, groups, texts = two_kinds(n_queries=60)
    ids, runs = list(aligned.queries), runs_of(aligned)
    qrels = Qrels.from_dict({query: {f"d{d:02}": 1 for d in range(3)} for query in ids})
    return runs, qrels, dict(zip(ids, groups, strict=True)), texts


def test_groups_rules_and_columns_lead_to_the_same_weights(kinds, tmp_path):
    runs, qrels, groups, texts = kinds
    plain = train(runs, qrels, folds=3)
    trained = train(runs, qrels, folds=3, groups=groups)
    assert trained.model.weights == plain.model.weights, "the global weights do not change"
    assert trained.by_query.is_worth_it
    assert trained.model.training["groups"]["outcome"] == "better"
    by_rule = train(runs, qrels, folds=3, queries=texts, group_by="id: ^AB-")
    columns = {query: {"text": texts[query], "kind": groups[query]} for query in groups}
    by_column = train(runs, qrels, folds=3, queries=columns, group_by="kind")
    found = {one.name: one.weights for one in trained.model.groups.members}
    assert {one.name: one.weights for one in by_column.model.groups.members} == found
    renamed = {"other": found["question"], "id": found["id"]}
    assert {one.name: one.weights for one in by_rule.model.groups.members} == renamed
    trained.save(tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    fused = model.fuse(runs, groups=groups)
    assert trained.fuse(runs, groups=groups)["q000"] == fused["q000"]
    assert evaluate_run(fused, qrels, "AP").mean("AP") > evaluate_run(plain.fuse(runs), qrels, "AP").mean("AP")


def test_queries_without_a_group_are_counted(kinds):
    runs, qrels, groups, _ = kinds
    some = {query: group for query, group in groups.items() if query != "q000"}
    notes = {note.code: note for note in train(runs, qrels, folds=2, method="boost", groups=some).notes}
    assert notes["no-group"].text == "1 of 60 judged queries have no group; they get the global weights"


def test_a_gate_is_learned_and_saved(kinds, tmp_path):
    runs, qrels, _, texts = kinds
    trained = train(runs, qrels, folds=3, queries=texts, per_query=True)
    assert trained.model.gate is not None
    trained.save(tmp_path / "m.json")
    fused = load_model(tmp_path / "m.json").fuse(runs, queries=texts)
    assert fused["q001"] == trained.fuse(runs, queries=texts)["q001"]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"groups": {"x": "y"}}, "none of 60 has one"),
        ({"groups": {}, "per_query": True}, "contradict each other"),
        ({"groups": {}, "group_by": "a"}, "both say the group"),
        ({"group_by": "a: x"}, "Give queries"),
        ({"group_by": "a: (x+)+", "queries": {}}, "repeated group"),
    ],
)
def test_refusals(kinds, options, fault):
    with pytest.raises(InputError, match=fault):
        train(kinds[0], kinds[1], method="boost", folds=2, **options)


def test_without_judgments_there_is_nothing_to_learn_groups_from(kinds):
    with pytest.raises(InputError, match="learn from judgments"):
        train(kinds[0], groups={"q000": "a"})
