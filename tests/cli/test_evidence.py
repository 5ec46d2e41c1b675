import pytest

RANKERS = ("bm25.trec", "dense.trec")


def test_table_fits_80_columns_and_says_what_it_means(genm, sample):
    found = genm("fit", "--qrels", "qrels.txt", *RANKERS, "--method", "bat", "--folds", "3")
    assert found.code == 0
    assert "30 queries, 3-fold cross-validation\n" in found.out
    table = [line for line in found.out.splitlines() if line and "ranker (" not in line]
    assert max(map(len, table)) <= 80
    assert "ranker" in found.out.splitlines()[-2]


def test_the_title_says_that_queries_are_weighted(genm, sample):
    words = ("fit", "--qrels", "qrels.txt", *RANKERS, "--method", "bat", "--folds", "3", "--query-weights")
    (sample / "weights.tsv").write_text("1\t2\n")
    assert "30 weighted queries, 3-fold" in genm(*words, "weights.tsv").out
    (sample / "weights.tsv").write_text("1\t1\n")
    assert "30 queries, 3-fold" in genm(*words, "weights.tsv").out


def test_tsv(genm, sample):
    found = genm("fit", "--qrels", "qrels.txt", *RANKERS, "--method", "bat", "--folds", "2", "--format", "tsv")
    cells = {tuple(line.split("\t")[:2]): float(line.split("\t")[2]) for line in found.out.splitlines()}
    assert cells["weight", "bm25"] + cells["weight", "dense"] == pytest.approx(1.0)
    assert ("train.AP", "learned weights") in cells
    assert cells["gain", "uniform weights"] == pytest.approx(
        cells["cv.AP", "learned weights"] - cells["cv.AP", "uniform weights"], abs=2e-6
    )
    assert 0 <= cells["gain.p", "best single ranker"] <= 1
