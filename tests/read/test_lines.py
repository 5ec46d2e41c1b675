"""The compiled line reader sees the same columns as str.split, however the text is cut."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm.read import lines
from genm.read.lines import Layout, line_end, line_number, parse_lines

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


def array(text: str) -> np.ndarray:
    return np.frombuffer(bytearray(text.encode()), np.uint8)


@settings(deadline=None, max_examples=100)
@given(st.lists(line, max_size=12), st.booleans(), st.sampled_from([1, 7, 40, 1 << 20]))
def test_columns_are_those_of_split(parts: list[str], last_end: bool, chunk: int) -> None:
    content = "".join(parts)
    content = content if last_end else content.rstrip("\r\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK", chunk)
        parsed = parse_lines(array(content), RUN, lambda done: None)
    split = [x.split() for x in content.encode().split(b"\n")]
    filled = [x for x in split if x and not x[0].startswith(b"#")]
    assert parsed.n_comments == sum(bool(x) and x[0].startswith(b"#") for x in split)
    rows = [x for x in filled if len(x) == 6]
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
    doubtful = [i for i, x in enumerate(rows) if not decimal.fullmatch(x[4])]
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
    monkeypatch.setattr(lines, "CHUNK", 16)
    monkeypatch.setattr(lines, "_ROUND", 2)
    text = array("q Q0 a 1 2 t\n" * 40)
    told: list[int] = []
    parse_lines(text, RUN, told.append)
    assert len(told) > 5
    assert told == sorted(told)
    assert told[-1] == len(text)
