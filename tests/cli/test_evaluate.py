import gzip
import json

import pytest
import zstandard

QRELS = "1 0 a 1\n1 0 b 0\n1 0 c 1\n2 0 a 1\n"
RUN = "1 Q0 a 1 9 x\n1 Q0 b 2 8 x\n1 Q0 c 3 7 x\n2 Q0 b 1 5 x\n2 Q0 a 2 4 x\n"
"""AP: (1/1 + 2/3) / 2 = .8333 and 1/2; RR: 1 and 1/2."""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.txt").write_text(QRELS, encoding="utf-8")
    (tmp_path / "x.trec").write_text(RUN, encoding="utf-8")
    return tmp_path


def test_tsv_is_what_trec_eval_prints(genm, files):
    found = genm("evaluate", "qrels.txt", "x.trec", "-m", "AP,RR", "--format", "tsv")
    assert (found.code, found.err) == (0, "")
    assert found.out == "AP\tall\t0.6667\nRR\tall\t0.7500\n"


def test_per_query(genm, files):
    found = genm("evaluate", "qrels.txt", "x.trec", "-m", "AP", "-q", "--format", "tsv")
    assert found.out == "AP\t1\t0.8333\nAP\t2\t0.5000\nAP\tall\t0.6667\n"


def test_several_runs_are_told_apart(genm, files):
    found = genm("evaluate", "qrels.txt", "x.trec", "y=x.trec", "-m", "RR", "--format", "tsv")
    assert found.out == "runid\tall\tx\nRR\tall\t0.7500\nrunid\tall\ty\nRR\tall\t0.7500\n"


def test_table(genm, files):
    found = genm("evaluate", "qrels.txt", "x.trec", "-m", "AP,RR", "-q")
    assert found.out == (
        "query_id  run      AP      RR\n"
        "────────  ───  ──────  ──────\n"
        "1         x    0.8333  1.0000\n"
        "2         x    0.5000  0.5000\n"
        "\n"
        "Mean over 2 judged queries\n"
        "\n"
        "run      AP      RR\n"
        "───  ──────  ──────\n"
        "x    0.6667  0.7500\n"
        "\n"
    )


def test_json(genm, files):
    found = json.loads(genm("evaluate", "qrels.txt", "x.trec", "-m", "RR", "-q", "--format", "json").out)
    assert found == {
        "x": {"mean": {"RR": 0.75}, "queries": 2, "per_query": {"1": {"RR": 1.0}, "2": {"RR": 0.5}}, "notes": []}
    }


@pytest.mark.parametrize(
    "lists", [["-m", "AP,RR,P@5"], ["-m", "AP", "-m", "RR,P@5"], ["--measures", "AP,RR", "-m", "P@5"]]
)
def test_lists_are_split_and_repeated(genm, files, lists):
    found = genm("evaluate", "qrels.txt", "x.trec", "--format", "tsv", *lists)
    assert [line.split("\t")[0] for line in found.out.splitlines()] == ["AP", "RR", "P@5"]


def test_measures_without_being_asked(genm, files):
    found = genm("evaluate", "qrels.txt", "x.trec", "--format", "tsv")
    assert [line.split("\t")[0] for line in found.out.splitlines()] == ["AP", "P@10", "nDCG@10", "RR"]


def test_a_measure_with_commas_in_brackets(genm, files):
    found = genm("evaluate", "qrels.txt", "x.trec", "--format", "tsv", "-m", "P(rel=1,judged_only=True)@2,RR")
    assert found.out.splitlines()[0].split("\t") == ["P(judged_only=True)@2", "all", "0.5000"]


@pytest.mark.parametrize("which", ["run", "qrels"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.ZstdCompressor().compress])
def test_standard_input_packed_or_not(genm, files, which, pack):
    words = ("qrels.txt", "x=-") if which == "run" else ("-", "x.trec")
    content = RUN if which == "run" else QRELS
    found = genm("evaluate", *words, "-m", "AP", "--format", "tsv", stdin=pack(content.encode()))
    assert (found.code, found.out) == (0, "AP\tall\t0.6667\n")


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstandard.ZstdCompressor().compress)]
)
def test_packed_files(genm, files, suffix, pack):
    (files / f"x.trec{suffix}").write_bytes(pack(RUN.encode()))
    (files / f"qrels.txt{suffix}").write_bytes(pack(QRELS.encode()))
    found = genm("evaluate", f"qrels.txt{suffix}", f"x.trec{suffix}", "-m", "AP", "--format", "tsv")
    assert found.out == "AP\tall\t0.6667\n"


