"""`genm fit`, `fuse`, `explain`, `export` and `update` with weights by group of queries."""

import json

import pytest
from problems import runs_of, two_kinds

from genm.read import write_run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("groups")
    aligned, groups, texts = two_kinds(n_queries=60)
    ids = list(aligned.queries)
    for run in runs_of(aligned):
        write_run(run, folder / f"{run.name}.trec")
    (folder / "qrels.txt").write_text(
        "".join(f"{q} 0 d{d:02} 1\n" for q in ids for d in range(3)), encoding="utf-8"
    )
    pairs = zip(ids, groups, strict=True)
    (folder / "groups.tsv").write_text("".join(f"{q}\t{group}\n" for q, group in pairs), encoding="utf-8")
    rows = "".join(f"{q}\t{texts[q]}\n" for q in ids)
    (folder / "queries.tsv").write_text(f"id\ttext\n{rows}", encoding="utf-8")
    return folder


RUNS = ("r0.trec", "r1.trec", "r2.trec")


@pytest.fixture(scope="module")
def model(made, genm):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        patch.setattr("genm.evidence.resampling.N_RESAMPLES", 4)
        patch.setattr("genm.evidence.resampling.N_WHOLE", 4)
        rules = ("--queries", "queries.tsv", "--group-by", "id: ^AB-, long: words>99")
        found = genm(
            "fit", "--qrels", "qrels.txt", *rules, *RUNS, "-o", "m.json", "--format", "json", "--folds", "3"
        )
    assert found.code == 0
    return made / "m.json", json.loads(found.out)


def test_fit_shows_groups_and_what_they_are_worth(model):
    _, said = model
    assert [group["name"] for group in said["groups"]["groups"]] == ["id", "other"]
    assert said["groups"]["worth_it"]
    assert said["groups"]["verdict"].startswith("Worth it: weights by group beat the global weights")


def test_fit_prints_a_table_and_tsv(genm, made, monkeypatch):
    monkeypatch.chdir(made)
    options = ("fit", "--qrels", "qrels.txt", "--groups", "groups.tsv", "--folds", "2", "--method", "boost", *RUNS)
    assert "Weights by group" in genm(*options).out
    lines = genm(*options, "--format", "tsv").out.splitlines()
    assert any(line.startswith("group.weight.id\tr0\t") for line in lines)


def test_fuse_applies_the_groups(genm, made, model, monkeypatch):
    monkeypatch.chdir(made)
    fused = genm("fuse", "--model", "m.json", "--queries", "queries.tsv", *RUNS)
    assert (fused.code, fused.err) == (0, "")
    plain = genm("fuse", "--model", "m.json", *RUNS)
    assert plain.err.startswith("note: 60 of 60 queries are of no group that the model knows")
    assert plain.out != fused.out


def test_options_that_nothing_would_read_are_refused(genm, made, monkeypatch):
    monkeypatch.chdir(made)
    fault = genm("fuse", "--method", "rrf", "--groups", "groups.tsv", *RUNS).fault
    assert "--groups belongs to a model with weights by query" in fault
    assert "Give queries (--queries)" in genm("fit", "--qrels", "qrels.txt", "--group-by", "a: x", *RUNS).fault
    assert "learn from judgments" in genm("fit", "--groups", "groups.tsv", *RUNS).fault


def test_explain_says_whether_groups_differ(genm, made, model, monkeypatch):
    monkeypatch.chdir(made)
    options = ("explain", "--model", "m.json", "--qrels", "qrels.txt", *RUNS, "--folds", "2", "--method", "boost")
    found = genm(*options, "--groups", "groups.tsv")
    assert (found.code, found.err) == (0, "")
    assert "Worth it: weights by group beat the global weights" in " ".join(found.out.split())
    said = json.loads(genm(*options, "--queries", "queries.tsv", "--format", "json").out)
    assert [group["name"] for group in said["groups"]["groups"]] == ["id", "other"]
    assert (
        "--plot draws what rankers are worth" in genm(*options, "--groups", "groups.tsv", "--plot", "x.svg").fault
    )


def test_explain_shows_the_weights_of_the_query(genm, made, model, monkeypatch):
    monkeypatch.chdir(made)
    lines = (made / "groups.tsv").read_text(encoding="utf-8").splitlines()
    query = next(line.split("\t")[0] for line in lines if line.endswith("id"))
    options = ("explain", "--model", "m.json", *RUNS, "--query", query, "--format", "json")
    weights = json.loads((made / "m.json").read_text(encoding="utf-8"))["groups"]["members"][0]["weights"]
    assert list(json.loads(genm(*options, "--queries", "queries.tsv").out)["weights"].values()) == weights
    assert "got its global weights" in genm(*options).err


def test_export_writes_a_folder_or_one_group(genm, made, model, monkeypatch, tmp_path):
    monkeypatch.chdir(made)
    options = ("export", "--to", "langchain", "--approximate", "m.json")
    assert "Name a folder (-o FOLDER), or one group (--group NAME" in genm(*options).fault
    found = genm(*options, "-o", tmp_path / "out")
    assert found.code == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"groups.json", "query_groups.py", "learned_by_group.py", "learned_langchain_id.py"} <= names
    assert "EnsembleRetriever" in genm(*options, "--group", "id").out
    assert genm(*options, "--group", "global").out != genm(*options, "--group", "id").out
    assert "expected one of id, other" in genm(*options, "--group", "new").fault
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "expected a folder" in genm(*options, "-o", tmp_path / "file").fault


def test_update_moves_the_weights_of_the_groups(genm, made, monkeypatch, tmp_path):
    monkeypatch.chdir(made)
    online = (
        "fit",
        "--method",
        "online",
        "--qrels",
        "qrels.txt",
        "--folds",
        "2",
        *RUNS,
        "-o",
        tmp_path / "on.json",
    )
    monkeypatch.setattr("genm.evidence.resampling.N_RESAMPLES", 4)
    monkeypatch.setattr("genm.evidence.resampling.N_WHOLE", 4)
    assert genm(*online).code == 0
    update = ("update", "--model", tmp_path / "on.json", "--qrels", "qrels.txt", *RUNS)
    assert "Use --groups" in genm(*update, "--queries", "queries.tsv").fault
    found = json.loads(genm(*update, "--groups", "groups.tsv", "--format", "json").out)
    assert found["groups"]["id"]["r0"] > found["groups"]["question"]["r0"]
    again = genm(*update)
    assert "only the global weights move" in again.err
    assert "Weights by group" in again.out
