"""TREC lines to rows: ids as bytes say, lines as editors count."""

import io
import re
import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from read.bad_cases import as_dict
from thread_counts import use_threads

from genm.errors import FormatError
from genm.ids import Ids
from genm.read import read_qrels, read_run, trec
from genm.read import trec as lines
from genm.read.trec import (
    UNDECIDED,
    Layout,
    first_broken,
    judge_number,
    line_end,
    line_number,
    parse_lines,
    powers_of_ten,
    read_decimals,
)

RUN = Layout(6, doc=2, value=4, rank=3)
word = st.text("abz019é#", min_size=1, max_size=9)
space = st.sampled_from([" ", "\t", "  ", " \t ", "\x0b"])
number = st.sampled_from(["1", "2.5", "-3e2", "0.1", "oops", "nan"])
line = st.builds(
    lambda cells, gaps, end: "".join(c + g for c, g in zip(cells, gaps, strict=False)) + end,
    st.tuples(word, word, word, word, number, word) | st.lists(word, max_size=20),
    st.lists(space, min_size=20, max_size=20),
    st.sampled_from(["\n", "\r\n"]),
)

digits = st.text("0123456789", min_size=1, max_size=25)
decimal_text = st.builds(
    lambda sign, whole, fraction, exponent: sign + whole + fraction + exponent,
    st.sampled_from(["", "-", "+"]),
    digits,
    st.just("") | digits.map(lambda d: "." + d),
    st.just("") | st.builds(lambda e, n: f"{e}{n}", st.sampled_from("eE"), st.integers(-360, 320)),
)
half_way = st.builds(lambda m, s: str((2 * m + 1) << s), st.integers(2**52, 2**53 - 1), st.integers(0, 10))


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
    use_threads(monkeypatch, threads)
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


def array(text: str) -> np.ndarray:
    return np.frombuffer(bytearray(text.encode()), np.uint8)


@settings(deadline=None, max_examples=100)
@given(st.lists(line, max_size=12), st.booleans(), st.sampled_from([1, 7, 40, 1 << 20]), st.booleans())
def test_columns_are_those_of_split(parts: list[str], last_end: bool, chunk: int, followed: bool) -> None:
    content = "".join(parts)
    content = content if last_end else content.rstrip("\r\n")
    content += f"\n#{'x' * 100}" if followed else ""  # text is searched 64 bytes at a time while there are so many
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trec, "CHUNK", chunk)
        parsed = parse_lines(array(content), RUN, lambda done: None)
    lines = content.encode().split(b"\n")
    filled = [x.split() for x in lines if x.strip() and not x.startswith(b"#")]
    assert parsed.n_comments == sum(x.startswith(b"#") for x in lines)
    rows = [x for x in filled if len(x) >= 6]  # Python decides about longer ones
    text = content.encode()
    assert [text[a : a + n] for a, n in zip(parsed.doc_at.tolist(), parsed.doc_length.tolist(), strict=True)] == [
        x[2] for x in rows
    ]
    ends = [*parsed.segment_row.tolist()[1:], len(rows)] if rows else []
    queries = [
        text[a : a + n]
        for a, n, begin, end in zip(
            parsed.segment_at.tolist(),
            parsed.segment_length.tolist(),
            parsed.segment_row.tolist(),
            ends,
            strict=True,
        )
        for _ in range(begin, end)
    ]
    assert queries == [x[0] for x in rows]
    values = parsed.bits.view(np.float64)
    decimal = re.compile(rb"-?[0-9]+(\.[0-9]+)?(e[0-9]+)?")
    assert [v for v in values.tolist() if v == v] == [float(x[4]) for x in rows if decimal.fullmatch(x[4])]
    doubtful = [i for i, x in enumerate(rows) if not decimal.fullmatch(x[4]) or len(x) > 6]
    assert [row for row in parsed.doubt_row.tolist() if row >= 0] == doubtful
    assert parsed.doubt_row.tolist().count(-1) == len(filled) - len(rows)


def test_line_numbers_and_ends() -> None:
    text = array("one\n\nthree")
    assert [line_number(text, at) for at in (0, 3, 4, 5, 9)] == [1, 1, 2, 3, 3]
    assert [line_end(text, at) for at in (0, 3, 4, 5)] == [3, 3, 4, 10]


