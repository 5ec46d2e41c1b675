"""TREC lines to rows: ids as bytes say, lines as editors count."""

import io

import pytest
from read.bad_cases import as_dict

from genm.errors import FormatError
from genm.ids import Ids
from genm.read import lines, read_qrels, read_run, trec
from genm.read.trec import first_broken


def test_a_run_and_qrels_by_hand() -> None:
    run = read_run(io.StringIO("7 Q0 d12 1 14.2 bm25\n7 Q0 d3 2 14.2 bm25\n8 Q0 d3 1 1e-3 bm25\n"), name="x")
    assert repr(as_dict(run)) == "{'7': {'d3': 14.2, 'd12': 14.2}, '8': {'d3': 0.001}}"
    qrels = read_qrels(io.StringIO("7 0 d12 2\n8 0 d9 0\n"))
    assert as_dict(qrels) == {"7": {"d12": 2}, "8": {"d9": 0}}


def test_queries_cut_by_chunks_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"q{i // 50} Q0 d{i} 1 {1000 - i} t\n" for i in range(200))
    whole = read_run(io.StringIO(text))
    monkeypatch.setattr(lines, "CHUNK", 64)
    cut = read_run(io.StringIO(text))
    assert repr(as_dict(cut)) == repr(as_dict(whole))
    assert list(cut.queries) == ["q0", "q1", "q2", "q3"]


@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_first_bad_line_is_named_whatever_the_threads(monkeypatch: pytest.MonkeyPatch, threads: str) -> None:
    monkeypatch.setenv("GENM_THREADS", threads)
    monkeypatch.setattr(lines, "CHUNK", 1000)
    text = "".join(f"q Q0 d{i} 1 {9000 - i if i not in (2500, 4000) else 'x'} t\n" for i in range(5000))
    with pytest.raises(FormatError, match=r":2501: expected a decimal number as score"):
        read_run(io.StringIO(text))
    run = read_run(io.StringIO(text), lenient=True)
    assert [(n.code, n.count) for n in run.notes] == [("not-a-number", 2)]
    assert len(run.doc) == 4998


def test_ids_that_only_together_are_utf_8() -> None:
    """Two halves of a character in two neighbouring ids decode as one text, and are still no ids."""
    lead, tail = "é".encode()[:1], "é".encode()[1:]
    data = b"q Q0 a" + lead + b" 1 3 t\nq Q0 " + tail + b"b 2 2 t\n"
    with pytest.raises(FormatError, match=r":2: expected UTF-8 text"):
        read_run(io.BytesIO(data))
    run = read_run(io.BytesIO(data), lenient=True)
    assert as_dict(run) == {"q": {"aÃ": 3.0, "©b": 2.0}}
    assert first_broken(Ids.of(["é", "", "b"])) == -1


def test_fields_that_are_not_used_may_hold_any_bytes() -> None:
    assert as_dict(read_run(io.BytesIO(b"q \xff d \xfe 2 \xfd\n"))) == {"q": {"d": 2.0}}


def test_many_doubtful_lines_are_judged_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "q Q0 a 1 3,5 t\nq Q0 b\nq Q0 c 2 1.00000000000000011102230246251565404236316680908203125 t\nq Q0 d 3 nan t"
    )
    few = read_run(io.StringIO(text), lenient=True)
    monkeypatch.setattr(trec, "_MANY", 0)
    many = read_run(io.StringIO(text), lenient=True)
    assert as_dict(many) == as_dict(few) == {"q": {"a": 3.5, "c": 1.0}}
    assert many.notes == few.notes
    assert [n.code for n in many.notes] == ["decimal-comma", "columns", "not-finite"]


def test_files_in_each_others_place_are_recognised() -> None:
    with pytest.raises(FormatError, match=r":1: expected 4 columns.* This looks like a run: are two files"):
        read_qrels(io.StringIO("7 Q0 d12 1 14.2 bm25\n"))
    with pytest.raises(FormatError, match=r":1: expected 6 columns.* This looks like judgments: are two files"):
        read_run(io.StringIO("7 0 d12 1\n"))
    for line in ("7 Q0 d 12 1 14.2 bm25\n", "7 Q0 d12 first 14.2 bm25\n", "7 Q0 d12 1 high bm25\n"):
        with pytest.raises(FormatError, match=r"Ids and the tag must not hold white space"):
            read_qrels(io.StringIO(line))
