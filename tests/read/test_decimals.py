"""Numbers in text become the float64 that Python's float() gives, to the last bit."""

import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from genm.read.decimals import UNDECIDED, judge_number, powers_of_ten, read_decimals


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


digits = st.text("0123456789", min_size=1, max_size=25)
decimal_text = st.builds(
    lambda sign, whole, fraction, exponent: sign + whole + fraction + exponent,
    st.sampled_from(["", "-", "+"]),
    digits,
    st.just("") | digits.map(lambda d: "." + d),
    st.just("") | st.builds(lambda e, n: f"{e}{n}", st.sampled_from("eE"), st.integers(-360, 320)),
)
half_way = st.builds(lambda m, s: str((2 * m + 1) << s), st.integers(2**52, 2**53 - 1), st.integers(0, 10))


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
