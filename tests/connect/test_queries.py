import json

import numpy as np
import polars as pl
import pytest

from genm.connect.queries import read_queries, read_vectors
from genm.errors import FormatError, GenmError, InputError


def written(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_queries_come_from_lines_tables_json_and_topics(tmp_path):
    wanted = {"q1": "red cars", "q2": 'say "hi" {x}'}
    tab = written(tmp_path / "a.tsv", "q1\tred cars", 'q2\tsay "hi" {x}')
    jsonl = written(tmp_path / "b.jsonl", *(json.dumps({"_id": k, "text": t}) for k, t in wanted.items()))
    for source in (tab, jsonl, wanted):
        assert dict(read_queries(source).texts) == wanted


def test_a_folder_in_beir_form_and_judged_queries_only(tmp_path):
    written(tmp_path / "queries.jsonl", '{"_id": "1", "text": "a"}', '{"_id": "2", "text": "b"}')
    qrels = written(tmp_path / "qrels.txt", "2 0 d1 1")
    found = read_queries(tmp_path, qrels=qrels)
    assert dict(found.texts) == {"2": "b"}
    assert "1 queries without a judgment" in found.notes[-1].text
    with pytest.raises(InputError, match="none that has one of their ids"):
        read_queries({"7": "x"}, qrels=qrels)


@pytest.mark.parametrize(
    "lines",
    [
        ["red cars", "blue  cars", "red cars", ""],
        ['{"time": 1, "q": "red cars"}', '{"q": "blue cars"}', '{"q": "red cars"}'],
        ["time\tquery", "1\tred cars", "2\tblue cars", "3\tred cars"],
    ],
)
def test_a_log_gives_distinct_queries_with_ids_of_their_texts(tmp_path, lines):
    log = written(tmp_path / "searches.log", *lines)
    found = read_queries(log, form="log")
    assert list(found.texts.values()) == ["red cars", "blue cars"]
    assert list(read_queries(log, form="log", top=1).texts.values()) == ["red cars"]
    longer = written(tmp_path / "longer.log", "zebra", *lines) if not lines[0].startswith(("{", "time")) else log
    assert set(found.texts) <= set(read_queries(longer, form="log").texts)


def test_a_log_line_without_a_query_is_named(tmp_path):
    log = written(tmp_path / "searches.log", '{"q": "a"}', '{"user": 3}')
    with pytest.raises(FormatError, match=r"searches\.log:2: expected a JSON object with one of"):
        read_queries(log, form="log")


def test_wrong_calls_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"queries\.format"):
        read_queries({"1": "a"}, form="csv")
    with pytest.raises(InputError, match=r"queries\.top"):
        read_queries({"1": "a"}, top=3)
    with pytest.raises(InputError, match="at least one query"):
        read_queries({})
    with pytest.raises(InputError, match=r"no queries\.jsonl"):
        read_queries(tmp_path)
    with pytest.raises(InputError, match="expected text; found int"):
        read_queries({"1": 3})


QUERIES = {"q1": "a", "q2": "b"}
WANTED = {"q1": (0.5, 1.0), "q2": (2.0, -1.0)}


def encode(texts):
    return [{"a": (0.5, 1.0), "b": (2.0, -1.0)}[text] for text in texts]


def test_vectors_come_from_every_kind_of_source(tmp_path, monkeypatch):
    rows = np.array(list(WANTED.values()), np.float32)
    np.save(tmp_path / "v.npy", rows)
    np.savez(tmp_path / "v.npz", ids=np.array(["q2", "q1"]), vectors=rows[::-1])
    written(tmp_path / "v.jsonl", *(json.dumps({"_id": k, "vector": v}) for k, v in WANTED.items()))
    pl.DataFrame({"id": list(WANTED), "vector": [list(v) for v in WANTED.values()]}).write_parquet(
        tmp_path / "v.pq"
    )
    written(
        tmp_path / "my_encoder.py",
        "def run(texts):",
        "    return [[0.5, 1] if t == 'a' else [2, -1] for t in texts]",
    )
    monkeypatch.chdir(tmp_path)
    for source in ("v.npy", "v.npz", "v.jsonl", "v.pq", "my_encoder:run", encode, WANTED):
        assert read_vectors(source, QUERIES) == WANTED


