"""CSV and TSV files: cells stay text, quotes are understood, lines are counted as an editor counts them."""

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from read.bad_cases import as_dict

from genm.errors import FormatError
from genm.read import delimited, read_qrels, read_run


@pytest.mark.parametrize(("suffix", "separator"), [(".csv", ","), (".tsv", "\t"), ("", ","), ("", "\t")])
def test_tables_by_name_or_by_header(tmp_path: Path, suffix: str, separator: str) -> None:
    path = tmp_path / f"bm25{suffix}"
    path.write_text("rank,docno,qid,score\n1,a,007,2.5\n2,b,007,1\n".replace(",", separator))
    assert as_dict(read_run(path)) == {"007": {"a": 2.5, "b": 1.0}}


def test_the_format_may_be_said() -> None:
    assert as_dict(read_run(io.StringIO("qid,docno,score\nq,a,1\n"), format="csv")) == {"q": {"a": 1.0}}
    with pytest.raises(FormatError, match=r":1: expected 6 columns"):
        read_run(io.StringIO("qid,docno,score\nq,a,1\n"), format="trec")


def test_beir_judgments() -> None:
    assert as_dict(read_qrels(io.StringIO("query-id\tcorpus-id\tscore\nq\ta\t2\n"))) == {"q": {"a": 2}}


cell = st.text('ab",\n\té', min_size=1, max_size=6).filter(lambda text: text.strip() == text)


@settings(deadline=None, max_examples=80)
@given(
    st.dictionaries(cell, st.dictionaries(cell, st.floats(-9, 9), min_size=1, max_size=3), min_size=1, max_size=3)
)
def test_quoted_cells_come_back(data: dict[str, dict[str, float]]) -> None:
    def quote(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    lines = [f"{quote(q)},{quote(d)},{s!r}" for q, docs in data.items() for d, s in docs.items()]
    assert as_dict(read_run(io.StringIO("qid,docno,score\n" + "\n".join(lines)))) == {
        q: dict(
            sorted(sorted(docs.items(), key=lambda row: row[0].encode(), reverse=True), key=lambda row: -row[1])
        )
        for q, docs in data.items()
    }


def test_both_ways_of_reading_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'qid,docno,score\n\nq,"a\nb",3\nr,c,2\n'
    fast = read_run(io.StringIO(text))
    monkeypatch.setattr(delimited, "_fast", lambda *_, **__: None)
    assert as_dict(read_run(io.StringIO(text))) == as_dict(fast) == {"q": {"a\nb": 3.0}, "r": {"c": 2.0}}


@pytest.mark.parametrize("slow", [False, True])
def test_lines_are_those_of_an_editor(monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    if slow:
        monkeypatch.setattr(delimited, "_fast", lambda *_, **__: None)
    with pytest.raises(FormatError, match=r":6: expected a decimal number as score; found \"x\""):
        read_run(io.StringIO('\nqid,docno,score\n\nq,"a\nb",3\nr,c,x\n'))


def test_an_empty_table_and_one_without_header() -> None:
    with pytest.raises(FormatError, match="expected a table with rows; found none"):
        read_run(io.StringIO(""), format="csv")
    run = read_run(io.StringIO(""), format="csv", lenient=True)
    assert [(n.code, n.count) for n in run.notes] == [("empty", 1)]
    qrels = read_qrels(io.StringIO("1\t1\t1\n1\t2\t0\n"), format="tsv", lenient=True)
    assert as_dict(qrels) == {"1": {"1": 1, "2": 0}}
