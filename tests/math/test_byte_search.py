"""Words and white space of text, as Python finds them byte by byte."""

import struct

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genm._math import byte_search


@numba.njit
def blanks_at(text, at):
    return byte_search.blanks(text, at)


@numba.njit
def word_at(text, at):
    return byte_search.load_word(text, at)


@numba.njit
def put(text, at, word):
    byte_search.store_word(text, at, word)


@numba.njit
def of_word(word):
    return byte_search.trailing_zeros(word), byte_search.leading_zeros(word), byte_search.reversed_bytes(word)


@numba.njit
def bits(number):
    return byte_search.bits_of(number)


def array(content):
    return np.frombuffer(bytearray(content), np.uint8)


@given(st.binary(min_size=64, max_size=80), st.data())
def test_blanks_are_the_bytes_up_to_the_space(content, data):
    at = data.draw(st.integers(0, len(content) - 64))
    assert int(blanks_at(array(content), at)) == sum(1 << i for i in range(64) if content[at + i] <= 32)


@given(st.binary(min_size=16, max_size=16), st.integers(0, 8))
def test_words_are_eight_bytes(content, at):
    word = word_at(array(content), at)
    assert int(word) == int.from_bytes(content[at : at + 8], "little")
    copy = np.zeros(16, np.uint8)
    put(copy, at, np.uint64(word))
    assert copy.tobytes() == b"\0" * at + content[at : at + 8] + b"\0" * (8 - at)


@given(st.integers(0, 2**64 - 1))
def test_zeros_and_bytes_of_a_word(word):
    trailing, leading, reverse = (int(x) for x in of_word(np.uint64(word)))
    assert trailing == ((word & -word).bit_length() - 1 if word else 64)
    assert leading == 64 - word.bit_length()
    assert reverse == int.from_bytes(word.to_bytes(8, "big"), "little")


@given(st.floats())
def test_bits_of_a_number(number):
    assert int(bits(number)) == struct.unpack("<Q", struct.pack("<d", number))[0]


def test_only_contiguous_bytes_are_searched():
    with pytest.raises(numba.TypingError):
        blanks_at(np.zeros(128, np.uint8)[::2], 0)
