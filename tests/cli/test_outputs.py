"""No command writes over what it reads, under whatever name; nothing else is lost either."""

import os

import pytest

pytestmark = pytest.mark.usefixtures("little_evidence")

RUNS = ("bm25.trec", "dense.trec")
COMMANDS = {
    "fuse": (("fuse", "--method", "rrf", *RUNS, "-o"), RUNS),
    "fuse a model": (("fuse", "--model", "model.json", *RUNS, "-o"), (*RUNS, "model.json")),
    "fit": (
        ("fit", "--qrels", "qrels.txt", "--query-weights", "w.txt", *RUNS, "-o"), (*RUNS, "qrels.txt", "w.txt")
    ),
    "fit, tested": (("fit", "--qrels", "qrels.txt", "--test-qrels", "t.txt", *RUNS, "-o"), ("t.txt",)),
    "update": (("update", "--model", "online.json", "--qrels", "qrels.txt", *RUNS, "-o"), (*RUNS, "qrels.txt")),
    "export": (("export", "--to", "redis", "--approximate", "model.json", *RUNS, "-o"), ("model.json", *RUNS)),
    "report": (
        (*("report", "--model", "model.json", "--qrels", "qrels.txt", "--texts", "d.tsv"),
         *("--query-texts", "q.tsv", *RUNS, "-o")),
        ("model.json", "model.evidence.json", "qrels.txt", "d.tsv", "q.tsv", *RUNS),
    ),
    "explain": (
        ("explain", "--model", "model.json", "--qrels", "qrels.txt", *RUNS, "--plot"),
        ("model.json", "qrels.txt", *RUNS),
    ),
}  # fmt: skip
CASES = [(name, file) for name, (_, files) in COMMANDS.items() for file in files]


@pytest.fixture(scope="module")
def trained(made_up, genm, little_evidence, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    for name in ("bm25.trec", "dense.trec", "qrels.txt"):
        (folder / name).write_bytes((made_up / name).read_bytes())
    for name, text in (("w.txt", "1 1\n"), ("d.tsv", "d1\ttext\n"), ("q.tsv", "1\ttext\n")):
        (folder / name).write_text(text)
    (folder / "t.txt").write_bytes((made_up / "qrels.txt").read_bytes())
    here = os.getcwd()
    os.chdir(folder)
    try:
        assert genm("fit", "--qrels", "qrels.txt", *RUNS, "-o", "model.json").code == 0
        assert genm("fit", "--method", "online", "--qrels", "qrels.txt", *RUNS, "-o", "online.json").code == 0
    finally:
        os.chdir(here)
    return folder


@pytest.fixture
def folder(trained, tmp_path, monkeypatch):
    for path in trained.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("command", "file"), CASES, ids=[f"{c}: {f}" for c, f in CASES])
def test_an_output_that_is_read_is_refused(folder, genm, command, file):
    (folder / "link").symlink_to(file)
    (folder / "hard").hardlink_to(folder / file)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for output in (file, "link", "hard", f"./{file}"):
        fault = genm(*COMMANDS[command][0], output).fault
        assert "expected a file that is not read here; found the same file as" in fault
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_evidence_beside_a_model_is_an_output_too(folder, genm):
    os.rename(folder / "bm25.trec", folder / "m.evidence.json")
    before = (folder / "m.evidence.json").read_bytes()
    outcome = genm("fit", "--qrels", "qrels.txt", "bm25=m.evidence.json", "dense.trec", "-o", "m.json")
    assert "m.evidence.json: expected a file that is not read here" in outcome.fault
    assert (folder / "m.evidence.json").read_bytes() == before


def test_a_model_is_updated_in_place(folder, genm):
    for more in ((), ("-o", "online.json")):
        outcome = genm("update", "--model", "online.json", "--qrels", "qrels.txt", *RUNS, *more)
        assert outcome.code == 0, outcome.err


def test_a_redirected_input_is_an_input(folder, process):
    with (folder / "bm25.trec").open("rb") as stream:
        done = process("fuse", "--method", "rrf", "bm25=-", "dense.trec", "-o", "bm25.trec", stdin=stream)
        _, err = done.communicate()
    assert done.returncode == 2
    assert b"found the same file as standard input" in err


def test_ranking_does_not_overwrite_the_texts_it_reads(folder, genm):
    (folder / "docs.tsv").write_text("d1\tships\nd2\ttrains\n")
    (folder / "queries.tsv").write_text("q1\tships\n")
    fault = genm("rank", "docs.tsv", "--queries", "queries.tsv", "--rankers", "tfidf", "--texts", "-o", ".").fault
    assert "docs.tsv: expected a file that is not read here" in fault
    assert (folder / "docs.tsv").read_text() == "d1\tships\nd2\ttrains\n"


def test_no_temporary_file_is_left(folder, genm):
    assert genm("fuse", "--method", "rrf", *RUNS, "-o", "out.trec").code == 0
    assert not [path for path in folder.iterdir() if path.suffix == ".part"]
