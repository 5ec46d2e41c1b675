"""The union of tables of texts is that of Python's sets, in the order of their bytes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genm._math import text_numbers
from genm._math.text_numbers import LONGEST, Table, unite_texts
from genm.ids import Ids, unite

# Few letters, so that prefixes and equal words meet often; one beyond ASCII.
texts = st.text(alphabet="abé09", max_size=12)


def table_of(strings: list[str]) -> Table:
    ids = Ids.of(strings)
    return Table(ids.text, ids.starts)


def check(lists: list[list[str]]) -> None:
    found = unite_texts([table_of(strings) for strings in lists])
    assert found is not None
    united, codes = list(Ids(*found[0])), found[1]
    assert united == sorted({text for strings in lists for text in strings}, key=str.encode)
    for own, strings in zip(codes, lists, strict=True):
        assert [united[code] for code in own.tolist()] == strings


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(texts, unique=True), min_size=1, max_size=4).filter(lambda lists: any(map(any, lists))))
def test_small_tables(lists: list[list[str]]) -> None:
    check(lists)


def test_worked_by_hand() -> None:
    found = unite_texts([table_of(["b", "ab", ""]), table_of(["a", "b"])])
    assert found is not None
    (text, starts), codes = found
    assert text.tobytes() == b"aabb"
    assert starts.tolist() == [0, 0, 1, 3, 4]
    assert [own.tolist() for own in codes] == [[3, 2, 0], [1, 3]]


@pytest.mark.parametrize("form", ["{}", "clueweb09-en{:04d}-00-00142", "{:x}-é", "{:d}.0"])
def test_many_ids_over_several_parts_and_blocks(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    lists = [
        [form.format(number) for number in rng.permutation(100_000)[:n].tolist()] for n in (70_000, 66_000, 10, 0)
    ]
    check(lists)
    tables = [Ids.of(strings) for strings in lists]
    by_number, codes = unite(tables)
    monkeypatch.setattr("genm.ids.unite_texts", lambda _: None)
    by_hash, others = unite(tables)
    assert by_number.text.tobytes() == by_hash.text.tobytes()
    assert by_number.starts.tolist() == by_hash.starts.tolist()
    for own, other in zip(codes, others, strict=True):
        assert own.dtype == other.dtype
        assert own.tolist() == other.tolist()


def test_texts_that_do_not_fit_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = [chr(97 + i) for i in range(26)]
    assert unite_texts([table_of(["a" * (LONGEST + 1), "b"])]) is None
    assert unite_texts([table_of([letter * 20 for letter in letters])]) is None  # 26^20 integers
    assert unite_texts([table_of(["a\0", "a"])]) is None  # a zero byte stands for the end
    assert unite_texts([table_of(["a" * LONGEST, "b" * LONGEST])]) is None  # 2^64
    check([["x" * (LONGEST - 1) + letter for letter in letters]])
    monkeypatch.setattr(text_numbers, "_LARGEST_PART", 20)
    assert unite_texts([table_of(letters)]) is None
