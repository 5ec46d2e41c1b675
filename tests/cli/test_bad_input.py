"""Whatever is wrong, whichever verb meets it: exit code 2, one line on standard error and nothing else."""

import gzip

import pytest

VERBS = {
    "evaluate": ("evaluate", "qrels.txt", "{bad}"),
    "compare": ("compare", "qrels.txt", "bm25.trec", "bad={bad}"),
    "inspect": ("inspect", "{bad}"),
    "fuse": ("fuse", "--method", "rrf", "bm25.trec", "bad={bad}"),
    "fit": ("fit", "--qrels", "qrels.txt", "bm25.trec", "bad={bad}"),
}
RUNS = {
    "missing": (None, "found no such file"),
    "empty": (b"", "bad.trec: expected"),
    "columns": (b"1 Q0 d001 1 2.5\n", "bad.trec:1: expected"),
    "not a number": (b"1 Q0 d001 1 high x\n", "bad.trec:1: expected"),
    "nan": (b"1 Q0 d001 1 nan x\n", "bad.trec:1: expected"),
    "too large": (b"1 Q0 d001 1 1e400 x\n", "bad.trec:1: expected"),
    "too small": (b"1 Q0 d001 1 1e-400 x\n", "bad.trec:1: expected"),
    "twice": (b"1 Q0 d001 1 2 x\n1 Q0 d001 2 1 x\n", "bad.trec:2: expected"),
    "latin-1": (b"1 Q0 caf\xe9 1 2 x\n", "bad.trec:1: expected UTF-8"),
    "cut gzip": (gzip.compress(b"1 Q0 d001 1 2 x\n" * 99)[:-12], "bad.trec: expected complete gzip data"),
    "zip": (b"PK\x03\x04....", "found a zip archive"),
    "control characters": (b"1 Q0 \x1b[31mred\x1b[0m x\n", "bad.trec:1: expected"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", RUNS)
def test_runs(genm, sample, verb, kind):
    content, message = RUNS[kind]
    if content is not None:
        (sample / "bad.trec").write_bytes(content)
    fault = genm(*(word.format(bad="bad.trec") for word in VERBS[verb])).fault
    assert fault.startswith("genm: format: ")
    assert message in fault
    assert "\x1b" not in fault


@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_in_place_of_a_run(genm, sample, verb):
    (sample / "runs").mkdir()
    assert (
        "runs: expected a readable file; found a folder" in genm(*(w.format(bad="runs") for w in VERBS[verb])).fault
    )


@pytest.mark.parametrize("verb", ["evaluate", "compare", "fit"])
def test_no_query_in_common(genm, sample, verb):
    (sample / "bad.trec").write_text("Q1 Q0 d001 1 2 x\n")
    fault = genm(*(word.format(bad="bad.trec") for word in VERBS[verb])).fault
    assert fault.startswith("genm: input: ")
    assert "in common" in fault


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no-qrels.txt: expected a readable file; found no such file"),
        (b"", "expected"),
        (b"1 0 d001\n", "no-qrels.txt:1: expected"),
        (b"1 0 d001 0.5\n", "no-qrels.txt:1: expected"),
        (b"1 0 d001 1\n1 0 d001 2\n", "no-qrels.txt:2: expected"),
    ],
)
@pytest.mark.parametrize(
    "words",
    [("evaluate", "no-qrels.txt", "bm25.trec"), ("inspect", "bm25.trec", "--qrels", "no-qrels.txt")],
    ids=["evaluate", "inspect"],
)
def test_judgments(genm, sample, words, content, message):
    if content is not None:
        (sample / "no-qrels.txt").write_bytes(content)
    fault = genm(*words).fault
    assert fault.startswith("genm: format: ")
    assert message in fault


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nope",), "No such command 'nope'. See: genm --help"),
        (("evalute", "a"), "Did you mean 'evaluate'?"),
        (("--nope",), "No such option: --nope. See: genm --help"),
        (("evaluate",), "Missing argument 'QRELS'. See: genm evaluate --help"),
        (("evaluate", "qrels.txt"), "Missing argument 'RUN'. See: genm evaluate --help"),
        (("evaluate", "qrels.txt", "bm25.trec", "--nope"), "No such option: --nope"),
        (("evaluate", "qrels.txt", "bm25.trec", "-m"), "'-m' requires an argument"),
        (("evaluate", "qrels.txt", "bm25.trec", "--format", "xml"), "'xml' is not one of 'table', 'tsv', 'json'."),
        (("evaluate", "qrels.txt", "bm25.trec", "--duplicates", "min"), "'min' is not one of 'error', 'max'"),
        (("compare", "qrels.txt", "bm25.trec", "dense.trec", "--seed", "x"), "Invalid value for '--seed'"),
        (("compare", "qrels.txt", "bm25.trec", "dense.trec", "--seed", "-1"), "Invalid value for '--seed'"),
        (
            ("fuse", "--method", "median", "bm25.trec"),
            "Invalid value for '--method': 'median' is not one of 'sum',",
        ),
        (("fuse", "--method", "rrf", "--top", "0", "bm25.trec"), "Invalid value for '--top'"),
        (("update", "bm25.trec"), "Missing option '--model'"),
        (("rank",), "Missing argument 'COLLECTION'"),
        (("collections", "get"), "Missing argument 'NAME'. See: genm collections get --help"),
    ],
)
def test_calls(genm, sample, words, message):
    fault = genm(*words).fault
    assert fault.startswith("genm: usage: ")
    assert message in fault


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("evaluate", "qrels.txt", "bm25.trec", "-m", "MAPP"), "measure 'MAPP' is not known. Did you mean MAP"),
        (("evaluate", "qrels.txt", "bm25.trec", "-m", ","), "expected at least one, found none"),
        (("evaluate", "qrels.txt", "bm25.trec", "-m", "P"), "expected a cutoff"),
        (("evaluate", "qrels.txt", "bm25.trec", "x/bm25.trec"), "two runs are called 'bm25'"),
        (("evaluate", "qrels.txt", "a=bm25.trec", "a=dense.trec"), "two runs are called 'a'"),
        (("evaluate", "qrels.txt", "=bm25.trec"), "expected NAME=FILE; found no name"),
        (("evaluate", "qrels.txt", "bm25="), "expected NAME=FILE; found no file"),
        (("evaluate", "-", "-"), "standard input (-) can be read only once"),
        (("inspect", "bm25.trec", "--depth", "0"), "--depth 0: expected a positive integer"),
    ],
)
def test_values(genm, sample, words, message):
    fault = genm(*words).fault
    assert fault.startswith("genm: input: ")
    assert message in fault
