"""Tables of ids behave as lists, dictionaries and sorts of Python strings do."""

import string

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from genm import ids as module
from genm.ids import Ids, byte_order, encode, find, intern, unite

# Few letters and a NUL, so that prefixes, equal words and padding meet often; some beyond ASCII.
id_texts = st.text(alphabet="ab\0éz0", max_size=20) | st.sampled_from(
    ["", "longer than a word", "longer than a wort", "longer than a word "]
)
quick = settings(deadline=None, max_examples=60)


@quick
@given(st.lists(id_texts, unique=True))
def test_a_table_gives_back_its_strings(strings: list[str]) -> None:
    table = Ids.of(strings)
    assert len(table) == len(strings)
    assert list(table) == strings
    assert [table[i] for i in range(len(table))] == strings


@quick
@given(st.lists(id_texts))
def test_codes_follow_first_appearance(strings: list[str]) -> None:
    table, codes = encode(strings)
    assert list(table) == list(dict.fromkeys(strings))
    assert [table[c] for c in codes] == strings


@quick
@given(st.lists(id_texts, unique=True))
@example(["a\0", "a", "a\0\0", ""])
@example([f"shared-prefix-{i:010d}{tail}" for i in (12, 3, 400) for tail in ("", "x", "xyz1234567", "\0")])
@example([f"{i * 37 % 300:03d}-{string.ascii_letters}-{i % 7}{'!' * (i % 5)}" for i in range(300)])
def test_byte_order_is_the_order_of_strings(strings: list[str]) -> None:
    order = byte_order(Ids.of(strings))
    assert [strings[i] for i in order] == sorted(strings, key=str.encode)


@quick
@given(st.lists(id_texts, unique=True), st.lists(id_texts, unique=True))
def test_find_gives_codes_or_minus_one(table: list[str], wanted: list[str]) -> None:
    found = find(Ids.of(table), Ids.of(wanted))
    assert found.tolist() == [table.index(w) if w in table else -1 for w in wanted]


@quick
@given(st.lists(st.lists(id_texts, unique=True), max_size=4))
def test_unite_sorts_and_keeps_every_code(lists: list[list[str]]) -> None:
    united, codes = unite([Ids.of(x) for x in lists])
    assert list(united) == sorted({s for x in lists for s in x}, key=str.encode)
    assert len(codes) == len(lists)
    for own, given_list in zip(codes, lists, strict=True):
        assert [united[c] for c in own] == given_list


def test_take_reorders_and_refuses_unknown_codes() -> None:
    table = Ids.of(["x", "", "yy"])
    assert list(table.take(np.array([2, 0, 1]))) == ["yy", "x", ""]
    with pytest.raises(IndexError):
        table.take(np.array([3]))
    with pytest.raises(IndexError):
        table[-1]


def test_many_ids_over_several_parts_and_blocks() -> None:
    rng = np.random.default_rng(7)
    numbers = rng.integers(0, 60_000, 150_000)
    strings = [f"{n}" if n % 3 else f"document-number-{n}" for n in numbers.tolist()]
    table, codes = encode(strings)
    assert list(table) == list(dict.fromkeys(strings))
    listed = np.array(list(table))
    assert (listed[codes] == np.array(strings)).all()
    order = byte_order(table)
    assert (listed[order[:-1]] < listed[order[1:]]).all()


def test_equal_hashes_of_different_ids_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the hash says, long ids are told apart by their bytes."""

    def everything_collides(text, at, length, hashes, cuts, counts, low, high):  # type: ignore[no-untyped-def]
        for block in range(low, high):
            hashes[cuts[block] : cuts[block + 1]] = 1
            counts[block, 0] = cuts[block + 1] - cuts[block]

    strings = ["first long id", "second long id", "first long id", "second long ix"]
    monkeypatch.setattr(module, "_hash", everything_collides)
    table, codes = encode(strings)
    assert list(table) == [strings[0], strings[1], strings[3]]
    assert codes.tolist() == [0, 1, 0, 2]


def test_intern_reads_pieces_of_a_text() -> None:
    text = np.frombuffer(b"d1 d22 d1", np.uint8)
    table, codes = intern(text, np.array([0, 3, 7]), np.array([2, 3, 2], np.int32))
    assert list(table) == ["d1", "d22"]
    assert codes.tolist() == [0, 1, 0]


def test_a_table_shows_how_many_and_the_first_few() -> None:
    assert repr(Ids.of([])) == "<Ids of 0>"
    assert repr(Ids.of(["q1", "ü"])) == "<Ids of 2: 'q1', 'ü'>"
    assert repr(Ids.of(str(i) for i in range(1400))) == "<Ids of 1,400: '0', '1', '2', ...>"
