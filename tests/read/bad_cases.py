"""One way to bring about each row of the table of bad input in docs/formats.md."""

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import zstandard

from genm.read import read_beir, read_letor, read_qrels, read_query_weights, read_run
from genm.records import Collection, Note, Qrels, Run

Data = dict[str, dict[str, float]]
Act = Callable[[Path, bool], tuple[Any, tuple[Note, ...]]]


@dataclass(frozen=True)
class Case:
    """How to bring a row about, where strict reading must point to, and what must come out."""

    act: Act
    place: str = ""
    """A regular expression for the end of the place in the error."""
    result: Any = None
    """What is read: with a repair, or at once."""
    count: int = 1
    also: str = ""
    """Another note that comes with it."""


def as_dict(records: Run | Qrels) -> Data:
    """Return records as a dictionary in their order."""
    values = records.score if isinstance(records, Run) else records.relevance
    docs = [records.docs[d] for d in records.doc]
    return {
        query: dict(zip(docs[a:b], values[a:b].tolist(), strict=True))
        for query, a, b in zip(
            records.queries, records.starts[:-1].tolist(), records.starts[1:].tolist(), strict=True
        )
    }


def ranking(records: Run | Qrels) -> dict[str, list[str]]:
    return {query: list(rows) for query, rows in as_dict(records).items()}


def run(content: bytes | str, name: str = "some.run", view: Callable[[Run], Any] = as_dict, **options: Any) -> Act:
    def act(folder: Path, lenient: bool) -> tuple[Any, tuple[Note, ...]]:
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        read = read_run(path, lenient=lenient, **options)
        return view(read), read.notes

    return act


def qrels(content: str, name: str = "some.qrels") -> Act:
    def act(folder: Path, lenient: bool) -> tuple[Any, tuple[Note, ...]]:
        path = folder / name
        path.write_text(content)
        read = read_qrels(path, lenient=lenient)
        return as_dict(read), read.notes

    return act


def mapped(folder: Path, lenient: bool, grades: str) -> tuple[Any, tuple[Note, ...]]:
    path = folder / "some.qrels"
    path.write_text("q1 0 a 0.7\nq1 0 b 0.2\n")
    read = read_qrels(path, lenient=lenient, grades=grades)
    return as_dict(read), read.notes


def made(source: Any) -> Act:
    """Read a dictionary or frame as a run."""

    def act(folder: Path, lenient: bool) -> tuple[Any, tuple[Note, ...]]:
        read = read_run(source, lenient=lenient)
        return as_dict(read), read.notes

    return act


def made_pandas(**columns: list[Any]) -> Act:
    """Read a frame of pandas as a run, where pandas is installed."""

    def act(folder: Path, lenient: bool) -> tuple[Any, tuple[Note, ...]]:
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        return made(pandas.DataFrame(columns))(folder, lenient)

    return act


def made_qrels(source: Any) -> Act:
    def act(folder: Path, lenient: bool) -> tuple[Any, tuple[Note, ...]]:
        read = read_qrels(source, lenient=lenient)
        return as_dict(read), read.notes

    return act


def no_file(folder: Path, lenient: bool) -> tuple[Any, tuple[Note, ...]]:
    return read_run(folder / "nowhere.run", lenient=lenient), ()


def a_folder(folder: Path, lenient: bool) -> tuple[Any, tuple[Note, ...]]:
    return read_run(folder, lenient=lenient), ()


def letor(content: str) -> Act:
    def act(folder: Path, lenient: bool) -> tuple[Any, tuple[Note, ...]]:
        path = folder / "some.letor"
        path.write_text(content)
        read = read_letor(path, lenient=lenient)
        return ([as_dict(r) for r in read.runs], as_dict(read.qrels)), read.qrels.notes

    return act


def weights(content: str) -> Act:
    def act(folder: Path, lenient: bool) -> tuple[Any, tuple[Note, ...]]:
        path = folder / "some.weights"
        path.write_text(content)
        return read_query_weights(path), ()

    return act


