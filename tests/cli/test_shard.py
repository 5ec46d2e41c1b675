"""`genm shard`, and the commands that read a score table."""

import json

import pytest

from genm.model import Model, save_model
from genm.normalizers import Normalizer

pytest.importorskip("pyarrow")

RUNS = ("bm25=bm25.trec", "dense=dense.trec")


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A model file for the runs of the sample."""
    path, minmax = tmp_path_factory.mktemp("model") / "model.json", Normalizer("minmax")
    save_model(
        Model(
            rankers=("bm25", "dense"), weights=(0.3, 0.7), normalizers=(minmax, minmax), depths=(None, None),
            method="newton", measure="AP",
        ),
        path,
    )  # fmt: skip
    return path


def test_a_table_gives_what_the_runs_give(genm, sample, learned):
    made = genm("shard", *RUNS, "--qrels", "qrels.txt", "-o", "table", "--dtype", "float64", "--shard-size", "20K")
    assert (made.code, made.err) == (0, "wrote table\n")
    assert "Score table with judgments" in made.out
    assert genm("fuse", "--model", learned, *RUNS, "-o", "runs.trec").code == 0
    assert genm("fuse", "--model", learned, "--table", "table", "-o", "table.trec").code == 0
    assert (sample / "table.trec").read_bytes() == (sample / "runs.trec").read_bytes()
    expected = json.loads(genm("evaluate", "qrels.txt", "model=runs.trec", "--format", "json").out)
    found = json.loads(genm("evaluate", "--table", "table", "--model", learned, "--format", "json").out)
    assert found["model"]["mean"] == expected["model"]["mean"]


def test_formats_and_notes(genm, sample):
    with open("bm25.trec", "a", encoding="utf-8") as file:
        file.write("no-such-query Q0 d1 1 1.0 bm25\n")
    made = genm("shard", *RUNS, "--qrels", "qrels.txt", "-o", "table", "--format", "json")
    facts = json.loads(made.out)
    assert (facts["rankers"], facts["judged"], facts["dtype"], facts["shards"]) == (
        ["bm25", "dense"],
        True,
        "float32",
        1,
    )
    assert "have no judgments and are skipped, the first is 'no-such-query'" in made.err
    rows = genm("shard", *RUNS, "-o", "unjudged", "--format", "tsv", "--shard-size", "10K").out.splitlines()
    assert [row.split("\t")[0] for row in rows][:2] == ["shard-000000.parquet", "shard-000001.parquet"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--shard-size", "big"), "--shard-size big: expected a number of bytes, such as 64M or 2G"),
        (("--memory", "0"), "--memory 0: expected a number of bytes"),
        (("--normalize", "mimax"), "Did you mean minmax"),
        (("-o", "."), "found other files, such as bm25.trec. Name another folder"),
        (("--qrels", "no.txt"), "no.txt: expected a readable file; found no such file"),
    ],
)
def test_what_is_refused(genm, sample, options, message):
    assert message in genm("shard", *RUNS, "-o", "table", *options).fault
    assert not (sample / "table").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("evaluate",), "Missing argument 'QRELS'"),
        (("evaluate", "--table", "t"), "expected --table and --model together"),
        (
            ("evaluate", "qrels.txt", "--table", "t", "--model", "m"),
            "--table takes the place of judgments and runs",
        ),
        (("fuse", "--method", "rrf"), "Missing argument 'RUN'"),
        (("fuse", "--table", "t", "--method", "rrf"), "expected --table and --model together"),
        (("fuse", "--table", "t", "--model", "m", "bm25.trec"), "--table takes the place of judgments and runs"),
        (("evaluate", "--table", "t", "--model", "m"), "t: expected a score table; found no manifest.json in it"),
    ],
)
def test_calls_that_contradict_themselves(genm, sample, command, message):
    assert message in genm(*command).fault