def test_what_was_counted_or_set_aside_is_a_note(genm, files):
    (files / "y.trec").write_text("1 Q0 a 1 9 x\n7 Q0 a 1 9 x\n", encoding="utf-8")
    found = genm("evaluate", "qrels.txt", "y.trec", "-m", "AP", "--format", "tsv")
    assert found.out == "AP\tall\t0.2500\n"
    assert found.err.count("note: run y: 1 of 2") == 2
    skipped = genm("evaluate", "qrels.txt", "y.trec", "-m", "AP", "--format", "tsv", "--skip-missing")
    assert skipped.out == "AP\tall\t0.5000\n"


def test_runs_of_different_queries_say_so_in_the_title(genm, files):
    (files / "y.trec").write_text("1 Q0 a 1 9 x\n", encoding="utf-8")
    found = genm("evaluate", "qrels.txt", "x.trec", "y.trec", "--skip-missing")
    assert found.out.startswith("Mean over 1 to 2 judged queries\n")


def test_repairs_are_asked_for_and_said(genm, files):
    (files / "y.trec").write_text(RUN + "2 Q0 a 3 9 x\n", encoding="utf-8")
    assert "genm: format: y.trec:6:" in genm("evaluate", "qrels.txt", "y.trec").fault
    found = genm("evaluate", "qrels.txt", "y.trec", "-m", "RR", "--format", "tsv", "--duplicates", "max")
    assert found.out == "RR\tall\t1.0000\n"
    assert found.err.startswith("note: y.trec")
    found = genm("evaluate", "qrels.txt", "y.trec", "-m", "RR", "--format", "tsv", "--duplicates", "first")
    assert found.out == "RR\tall\t0.7500\n"
    (files / "y.trec").write_text(RUN.replace("b 1 5 x", "b 1 nan x"), encoding="utf-8")
    assert "genm: format: y.trec:4:" in genm("evaluate", "qrels.txt", "y.trec").fault
    found = genm("evaluate", "qrels.txt", "y.trec", "-m", "RR", "--format", "tsv", "--lenient")
    assert found.out == "RR\tall\t1.0000\n"
    assert "note: y.trec" in found.err


def test_ids_are_text_whatever_they_look_like(genm, files):
    (files / "q.csv").write_text('query_id,doc_id,relevance\n"a\tb",d,1\n"[bold]🦊[/bold]",d,1\n', encoding="utf-8")
    (files / "r.csv").write_text('query_id,doc_id,score\n"a\tb",d,1\n"[bold]🦊[/bold]",d,1\n', encoding="utf-8")
    found = genm("evaluate", "q.csv", "r.csv", "-m", "AP", "-q", "--format", "tsv")
    assert found.out == "AP\ta\\tb\t1.0000\nAP\t[bold]🦊[/bold]\t1.0000\nAP\tall\t1.0000\n"
    table = genm("evaluate", "q.csv", "r.csv", "-m", "AP", "-q").out
    assert "a\\tb             r    1.0000\n[bold]🦊[/bold]  r    1.0000\n" in table
    named = genm("evaluate", "q.csv", "[red]x=r.csv", "-m", "AP")
    assert "\n[red]x  1.0000\n" in named.out


def test_what_holds_for_every_run_is_said_once(genm, sample):
    with (sample / "qrels.txt").open("a") as file:
        file.write("31 0 d001 0\n")
    found = genm("evaluate", "qrels.txt", "bm25.trec", "dense.trec", "-m", "AP")
    assert found.err.count("no relevant document") == 1
    assert found.err.count("judged queries have no documents") == 2
    found = genm("compare", "qrels.txt", "bm25.trec", "dense.trec", "-m", "AP")
    assert found.err.count("no relevant document") == 1
