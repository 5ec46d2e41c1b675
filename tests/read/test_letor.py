"""LETOR files: features become rankers."""

import io
from pathlib import Path

import pytest
from read.bad_cases import as_dict

from genm.errors import FormatError, InputError
from genm.read import read_letor

TEXT = """# a comment
2 qid:10 1:0.3 2:0.7 # d1
0 qid:10 1:0.9 2:-1 #docid = d2 inc = 1 prob = 0.02
1 qid:11 2:5e-1 1:0 # d1
"""


def test_runs_and_judgments() -> None:
    letor = read_letor(io.StringIO(TEXT))
    assert [run.name for run in letor.runs] == ["feature-1", "feature-2"]
    assert repr(as_dict(letor.runs[0])) == "{'10': {'d2': 0.9, 'd1': 0.3}, '11': {'d1': 0.0}}"
    assert repr(as_dict(letor.runs[1])) == "{'10': {'d1': 0.7, 'd2': -1.0}, '11': {'d1': 0.5}}"
    assert as_dict(letor.qrels) == {"10": {"d1": 2, "d2": 0}, "11": {"d1": 1}}
    assert letor.qrels.notes == ()


def test_names_and_paths(tmp_path: Path) -> None:
    path = tmp_path / "x.letor"
    path.write_text(TEXT)
    assert [run.name for run in read_letor(path, names=["bm25", "dense"]).runs] == ["bm25", "dense"]
    with pytest.raises(InputError, match="names: expected 2 of them, one per feature; found 1"):
        read_letor(path, names=["bm25"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("yes qid:1 1:2 # a", 'a number as label; found "yes"'),
        ("1 qid: 1:2 # a", "label, then qid:"),
        ("1 qid:1 x:2 # a", "each feature once, as number:value"),
        ("1 qid:1 0:2 # a", "numbers from 1 to 10,000"),
        ("1 qid:1 99999:2 # a", "numbers from 1 to 10,000"),
        ("1 qid:1 3 # a", 'a finite number as feature; found "3"'),
        ("1 qid:1 1:1e400 # a", "a finite number as feature"),
        ("0.5 qid:1 1:1 # a", "a whole number as relevance; found 0.5"),
    ],
)
def test_bad_lines(line: str, message: str) -> None:
    with pytest.raises(FormatError, match=f":5: expected .*{message}"):
        read_letor(io.StringIO(TEXT + line + "\n"))


def test_documents_twice() -> None:
    with pytest.raises(FormatError, match=r":5: expected each document once per query"):
        read_letor(io.StringIO(TEXT + "2 qid:10 1:9 2:9 # d1\n"))
    letor = read_letor(io.StringIO(TEXT + "2 qid:10 1:9 2:9 # d1\n"), duplicates="last")
    assert as_dict(letor.runs[0])["10"] == {"d1": 9.0, "d2": 0.9}


def test_an_empty_file() -> None:
    with pytest.raises(FormatError, match="expected lines such as 2 qid:7"):
        read_letor(io.StringIO("# nothing\n"))
    assert read_letor(io.StringIO(""), lenient=True).runs == ()


def test_few_bytes_never_make_a_huge_table() -> None:
    text = "0 qid:1 10000:1\n" + "".join(f"0 qid:{i} 1:1\n" for i in range(2000))
    with pytest.raises(FormatError, match=r"expected LETOR text that unpacks to at most"):
        read_letor(io.StringIO(text))
