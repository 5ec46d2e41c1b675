"""Decimal text to float64, correctly rounded, seeing what an ordinary parse hides.

The compiled reader multiplies the digits by a 128-bit power of ten and keeps the result only where the bits
that were cut off cannot change the rounding (the method of Lemire, "Number parsing at a gigabyte per second",
2021). The few it must leave, and everything that is no number, go to `judge_number`, which asks Python.
"""

import functools
import re

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import kernel

LOWEST, HIGHEST = -330, 308
"""Powers of ten in the table; with at most 19 digits, numbers below or above are tiny or too large."""

UNDECIDED = np.uint64(0xFFFFFFFFFFFFFFFF)
"""What the compiled reader gives for text that Python must look at (the bits of no finite number)."""

_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_COMMA = re.compile(rb"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")

_0, _1, _2, _3, _9 = (np.uint64(i) for i in (0, 1, 2, 3, 9))
_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_TEN = np.uint64(10)
_HIDDEN, _TOP = np.uint64(1 << 52), np.uint64(1 << 63)
_WORD, _ROOM_FOR_WORD = np.uint64(16), np.uint64(1 << 48)


@functools.cache
def powers_of_ten() -> NDArray[np.uint64]:
    """Return the leading 128 bits of 10^LOWEST .. 10^HIGHEST, as rows of (high, low) words."""
    words = []
    for exponent in range(LOWEST, HIGHEST + 1):
        power = 5 ** abs(exponent)
        if exponent >= 0:
            bits = power << 128 >> power.bit_length()
        else:
            # Down to 10^-27 a product with the power rounded up is exact; below, the method wants it cut off.
            bits = (1 << (power.bit_length() + 127)) // power + (exponent >= -27)
        words.append((bits >> 64, bits & 0xFFFFFFFFFFFFFFFF))
    return np.array(words, np.uint64)


def judge_number(token: bytes) -> tuple[float, str]:
    """Return a token's value and "", or what is the matter and the value a repair would give (NaN: none).

    The matters: "not-a-number", "not-finite", "too-large", "too-small", "decimal-comma".
    """
    if _NUMBER.fullmatch(token):
        value = float(token)
        if value in (float("inf"), float("-inf")):
            return float("nan"), "too-large"
        if value == 0.0 and re.search(rb"[1-9]", re.split(rb"[eE]", token)[0]):
            return value, "too-small"
        return value, ""
    if _NOT_FINITE.fullmatch(token):
        return float("nan"), "not-finite"
    if _COMMA.fullmatch(token):
        value, matter = judge_number(token.replace(b",", b"."))
        return (value, "decimal-comma") if not matter else (value, matter)
    return float("nan"), "not-a-number"


@kernel
def _product(x: np.uint64, y: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the high and low words of the 128-bit product."""
    x1, x0, y1, y0 = x >> _HALF, x & _LOW_HALF, y >> _HALF, y & _LOW_HALF
    low = x0 * y0
    middle = x1 * y0 + (low >> _HALF)
    other = x0 * y1 + (middle & _LOW_HALF)
    return x1 * y1 + (middle >> _HALF) + (other >> _HALF), x * y


@kernel
def _rounded(digits: np.uint64, exponent: int, powers: NDArray[np.uint64]) -> np.uint64:
    """Return the bits of digits * 10^exponent rounded to float64, or UNDECIDED; digits is not 0."""
    if exponent < LOWEST or exponent > HIGHEST:
        return UNDECIDED
    zeros, x = 0, digits
    while x < _ROOM_FOR_WORD:
        x <<= _WORD
        zeros += 16
    while x < _TOP:
        x <<= _1
        zeros += 1
    high, low = _product(x, powers[exponent - LOWEST, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        # Near a rounding boundary: bring in the second word of the power.
        more, _ = _product(x, powers[exponent - LOWEST, 1])
        low += more
        if low < more:
            high += _1
        if low == UNDECIDED and (exponent < -27 or exponent > 55):
            return UNDECIDED
    top = high >> np.uint64(63)
    shift = top + np.uint64(9)
    mantissa = high >> shift
    # floor(exponent * log2(10)) + 63, in integers
    power = ((217706 * exponent) >> 16) + 63 + np.int64(top) - zeros + 1023
    if power <= 0:
        return UNDECIDED
    exact = low <= _1 and -4 <= exponent <= 23
    if exact and mantissa & _3 == _1 and mantissa << shift == high:
        mantissa &= ~_1  # half way between two numbers: to the even one
    mantissa = (mantissa + (mantissa & _1)) >> _1
    if mantissa >= _HIDDEN << _1:
        mantissa = _HIDDEN
        power += 1
    if power >= 2047:
        return UNDECIDED
    return (mantissa & ~_HIDDEN) | (np.uint64(power) << np.uint64(52))


@kernel
def decimal_bits(
    text: NDArray[np.uint8], begin: np.uint64, end: np.uint64, powers: NDArray[np.uint64]
) -> np.uint64:
    """Return the bits of the float64 nearest to text[begin:end], or UNDECIDED.

    Positions are unsigned: then the compiler need not ask at every byte whether to count from the end.
    """
    i = begin
    sign = _TOP if text[i] == 45 else _0
    if text[i] == 45 or text[i] == 43:
        i += _1
    digits, n_digits, seen, exponent, fraction = _0, 0, 0, 0, 0
    while i < end:
        c = np.uint64(text[i]) - np.uint64(48)
        if c <= _9:
            seen = 1
            if n_digits < 19:
                digits = digits * _TEN + c
                exponent -= fraction
            else:
                exponent += 1 - fraction
            if digits != _0:
                n_digits += 1
        elif text[i] == 46 and fraction == 0:
            fraction = 1
        else:
            break
        i += _1
    if seen == 0:
        return UNDECIDED
    if i < end and (text[i] == 101 or text[i] == 69):
        i += _1
        down = i < end and text[i] == 45
        if i < end and (text[i] == 45 or text[i] == 43):
            i += _1
        if i == end:
            return UNDECIDED
        number = 0
        while i < end and 48 <= text[i] <= 57 and number < 100_000:
            number = number * 10 + text[i] - 48
            i += _1
        exponent += -number if down else number
    if i != end:
        return UNDECIDED
    if digits == _0:
        return sign
    bits = _rounded(digits, exponent, powers)
    if n_digits > 19 and bits != _rounded(digits + _1, exponent, powers):
        return UNDECIDED  # the digits beyond the nineteenth decide
    return bits if bits == UNDECIDED else bits | sign


@kernel
def read_decimals(
    text: NDArray[np.uint8],
    at: NDArray[np.int64],
    length: NDArray[np.int32],
    powers: NDArray[np.uint64],
    bits: NDArray[np.uint64],
    low: int,
    high: int,
) -> None:
    """Write the bits of the numbers text[at:at + length]; an empty piece is UNDECIDED."""
    for i in range(low, high):
        begin, end = np.uint64(at[i]), np.uint64(at[i] + length[i])
        bits[i] = UNDECIDED if begin == end else decimal_bits(text, begin, end, powers)