def beir(**changes: str | None) -> Act:
    """Read a small BEIR folder with changed files (None: not there)."""

    def act(folder: Path, lenient: bool) -> tuple[Any, tuple[Note, ...]]:
        (folder / "qrels").mkdir()
        files: dict[str, str | None] = {
            "corpus.jsonl": entry("d1", "one", "T") + entry("d2", "two"),
            "queries.jsonl": entry("q1", "find one"),
            "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\n",
        }
        files |= {
            {"corpus": "corpus.jsonl", "queries": "queries.jsonl", "test": "qrels/test.tsv"}[k]: v
            for k, v in changes.items()
        }
        for name, content in files.items():
            if content is not None:
                (folder / name).write_text(content)
        read: Collection = read_beir(folder, lenient=lenient)
        return (
            dict(zip(read.doc_ids, read.doc_texts, strict=True)),
            read.query_ids,
            as_dict(read.qrels),
        ), read.notes

    return act


def entry(key: Any, text: str, title: str = "") -> str:
    return json.dumps({"_id": key, "title": title, "text": text}) + "\n"


def parquet(content: dict[str, list[Any]]) -> bytes:
    file = io.BytesIO()
    pl.DataFrame(content).write_parquet(file)
    return file.getvalue()


A = "q1 Q0 a 1 3.0 t\n"
B = "q1 Q0 b 2 2.0 t\n"
BOTH: Data = {"q1": {"a": 3.0, "b": 2.0}}
ONE: Data = {"q1": {"a": 3.0}}
N_MANY = 20_000
MANY = "".join(f"q1 Q0 {i * 7919 % 99991:x}-{i} {i} {N_MANY - i} t\n" for i in range(N_MANY))
GZIP = gzip.compress(MANY.encode())
ZST = zstandard.compress(MANY.encode())
BOMB = gzip.compress(b"\n" * (65 << 20), compresslevel=1)
COLUMNS = {"query_id": ["q1", "q1"], "doc_id": ["a", "b"], "score": [3.0, 2.0]}
BEIR_TEXTS = {"d1": "T one", "d2": "two"}
BEIR = (BEIR_TEXTS, ("q1",), {"q1": {"d1": 1}})


def beginning_of_many(result: Any) -> bool:
    """Whole lines from the beginning, whatever was lost at the end."""
    rows = result.get("q1", {})
    return 1000 < len(rows) < N_MANY and list(rows.values()) == [float(N_MANY - i) for i in range(len(rows))]


