"""Tables of ids behave as lists, dictionaries and sorts of Python strings do."""

import string
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from genm import ids as module
from genm.ids import Ids, Interning, byte_order, encode, find, intern, unite

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


def all_hashes_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    deal = module._deal

    def everything_collides(text, at, length, cuts, before, spare, hashes, rows, ends, *others):  # type: ignore[no-untyped-def]
        deal(text, at, length, cuts, before, spare, hashes, rows, ends, *others)
        for block in range(len(cuts) - 1):
            own = slice(before + cuts[block], before + cuts[block + 1])
            hashes[own], rows[own], ends[block] = 1, np.arange(own.start, own.stop), own.stop - own.start

    monkeypatch.setattr(module, "_deal", everything_collides)


def test_equal_hashes_of_different_ids_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the hash says, long ids are told apart by their bytes."""
    all_hashes_equal(monkeypatch)
    strings = ["first long id", "second long id", "first long id", "second long ix"]
    table, codes = encode(strings)
    assert list(table) == [strings[0], strings[1], strings[3]]
    assert codes.tolist() == [0, 1, 0, 2]
    assert find(table, Ids.of(["second long ix", "another id"])).tolist() == [2, -1]


def added(blocks: list[list[str]], order: list[int]) -> tuple[list[str], list[int]] | None:
    """Return what `Interning` finds of the strings of some blocks, added in this order."""
    cuts = np.append(0, np.cumsum([len(block) for block in blocks]))
    size = sum(len(string.encode()) for block in blocks for string in block)
    pieces = Interning(int(cuts[-1]), size, len(blocks), int(cuts[-1]))
    for number in order:
        one = Ids.of(blocks[number])
        pieces.add(number, int(cuts[number]), one.text, one.starts[:-1], np.diff(one.starts).astype(np.int32))
    found = pieces.table(cuts)
    return None if found is None else (list(found[0]), found[1].tolist())


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.lists(id_texts, min_size=1, max_size=8), min_size=1, max_size=6), st.randoms(use_true_random=False)
)
def test_blocks_in_any_order_give_what_intern_gives(blocks: list[list[str]], random: Random) -> None:
    order = list(range(len(blocks)))
    random.shuffle(order)
    table, codes = encode(string for block in blocks for string in block)
    assert added(blocks, order) == (list(table), codes.tolist())


def test_copies_with_equal_hashes_and_other_bytes_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    all_hashes_equal(monkeypatch)
    assert added([["first long id"], ["first long id"]], [1, 0]) == (["first long id"], [0, 0])
    assert added([["first long id"], ["first long ix"]], [0, 1]) is None


def test_intern_reads_pieces_of_a_text() -> None:
    text = np.frombuffer(b"d1 d22 d1", np.uint8)
    table, codes = intern(text, np.array([0, 3, 7]), np.array([2, 3, 2], np.int32))
    assert list(table) == ["d1", "d22"]
    assert codes.tolist() == [0, 1, 0]


def test_a_table_shows_how_many_and_the_first_few() -> None:
    assert repr(Ids.of([])) == "<Ids of 0>"
    assert repr(Ids.of(["q1", "ü"])) == "<Ids of 2: 'q1', 'ü'>"
    assert repr(Ids.of(str(i) for i in range(1400))) == "<Ids of 1,400: '0', '1', '2', ...>"