def test_ranks_against_scores_are_counted_where_they_are() -> None:
    content = (
        "q Q0 a 1 2 t\nq Q0 b 2 3 t\nq Q0 c x 9 t\nq Q0 d 4 -0.0 t\nq Q0 e 5 0 t\nr Q0 a 1 99 t\nr Q0 b 0 98 t\n"
    )
    parsed = parse_lines(array(content), RUN, lambda done: None)
    assert parsed.n_against == 2
    assert line_number(array(content), parsed.first_against) == 2


def test_progress_ends_with_the_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trec, "CHUNK", 16)
    monkeypatch.setattr(trec, "ROUND", 2)
    text = array("q Q0 a 1 2 t\n" * 40)
    told: list[int] = []
    parse_lines(text, RUN, told.append)
    assert len(told) > 5
    assert told == sorted(told)
    assert told[-1] == len(text)


def bits_of(texts: list[str]) -> np.ndarray:
    parts = [t.encode() for t in texts]
    length = np.array([len(p) for p in parts], np.int32)
    at = np.cumsum(length, dtype=np.int64) - length
    bits = np.empty(len(parts), np.uint64)
    text = np.frombuffer(bytearray(b"".join(parts)), np.uint8)
    read_decimals(text, at, length, powers_of_ten(), bits, 0, len(parts))
    return bits


def exact(text: str) -> int:
    return int.from_bytes(struct.pack("<d", float(text)), "little")


@settings(deadline=None, max_examples=400)
@given(
    decimal_text
    | half_way
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.floats(-1e3, 1e3).map(lambda x: f"{x:.25f}")
)
@example("9007199254740993")
@example("9007199254740992.99999999999999999999")
@example("2.2250738585072011e-308")
@example("1.7976931348623158e308")
@example("-0")
@example("0e400")
@example("1448997445238699")
@example("1e23")
@example("8.41e21")
def test_numbers_are_pythons_floats(text: str) -> None:
    (bits,) = bits_of([text])
    value, matter = judge_number(text.encode())
    if bits == UNDECIDED:
        # Left to Python: only at the edges of float64, or where digits beyond the nineteenth decide.
        assert matter or abs(value) < 1e-290 or abs(value) > 1e300 or sum(c.isdigit() for c in text) > 19
    else:
        assert int(bits) == exact(text)
        assert matter == ""
    if matter == "":
        assert struct.pack("<d", value) == struct.pack("<d", float(text))


@pytest.mark.parametrize(
    "text",
    ["", "-", "+", ".", "e5", "1e", "1e+", "1.2.3", "0x10", "nan", "inf", "1_0", "--1", "1,5", "1 ", "١", "1e5x"],
)
def test_what_is_no_number_is_left_to_python_and_refused(text: str) -> None:
    assert bits_of([text])[0] == UNDECIDED
    assert judge_number(text.encode())[1] != ""


@pytest.mark.parametrize(
    "text", ["5.", ".5", "+5", "007", "1E5", "1e+05", "1e-05", "0.000000000000000000000000001"]
)
def test_spellings_python_takes_are_taken(text: str) -> None:
    assert int(bits_of([text])[0]) == exact(text)


@pytest.mark.parametrize(
    ("text", "matter", "repaired"),
    [
        ("1e400", "too-large", None),
        ("-1e309", "too-large", None),
        ("1e-400", "too-small", 0.0),
        ("0.0e-400", "", 0.0),
        ("4.9e-324", "", 5e-324),
        ("2e-324", "too-small", 0.0),
        ("NaN", "not-finite", None),
        ("-Infinity", "not-finite", None),
        ("3,5", "decimal-comma", 3.5),
        ("1,234,567", "not-a-number", None),
        ("1.234,5", "not-a-number", None),
        ("abc", "not-a-number", None),
    ],
)
def test_matters_and_repairs(text: str, matter: str, repaired: float | None) -> None:
    value, found = judge_number(text.encode())
    assert found == matter
    assert (value != value) if repaired is None else value == repaired
