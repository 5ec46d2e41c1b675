import json


def test_without_judgments(genm, sample):
    found = genm("inspect", "bm25.trec", "dense.trec")
    assert (found.code, found.err) == (0, "")
    lines = found.out.splitlines()
    assert lines[0] == "30 queries; raw scores"
    assert lines[2].split() == ["ranker", "queries", "rows", "lowest", "median", "highest", "ties", "missing"]
    assert lines[4].split()[:3] == ["bm25", "30", "750"]
    assert "overlap of the top 10" in found.out
    assert "judged" not in found.out


def test_with_judgments(genm, sample):
    with (sample / "qrels.txt").open("a") as file:
        file.write("31 0 d001 0\n")
    found = genm("inspect", "bm25.trec", "dense.trec", "--qrels", "qrels.txt")
    assert "judged share at      5     10     20    100\n" in found.out
    assert "\n1 query has no relevant document.\n" in found.out
    assert "note: run 'bm25' returned nothing for 1 of 31 queries" in found.err


def test_json_and_tsv_hold_the_same(genm, sample):
    words = ("inspect", "bm25.trec", "dense.trec", "--qrels", "qrels.txt", "--format")
    facts = json.loads(genm(*words, "json").out)
    assert facts["queries"] == 30
    assert facts["rankers"]["bm25"]["rows"] == 750
    assert 0 < facts["overlap"]["10"]["bm25/dense"] < 1
    cells = {tuple(line.split("\t")[:2]): line.split("\t")[2] for line in genm(*words, "tsv").out.splitlines()}
    assert cells["all", "queries"] == "30"
    assert float(cells["rankers.bm25", "highest_score"]) == facts["rankers"]["bm25"]["highest_score"]
    assert float(cells["rankers.dense.judged", "5"]) == facts["rankers"]["dense"]["judged"]["5"]
    assert float(cells["overlap.10", "bm25/dense"]) == facts["overlap"]["10"]["bm25/dense"]


def test_one_run_has_no_overlap(genm, sample):
    found = genm("inspect", "bm25.trec")
    assert found.code == 0
    assert "overlap" not in found.out


def test_depth_cuts(genm, sample):
    facts = json.loads(
        genm("inspect", "bm25.trec", "dense.trec", "--depth", "bm25=25,dense=2", "--format", "json").out
    )
    whole = json.loads(genm("inspect", "bm25.trec", "dense.trec", "--format", "json").out)
    assert facts["rankers"]["dense"]["missing"] > whole["rankers"]["dense"]["missing"]


def test_standard_input_serves_once(genm, sample):
    assert "can be read only once" in genm("inspect", "a=-", "--qrels", "-").fault
