import json

import pytest

from genm.cli.compare import Corrections
from genm.formatting import p_text


def test_table(genm, sample):
    found = genm("compare", "qrels.txt", "bm25.trec", "dense.trec", "-m", "AP,P@5")
    assert found.code == 0
    title, empty, header, _, *rows = found.out.splitlines()
    assert (title, empty) == ("Against bm25, 30 queries", "")
    assert header.split() == ["run", "measure", "mean", "diff", ".95", "interval", "+/-/=", "wilcox", "t", "random"]
    assert [row.split()[:2] for row in rows[:2]] == [["dense", "AP"], ["dense", "P@5"]]
    star = "* is a significant difference: corrected p of the t-test below 0.05. Intervals are per row."
    assert found.err == f"p-values are two-sided and corrected by Holm's method. {star}\n"


def test_one_star_by_the_interval(genm, tmp_path, monkeypatch):
    """A star marks the difference whose interval leaves out 0, whatever other tests say."""
    monkeypatch.chdir(tmp_path)
    queries = range(12)
    (tmp_path / "q").write_text("".join(f"{q} 0 a 1\n" for q in queries))
    (tmp_path / "x.trec").write_text("".join(f"{q} Q0 b 1 2 x\n{q} Q0 a 2 1 x\n" for q in queries))
    (tmp_path / "y.trec").write_text("".join(f"{q} Q0 a 1 1 y\n" for q in queries))
    found = genm("compare", "q", "x.trec", "y.trec", "-m", "AP", "--tests", "wilcoxon")
    assert "+0.5000* +0.500 +0.500" in " ".join(found.out.split())
    assert found.out.count("*") == 1
    assert found.err.endswith("* is a significant difference: the interval leaves out 0.\n")
    outcome = json.loads(genm("compare", "q", "x.trec", "y.trec", "-m", "AP", "--format", "json").out)
    assert [one["outcome"] for one in outcome["contrasts"]] == ["better"]


def test_json_and_tsv_agree(genm, sample):
    words = ("compare", "qrels.txt", "bm25.trec", "dense.trec", "-m", "AP", "--baseline", "dense")
    found = json.loads(genm(*words, "--format", "json").out)
    (contrast,) = found["contrasts"]
    assert (found["baseline"], found["queries"], contrast["run"]) == ("dense", 30, "bm25")
    assert contrast["difference"] == pytest.approx(contrast["mean"] - contrast["baseline_mean"])
    assert contrast["better"] + contrast["worse"] + contrast["equal"] == 30
    header, row = (line.split("\t") for line in genm(*words, "--format", "tsv").out.splitlines())
    assert header == ["run", "measure", "mean", "difference", "low", "high", "wilcoxon", "t", "randomization"]
    assert row[:2] == ["bm25", "AP"]
    assert float(row[3]) == pytest.approx(contrast["difference"], rel=1e-5)
    assert [float(cell) for cell in row[4:6]] == pytest.approx(contrast["interval"], rel=1e-5)
    assert float(row[6]) == pytest.approx(contrast["p_corrected"]["wilcoxon"], rel=1e-5)


def test_options_reach_the_tests(genm, sample):
    words = ("compare", "qrels.txt", "bm25.trec", "dense.trec", "-m", "AP,RR", "--format", "json")
    usual = json.loads(genm(*words).out)
    changed = json.loads(
        genm(
            *words, "--tests", "t,wilcoxon", "--correction", "none", "--confidence", "0.5", "--resamples", "50"
        ).out
    )
    seeded = json.loads(genm(*words, "--seed", "1").out)
    assert list(changed["contrasts"][0]["p"]) == ["t", "wilcoxon"]
    assert changed["contrasts"][0]["p"] == changed["contrasts"][0]["p_corrected"]
    assert usual["contrasts"][0]["p"] != usual["contrasts"][0]["p_corrected"]
    wide, narrow = (found["contrasts"][0]["interval"] for found in (usual, changed))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert seeded["contrasts"][0]["interval"] == wide
    drawn = [found["contrasts"][0]["p"]["randomization"] for found in (usual, seeded)]
    assert drawn[0] != drawn[1]


def test_a_single_query_has_no_interval(genm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q").write_text("1 0 a 1\n")
    (tmp_path / "x.trec").write_text("1 Q0 a 1 1 x\n")
    (tmp_path / "y.trec").write_text("1 Q0 b 1 2 y\n1 Q0 a 2 1 y\n")
    found = genm("compare", "q", "x.trec", "y.trec", "-m", "AP", "--format", "json")
    assert json.loads(found.out)["contrasts"][0]["interval"] == [None, None]
    assert "note: only one query is compared" in found.err
    assert "nan" not in genm("compare", "q", "x.trec", "y.trec", "-m", "AP").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("qrels.txt", "bm25.trec"), "expected at least two runs, found 1"),
        (("qrels.txt", "bm25.trec", "dense.trec", "--baseline", "x"), "expected one of bm25, dense; found 'x'"),
        (
            ("qrels.txt", "bm25.trec", "dense.trec", "--tests", "sign"),
            "expected a list of wilcoxon, t, randomization",
        ),
        (("qrels.txt", "bm25.trec", "dense.trec", "--confidence", "95"), "expected a number between 0 and 1"),
        (("qrels.txt", "bm25.trec", "dense.trec", "--resamples", "0"), "expected 1 to 10,000,000"),
    ],
)
def test_refusals(genm, sample, words, message):
    assert message in genm("compare", *words).fault


def test_corrections_are_those_of_the_library():
    from typing import get_args

    from genm.evaluate.compare import Correction

    assert tuple(c.value for c in Corrections) == get_args(Correction)


@pytest.mark.parametrize(
    ("p", "text"),
    [(1.0, "1"), (0.5, ".5000"), (0.04999, ".0500"), (0.0001, ".0001"), (0.00009, "<.0001"), (0.0, "<.0001")],
)
def test_p_values_as_people_write_them(p, text):
    assert p_text(p) == text
