"""Every command of the engines' pages is run, and what `genm export` refuses, measures and lists is held to it."""

import json
import random
import re
import shlex
from pathlib import Path

import pytest

from genm.export import targets
from genm.model import load_model, save_model

PAGES = Path(__file__).parents[2] / "docs" / "engines"
pytestmark = pytest.mark.usefixtures("little_evidence")
RERANKING = [name for name, target in targets().items() if target.window.rerank]


def write_small(folder, *, complete):
    """Four queries, four rankers that come in two pairs; complete: each of them scores every candidate."""
    draw = random.Random(11)
    qrels, runs = [], {"bm25": [], "dense": [], "title": [], "body": []}
    for q in range(1, 5):
        docs = [f"d{i:02}" for i in draw.sample(range(40), 16)]
        qrels += [f"{q} 0 {doc} {int(i < 4)}" for i, doc in enumerate(docs)]
        for name, lines in runs.items():
            seen = docs[:2] if name in ("bm25", "title") else docs[2:4]
            scale = 6.0 if name in ("bm25", "title", "body") else 0.4
            scores = {doc: scale * (draw.random() + 0.45 * (doc in seen)) for doc in docs}
            kept = docs if complete else draw.sample(docs[:4], 3) + draw.sample(docs[4:], 8)
            top = sorted(kept, key=scores.__getitem__, reverse=True)
            lines += [f"{q} Q0 {doc} {r} {scores[doc]:.6f} {name}" for r, doc in enumerate(top, 1)]
    (folder / "qrels.txt").write_text("\n".join(qrels) + "\n")
    for name, lines in runs.items():
        (folder / f"{name}.trec").write_text("\n".join(lines) + "\n")


@pytest.fixture
def small(tmp_path, monkeypatch):
    write_small(tmp_path, complete=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def kept(genm, tmp_path_factory):
    """A folder with the small runs and a model that was trained with plain minmax, for no engine."""
    folder = tmp_path_factory.mktemp("export")
    write_small(folder, complete=False)
    words = ("--depth", "100", "--method", "bat", "--folds", "2", "-o", folder / "model.json")
    assert genm("fit", "--qrels", folder / "qrels.txt", *runs_in(folder), *words).code == 0
    return folder


@pytest.fixture
def learned(kept, monkeypatch):
    monkeypatch.chdir(kept)
    return "model.json"


def runs_in(folder):
    return [f"{name}={folder / name}.trec" for name in ("bm25", "dense")]


def commands(name):
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    return [
        shlex.split(line)[1:]
        for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
        for line in block.splitlines()
        if not line.startswith("genm pull ")  # asks a running engine; see tests/connect
    ]


@pytest.mark.parametrize("name", targets())
def test_the_pages_commands_lead_to_what_the_engine_ranks_as_the_model(genm, small, name):
    if name in RERANKING:
        write_small(small, complete=True)
    fit, command = commands(name)
    export, (option, path) = command[:-2], command[-2:]
    trained = genm(*fit)
    assert trained.code == 0, trained.err
    assert f"training under the rules of {targets()[name].title}" in trained.err
    assert "note: " not in trained.err
    model = load_model("model.json")
    assert model.target == name
    files = [word for word in fit if word.endswith(".trec")]
    written = genm(*export, *files)
    assert written.code == 0, written.err
    assert written.out.strip()
    assert "changes the top 10 of 0 of 4 queries (0.0%)" in written.err
    (small / "exported").symlink_to("kept")
    again = genm(*export, "-o", "exported")
    assert (small / "kept").stat().st_size == (small / "exported").stat().st_size
    assert (small / "exported").is_symlink()
    assert again.out == ""
    assert (small / "exported").read_text(encoding="utf-8") == written.out
    assert genm("export", "model.json", *export[4:]).out == written.out  # the model knows its engine
    assert option == "-o"
    assert genm(*command).code == 0
    assert (small / path).read_text(encoding="utf-8") == written.out
    assert genm("fuse", "--model", "model.json", *files, "-o", "fused.trec").code == 0
    reached = json.loads(genm("evaluate", "qrels.txt", "fused.trec", "-m", "AP", "--format", "json").out)
    assert reached["fused"]["mean"]["AP"] == pytest.approx(model.training["train"])


def test_a_model_that_does_not_fit_is_refused_with_reason_and_remedy(genm, learned):
    fault = genm("export", "--to", "elasticsearch", learned).fault
    assert fault.startswith("genm: export: Elasticsearch linear retriever cannot express this model exactly: ")
    assert "gives a list of equal scores 1, not its raw scores" in fault
    assert "Nearest exact way: fit again with --target elasticsearch." in fault
    assert "--approximate" in fault


def test_an_approximate_export_is_measured_on_the_runs(genm, learned):
    found = genm("export", "--to", "elasticsearch-rrf", "--approximate", learned, "bm25.trec", "dense.trec")
    assert found.code == 0
    assert "note: Not exact: the normaliser of bm25" in found.err
    changed, share = re.search(r"changes the top 10 of (\d) of 4 queries \((.*?)%\)", found.err).groups()
    assert int(changed) > 0
    assert float(share) == 100 * int(changed) / 4
    assert json.loads(found.out)["retriever"]["rrf"]
    unmeasured = genm("export", "--to", "elasticsearch-rrf", "--approximate", learned)
    assert unmeasured.out == found.out
    assert "give the runs too: bm25=FILE dense=FILE" in unmeasured.err


def test_what_the_runs_show_is_the_librarys_measure(genm, learned):
    from genm.export import measured_loss
    from genm.read import read_run

    loss = measured_loss(
        load_model(learned), "haystack", {name: read_run(f"{name}.trec", name=name) for name in ("bm25", "dense")}
    )
    found = genm("export", "--to", "haystack", "--approximate", learned, "bm25.trec", "dense.trec")
    assert f"top 10 of {loss.n_changed} of 4 queries" in found.err
    assert f"{loss.n_members_changed} get other documents there" in found.err


def test_settings_reach_the_text(genm, learned):
    options = ("--set", "size=25", "--set", "dense.vector=[1, 2.5]", "--set", "dense.field=a=b")
    text = genm("export", "--to", "weaviate", learned, "--set", "size=25").out
    assert "limit=25" in text
    text = genm("export", "--to", "opensearch", "--approximate", learned, *options).out
    document = json.loads(text)
    assert document["size"] == 25
    assert document["query"]["hybrid"]["queries"][1]["knn"]["a=b"]["vector"] == [1.0, 2.5]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "elastic", "model.json"), "expected a target of elasticsearch, "),
        (("model.json",), "input: model.json was trained for no engine. Name one: --to NAME"),
        (("--to", "weaviate"), "expected a model file of genm fit; found none"),
        (("--to", "weaviate", "nowhere.json"), "model: nowhere.json: no such file"),
        (("--to", "weaviate", "model.json", "--set", "size"), "--set size: expected NAME=VALUE"),
        (("--to", "weaviate", "model.json", "--set", "=1"), "--set =1: expected NAME=VALUE"),
        (("--to", "weaviate", "model.json", "--set", "size=1", "--set", "size=2"), "--set size: given twice"),
        (("--to", "weaviate", "model.json", "--set", "sise=1"), "weaviate: expected a setting of"),
        (("--to", "weaviate", "model.json", "--set", "size=ten"), "size: expected a positive integer"),
        (("--to", "weaviate", "model.json", "--format", "json"), "--format belongs to --list"),
        (("--to", "weaviate", "model.json", "-o", "nowhere/x"), "expected a folder to write into"),
        (("--to", "weaviate", "model.json", "bm25.trec"), "expected runs named bm25, dense; missing dense"),
        (("--list", "--to", "weaviate"), "--list takes only a model and --format"),
        (("--list", "model.json", "bm25.trec"), "--list takes only a model and --format"),
    ],
)
def test_refusals(genm, learned, words, message):
    assert message in genm("export", *words).fault