def test_rows_belong_to_the_queries_of_the_file_also_if_some_are_left_out(tmp_path):
    np.save(tmp_path / "v.npy", np.array(list(WANTED.values())))
    written(tmp_path / "queries.tsv", "q1\ta", "q2\tb")
    qrels = written(tmp_path / "qrels.txt", "q2 0 d1 1")
    found = read_queries(tmp_path / "queries.tsv", qrels=qrels)
    assert read_vectors(tmp_path / "v.npy", found.texts, found.file_order) == {"q2": WANTED["q2"]}


def test_a_column_of_the_queries_holds_vectors(tmp_path):
    lines = (json.dumps({"_id": k, "text": t, "embedding": WANTED[k]}) for k, t in QUERIES.items())
    assert read_queries(written(tmp_path / "q.jsonl", *lines)).vectors == WANTED


def test_sparse_vectors_are_checked():
    sparse = {"indices": [1, 4], "values": [0.5, 2.0]}
    assert read_vectors({"q1": sparse, "q2": sparse}, QUERIES)["q1"] == sparse
    for broken in ({"indices": [1]}, {"indices": [1], "values": []}, {"indices": [-1], "values": [1.0]}):
        with pytest.raises(InputError, match="expected a sparse vector"):
            read_vectors({"q1": broken, "q2": sparse}, QUERIES)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"q1": (1.0,)}, "none for 'q2'"),
        ({"q1": (1.0,), "q2": (1.0, 2.0)}, "one length; found 1, 2"),
        ({"q1": (float("nan"),), "q2": (1.0,)}, "finite numbers"),
        ({"q1": "text", "q2": (1.0,)}, "finite numbers"),
        ({"q1": [], "q2": (1.0,)}, "finite numbers"),
        (lambda texts: [[1.0]], "expected 2 vectors"),
        ("no_such_module:f", "expected the function"),
        ("json:nothing", "expected a function 'nothing'"),
        ("missing.npy", "found neither"),
        (":f", "expected the function"),
        ({"q1": [10**400], "q2": (1.0,)}, "finite numbers"),
    ],
)
def test_bad_vectors_are_refused(source, message):
    with pytest.raises(GenmError, match=message):
        read_vectors(source, QUERIES)


def test_bad_vector_files_are_refused(tmp_path):
    np.save(tmp_path / "v.npy", np.zeros((3, 2)))
    with pytest.raises(
        InputError, match=r"each of the 2 queries, in their order; found an array of shape \(3, 2\)"
    ):
        read_vectors(tmp_path / "v.npy", QUERIES)
    (tmp_path / "w.npy").write_bytes(b"nothing")
    with pytest.raises(FormatError, match="arrays that numpy wrote"):
        read_vectors(tmp_path / "w.npy", QUERIES)
    np.save(tmp_path / "o.npy", np.array([{"a": 1}, {}], object), allow_pickle=True)
    with pytest.raises(FormatError, match="arrays that numpy wrote"):
        read_vectors(tmp_path / "o.npy", QUERIES)
    for name, text in (("x.jsonl", "{broken"), ("y.jsonl", "plain text")):
        written(tmp_path / name, text)
        with pytest.raises(FormatError):
            read_vectors(tmp_path / name, QUERIES)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "z.parquet")
    with pytest.raises(InputError, match="columns for id and vector"):
        read_vectors(tmp_path / "z.parquet", QUERIES)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.npy", b""),
        ("short.npy", b"\x93NUMPY\x01\x00v\x00{'descr'"),
        ("damaged.npz", b"PK\x03\x04 nothing"),
        ("damaged.parquet", b"PAR1 nothing PAR1"),
        ("deep.jsonl", b'{"_id": "q1", "vector": ' + b"[" * 100_000),
        ("number.jsonl", b'{"_id": "q1", "vector": [1]}\n7\n'),
        ("list.jsonl", b'{"_id": "q1", "vector": [1]}\n[[1]]\n'),
        ("twice.jsonl", b'{"_id": "q1", "vector": [1], "vector": [2]}\n'),
    ],
)
def test_damaged_vector_files_are_refused_in_one_line(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError) as caught:
        read_vectors(tmp_path / name, QUERIES)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "line", ["{" * 100_000, '{"query": "a", "query": "b"}', '{"query": "\\ud800"}', '{"query": 7}', "7"]
)
def test_a_log_line_that_cannot_be_used_is_refused(tmp_path, line):
    log = written(tmp_path / "log", '{"query": "red cars"}', line)
    with pytest.raises(FormatError, match=r"log:2: expected a JSON object with one of"):
        read_queries(log, form="log")