CASES: dict[str, Case] = {
    "missing-file": Case(no_file, place=r"nowhere\.run"),
    "folder": Case(a_folder),
    "empty-file": Case(run(b""), place=r"some\.run", result={}),
    "only-comments": Case(run("# nothing\n\n"), place=r"some\.run", result={}, also="comment-lines"),
    "gzip-bomb": Case(run(BOMB, "some.run.gz"), place=r"some\.run\.gz"),
    "zip-archive": Case(run(b"PK\x03\x04 and more"), place=r"some\.run"),
    "truncated-gzip": Case(run(GZIP[:-200], "some.run.gz"), place=r"some\.run\.gz", result=beginning_of_many),
    "truncated-zst": Case(run(ZST[:-5], "some.run.zst"), place=r"some\.run\.zst", result=beginning_of_many),
    "damaged-gzip": Case(
        run(GZIP[:-8] + b"\0" * 8, "some.run.gz"),
        place=r"some\.run\.gz",
        result=beginning_of_many,
    ),
    "not-packed": Case(run(A + B, "some.run.gz"), result=BOTH),
    "two-gzip-members": Case(
        run(gzip.compress(A.encode()) + gzip.compress(B.encode()), "some.run.gz"), result=BOTH
    ),
    "byte-order-mark": Case(run(b"\xef\xbb\xbf" + (A + B).encode()), result=BOTH),
    "utf-16": Case(run((A + B).encode("utf-16")), place=":1", result=BOTH),
    "not-utf-8": Case(
        run(A.encode() + "q1 Q0 é 2 2.0 t\n".encode("latin-1")), place=":2", result={"q1": {"a": 3.0, "é": 2.0}}
    ),
    "control-character": Case(run(A + "q1 Q0 b\0c 2 2.0 t\n"), place=":2", result=ONE),
    "crlf": Case(run((A + B).replace("\n", "\r\n")), result=BOTH),
    "tabs-and-spaces": Case(run("  q1\tQ0  a\t \t1 3.0\tt \t\n" + B), result=BOTH),
    "blank-lines": Case(run("\n" + A + "\n \t\n" + B + "\n"), result=BOTH),
    "comment-lines": Case(run("# one\n" + A + "# two, with six columns 1 2.0\n" + B), result=BOTH, count=2),
    "hash-after-space": Case(run(" #q1 Q0 a 1 3.0 t\n"), result={"#q1": {"a": 3.0}}),
    "mark-inside": Case(run(A.encode() + b"\xef\xbb\xbf" + B.encode()), place=":2", result=BOTH),
    "no-last-line-end": Case(run((A + B).rstrip()), result=BOTH),
    "cut-short": Case(run(A + "q1 Q0 b 2"), place=":2", result=ONE),
    "too-few-columns": Case(run("q1 Q0 b 2 2.0\n" + A), place=":1", result=ONE),
    "space-in-doc-id": Case(run(A + "q1 Q0 b c 2 2.0 t\n"), place=":2", result=ONE),
    "text-after-tag": Case(run(A + "q1 Q0 b 2 2.0 my own tag\n"), result=BOTH),
    "shifted-columns": Case(run(A + "q1 Q0 doc 7 2 2.0 t\n"), place=":2", result=ONE),
    "long-line": Case(run(A + "x" * 10_000_000 + "\n"), place=":2", result=ONE),
    "header-line": Case(run("query Q0 document rank score tag\n" + A), place=":1", result=ONE),
    "score-not-a-number": Case(run(A + "q1 Q0 b 2 abc t\n"), place=":2", result=ONE),
    "score-hexadecimal": Case(run(A + "q1 Q0 b 2 0x1F t\n"), place=":2", result=ONE),
    "decimal-comma": Case(run("q1 Q0 a 1 3,5 t\n" + B), place=":1", result={"q1": {"a": 3.5, "b": 2.0}}),
    "score-nan": Case(run(A + "q1 Q0 b 2 nan t\n"), place=":2", result=ONE),
    "score-inf": Case(run("q1 Q0 b 1 inf t\n" + A + "q1 Q0 c 3 -Infinity t\n"), place=":1", result=ONE, count=2),
    "score-too-large": Case(run("q1 Q0 b 1 1e400 t\n" + A), place=":1", result=ONE),
    "score-too-small": Case(
        run("q1 Q0 b 2 3e-400 t\nq1 Q0 c 3 -2e-400 t\n" + A),
        place=":1",
        result={"q1": {"a": 3.0, "c": -0.0, "b": 0.0}},
        count=2,
    ),
    "close-scores": Case(run("q1 Q0 z 2 1.0 t\nq1 Q0 a 1 1.00000001 t\n", view=ranking), result={"q1": ["a", "z"]}),
    "tied-scores": Case(
        run("q1 Q0 a 1 2 t\nq1 Q0 c 2 2.0 t\nq1 Q0 b 3 2e0 t\n", view=ranking), result={"q1": ["c", "b", "a"]}
    ),
    "unsorted": Case(run("q1 Q0 b 2 2.0 t\n" + A, view=ranking), result={"q1": ["a", "b"]}),
    "negative-scores": Case(run("q1 Q0 a 1 -1.5 t\nq1 Q0 b 2 -2 t\n", view=ranking), result={"q1": ["a", "b"]}),
    "scattered-queries": Case(
        run(A + "q2 Q0 a 1 1.0 t\n" + B + "q2 Q0 c 2 0.5 t\n"), result=BOTH | {"q2": {"a": 1.0, "c": 0.5}}
    ),
    "odd-ranks": Case(
        run("q1 Q0 a 0 3 t\nq1 Q0 b 0 2 t\nq1 Q0 c - 1 t\n", view=ranking), result={"q1": ["a", "b", "c"]}
    ),
    "rank-against-score": Case(run("q1 Q0 b 1 2.0 t\nq1 Q0 a 2 3.0 t\n", view=ranking), result={"q1": ["a", "b"]}),
    "document-twice": Case(run(A + B + "q1 Q0 b 2 2.5 t\n"), place=":3", result={"q1": {"a": 3.0, "b": 2.5}}),
    "leading-zeros": Case(run("01 Q0 a 1 3.0 t\n1 Q0 a 1 2.0 t\n"), result={"01": {"a": 3.0}, "1": {"a": 2.0}}),
    "qrels-empty": Case(qrels("\n"), place=r"some\.qrels", result={}),
    "qrels-columns": Case(qrels("q1 0 a 1\nq1 b 1\n"), place=":2", result={"q1": {"a": 1}}),
    "qrels-text": Case(qrels("q1 0 a 1\nq1 0 b yes\n"), place=":2", result={"q1": {"a": 1}}),
    "qrels-half": Case(qrels("q1 0 a 1\nq1 0 b 0.5\n"), place=":2", result={"q1": {"a": 1}}),
    "qrels-huge": Case(qrels("q1 0 a 1\nq1 0 b 3000000000\n"), place=":2", result={"q1": {"a": 1}}),
    "qrels-lowest": Case(qrels("q1 0 a -2147483648\n"), result={"q1": {"a": -(2**31)}}),
    "qrels-whole-decimal": Case(qrels("q1 0 a 2.0\n"), result={"q1": {"a": 2}}),
    "qrels-negative": Case(qrels("q1 0 a 1\nq1 0 b -2\n"), result={"q1": {"a": 1, "b": -2}}),
    "qrels-conflict": Case(qrels("q1 0 a 1\nq1 0 a 2\nq1 0 a 0\n"), place=":2", result={"q1": {"a": 2}}, count=2),
    "qrels-twice": Case(qrels("q1 0 a 1\nq2 0 a 1\nq1 0 a 1\n"), result={"q1": {"a": 1}, "q2": {"a": 1}}),
    "beir-no-header": Case(
        qrels("q1\td1\t1\nq1\td2\t0\n", "test.tsv"), place=":1", result={"q1": {"d1": 1, "d2": 0}}
    ),
    "table-empty": Case(run("query_id,doc_id,score\n", "some.csv"), place=r"some\.csv", result={}),
    "table-no-column": Case(run("query_id,document,score\nq1,a,3\n", "some.csv"), place=":1"),
    "table-two-names": Case(run("query_id,doc_id,score,score\nq1,a,3,4\n", "some.csv"), place=":1"),
    "table-columns": Case(run("query_id,doc_id,score\nq1,a,3\n\nq1,b,2,1\n", "some.csv"), place=":4", result=ONE),
    "table-missing-cell": Case(run("query_id,doc_id,score\nq1,a,3\n\nq1,,2\n", "some.csv"), place=":4", result=ONE),
    "table-score": Case(
        run('qid\tdocno\tscore\n"q\n1"\ta\t3\nq1\tb\t1e-400\n', "some.tsv"),
        place=":4",
        result={"q\n1": {"a": 3.0}, "q1": {"b": 0.0}},
    ),
    "table-not-utf-8": Case(
        run("qid,docno,score\nq1,é,3\n".encode("latin-1"), "some.csv"), place=":2", result={"q1": {"é": 3.0}}
    ),
    "table-leading-zeros": Case(run("qid,docno,score\n007,a,3\n", "some.csv"), result={"007": {"a": 3.0}}),
    "table-open-quote": Case(run('qid,docno,score\nq1,a,3\nq1,"b,2\n', "some.csv"), place=":3", result=ONE),
    "table-long-cell": Case(
        run("qid,docno,score\nq1,a,3\nq1,b,2," + "x" * 10_000_000 + "\n", "some.csv"), place=":3", result=ONE
    ),
    "table-after-quote": Case(run('qid,docno,score\nq1,a,3\nq1,"b"c,2\n', "some.csv"), place=":3", result=ONE),
    "table-carriage-return": Case(
        run("qid,docno,score\nq1,a,3\nq1,b\r,2\n", "some.csv"), place=":3", result=ONE, count=2
    ),
    "table-last-separator": Case(
        run("qid\tdocno\tscore\nq1\ta\t3\nq0\td0\tx\t", "some.tsv"), place=":3", result=ONE
    ),
    "table-control-character": Case(
        run("qid,docno,score\nq1,a,3\nq1,b\0,2\nq\x1b[2J,a,1\n", "some.csv"), place=":4", result=ONE, count=2
    ),
    "parquet-damaged": Case(run(parquet(COLUMNS)[:-30], "some.parquet"), place=r"some\.parquet"),
    "frame-integer-ids": Case(
        made(pl.DataFrame(COLUMNS | {"doc_id": [7, 8]})), result={"q1": {"7": 3.0, "8": 2.0}}, count=2
    ),
    "frame-mixed-ids": Case(
        made_pandas(qid=["1", 2], docno=["a", "b"], score=[3.0, 2.0]),
        place=r"row 1 \(from 0\)",
        result={"1": {"a": 3.0}, "2": {"b": 2.0}},
    ),
    "frame-gap": Case(
        made_pandas(qid=[1, None], docno=["a", "b"], score=[3.0, 2.0]),
        place=r"row 1 \(from 0\)",
        result={"1": {"a": 3.0}},
        also="integer-ids",
    ),
    "frame-missing-score": Case(
        made(pl.DataFrame(COLUMNS | {"score": [3.0, None]})), place=r"row 1 \(from 0\)", result=ONE
    ),
    "frame-nan": Case(
        made(pl.DataFrame(COLUMNS | {"score": [3.0, float("nan")]})), place=r"row 1 \(from 0\)", result=ONE
    ),
    "frame-empty": Case(made(pl.DataFrame(COLUMNS).clear()), result={}),
    "dict-integer-ids": Case(made({1: {"a": 3.0}}), result={"1": {"a": 3.0}}),
    "dict-mixed-ids": Case(
        made({"q1": {"a": 3.0, 7: 2.0}}), place=r"\['q1'\]\[7\]", result={"q1": {"a": 3.0, "7": 2.0}}
    ),
    "dict-none": Case(made({"q1": {"a": 3.0, "b": None}}), place=r"\['q1'\]\['b'\]", result=ONE),
    "dict-text-score": Case(made({"q1": {"a": 3.0, "b": "3.0"}}), place=r"\['q1'\]\['b'\]", result=ONE),
    "dict-truth-score": Case(made({"q1": {"a": 3.0, "b": True}}), place=r"\['q1'\]\['b'\]", result=ONE),
    "dict-huge-score": Case(made({"q1": {"a": 3.0, "b": 10**400}}), place=r"\['q1'\]\['b'\]", result=ONE),
    "dict-tiny-score": Case(
        made({"q1": {"a": 3.0, "b": Fraction(1, 10**400)}}),
        place=r"\['q1'\]\['b'\]",
        result={"q1": {"a": 3.0, "b": 0.0}},
    ),
    "dict-surrogate": Case(made({"q1": {"a": 3.0, "\ud800": 2.0}}), place=r"\['q1'\]\['\\ud800'\]", result=ONE),
    "dict-huge-id": Case(made({"q1": {"a": 3.0, 10**5000: 2.0}}), place=r"\['q1'\]\[a value.*\]", result=ONE),
    "dict-nan": Case(made({"q0": {"a": float("nan")}, "q1": {"a": 3.0}}), place=r"\['q0'\]\['a'\]", result=ONE),
    "dict-numpy": Case(made({"q1": {"a": np.float32(3), "b": np.int64(2)}}), result=BOTH),
    "dict-no-documents": Case(made({"q1": {"a": 3.0}, "q2": {}}), result=ONE),
    "dict-flat": Case(made({"q1": 3.0})),
    "dict-empty": Case(made({}), result={}),
    "qrels-dict-half": Case(
        made_qrels({"q1": {"a": 1, "b": 0.5}}), place=r"\['q1'\]\['b'\]", result={"q1": {"a": 1}}
    ),
    "qrels-dict-numpy": Case(
        made_qrels({"q1": {"a": np.int64(1), "b": np.bool_(True), "c": True, "d": 2.0}}),
        result={"q1": {"a": 1, "b": 1, "c": 1, "d": 2}},
    ),
    "json-cut": Case(run('{"q1": {"a": 3.0, "b"', "some.json"), place=":1"),
    "json-twice": Case(
        run('{"q1": {"a": 3.0, "b": 1, "b": 2}}', "some.json"),
        place='some.json, query "q1", document "b"',
        result=BOTH,
    ),
    "json-text": Case(run('{"q1": {"a": 3.0, "b": "high"}}'), place='query "q1", document "b"', result=ONE),
    "json-null": Case(run('{"q1": {"a": 3.0, "b": null}}'), place='query "q1", document "b"', result=ONE),
    "json-nan": Case(run('{"q1": {"a": 3.0, "b": NaN}}'), place='query "q1", document "b"', result=ONE),
    "json-too-large": Case(run('{"q1": {"a": 3.0, "b": 1e400}}'), place='query "q1", document "b"', result=ONE),
    "json-surrogate": Case(
        run('{"q1": {"a": 3.0, "\\ud800": 1}}'), place=r'query "q1", document "\\ud800"', result=ONE
    ),
    "json-deep": Case(run('{"q1": ' + "[" * 100_000, "some.json"), place=":1"),
    "json-flat": Case(run('{"q1": 3.0}', "some.json"), place="some.json"),
    "json-no-document": Case(
        qrels('[{"query": "q1", "ratings": [{"rating": "1"}, {"docId": "a", "rating": "1.0"}]}]'),
        place='query "q1", document None',
        result={"q1": {"a": 1}},
    ),
    "qrels-mapped": Case(
        lambda folder, lenient: mapped(folder, lenient, "from=0.5"), result={"q1": {"a": 1, "b": 0}}, count=2
    ),
    "qrels-confidence": Case(
        qrels("query_id,doc_id,relevance,confidence\nq1,a,1,high\n"), place=":2", result={"q1": {"a": 1}}
    ),
    "beir-big-number": Case(
        beir(corpus=entry("d1", "one", "T") + entry("d2", "two") + '{"_id": "d3", "n": ' + "9" * 5000 + "}\n"),
        place=r"corpus\.jsonl:3",
        result=BEIR,
    ),
    "beir-surrogate": Case(
        beir(corpus=entry("d1", "one", "T") + entry("d2", "two") + '{"_id": "d3", "text": "\\ud800"}\n'),
        place=r"corpus\.jsonl:3",
        result=BEIR,
    ),
    "beir-key-twice": Case(
        beir(corpus=entry("d1", "one", "T") + entry("d2", "two") + '{"_id": "d3", "_id": "d4", "text": "x"}\n'),
        place=r"corpus\.jsonl:3",
        result=BEIR,
    ),
    "beir-no-qrels": Case(beir(test=None)),
    "beir-not-json": Case(
        beir(corpus=entry("d1", "one", "T") + entry("d2", "two") + '{"_id": "d3", "te'),
        place=r"corpus\.jsonl:3",
        result=BEIR,
    ),
    "beir-no-text": Case(
        beir(corpus=entry("d1", "one", "T") + '{"_id": "d9"}\n' + entry("d2", "two")),
        place=r"corpus\.jsonl:2",
        result=BEIR,
    ),
    "beir-id-twice": Case(
        beir(corpus=entry("d1", "one", "T") + entry("d1", "more") + entry("d2", "two")),
        place=r"corpus\.jsonl:2",
        result=BEIR,
    ),
    "beir-integer-id": Case(
        beir(corpus=entry("d1", "one", "T") + entry(2, "two")), result=({"d1": "T one", "2": "two"}, *BEIR[1:])
    ),
    "beir-unknown-document": Case(
        beir(test="query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td7\t1\n"),
        result=(BEIR_TEXTS, ("q1",), {"q1": {"d1": 1, "d7": 1}}),
    ),
    "beir-unknown-query": Case(
        beir(test="query-id\tcorpus-id\tscore\nq1\td1\t1\nq7\td1\t1\n"),
        result=(BEIR_TEXTS, ("q1",), {"q1": {"d1": 1}, "q7": {"d1": 1}}),
    ),
    "beir-unjudged-query": Case(beir(queries=entry("q1", "find one") + entry("q2", "find two")), result=BEIR),
    "letor-no-qid": Case(
        letor("1 qid:1 1:3 # a\n0 1:2 # b\n"), place=":2", result=([{"1": {"a": 3.0}}], {"1": {"a": 1}})
    ),
    "letor-feature": Case(
        letor("1 qid:1 1:3 # a\n0 qid:1 1:2 1:2 # b\n"), place=":2", result=([{"1": {"a": 3.0}}], {"1": {"a": 1}})
    ),
    "letor-nan": Case(
        letor("1 qid:1 1:3 # a\n0 qid:1 1:nan # b\n"), place=":2", result=([{"1": {"a": 3.0}}], {"1": {"a": 1}})
    ),
    "letor-absent": Case(
        letor("1 qid:1 1:3 2:1 # a\n0 qid:1 2:2 # docid = b inc = 1\n"),
        result=([{"1": {"a": 3.0, "b": 0.0}}, {"1": {"b": 2.0, "a": 1.0}}], {"1": {"a": 1, "b": 0}}),
    ),
    "letor-no-document": Case(
        letor("1 qid:1 1:3\n0 qid:1 1:2\n"),
        result=([{"1": {"1-1": 3.0, "1-2": 2.0}}], {"1": {"1-1": 1, "1-2": 0}}),
        count=2,
    ),
    "weights-negative": Case(weights("q1 1\nq2 -0.5\n"), place=":2"),
    "weights-twice": Case(weights("q1 1\nq1 1\n"), place=":2"),
}