def test_a_refused_export_writes_no_file(genm, learned, tmp_path):
    path = tmp_path / "out.json"
    assert genm("export", "--to", "elasticsearch", learned, "-o", path).code == 2
    assert not path.exists()


def test_the_list_names_every_engine(genm):
    rows = json.loads(genm("export", "--list", "--format", "json").out)
    assert [row["name"] for row in rows] == list(targets())
    assert rows[0]["normalisers"] == ["minmax", "l2_norm", "none"]
    lines = genm("export", "--list", "--format", "tsv").out.splitlines()
    assert [line.split("\t")[0] for line in lines] == list(targets())
    table = genm("export", "--list").out
    assert re.search(
        r"^weaviate +Weaviate hybrid search +relativeScoreFusion; rankedFusion +exactly 2 +0 or more$", table, re.M
    )


def test_the_list_tells_who_takes_a_model_exactly(genm, learned):
    rows = json.loads(genm("export", "--list", learned, "--format", "json").out)
    assert [row["name"] for row in rows if row["exact"]] == ["weaviate", "pgvector", "sqlite", "llamaindex"]
    assert all(row["exact"] == (not row["reasons"]) for row in rows)
    for row in rows:  # and so does the verb itself
        assert genm("export", "--to", row["name"], learned).code == (0 if row["exact"] else 2)
    tsv = [line.split("\t") for line in genm("export", "--list", learned, "--format", "tsv").out.splitlines()]
    assert [cells[6] for cells in tsv] == ["yes" if row["exact"] else "no" for row in rows]
    table = genm("export", "--list", learned).out
    assert re.search(r"^pgvector +yes$", table, re.M)
    assert re.search(r"^redis +no +the normaliser of bm25 and dense is minmax.*$", table, re.M)


def test_two_rankers_of_one_kind_are_no_exact_hybrid(genm, learned, tmp_path):
    from dataclasses import replace

    save_model(replace(load_model(learned), rankers=("dense", "denser")), tmp_path / "vectors.json")
    rows = {
        row["name"]: row
        for row in json.loads(genm("export", "--list", tmp_path / "vectors.json", "--format", "json").out)
    }
    assert not rows["weaviate"]["exact"]
    assert "one text and one vector query" in rows["weaviate"]["reasons"][0]
    typed = ("--set", "dense.type=text", "--set", "dense.field=body")
    assert genm("export", "--to", "weaviate", tmp_path / "vectors.json", *typed).code == 0
