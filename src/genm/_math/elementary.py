"""exp, log, log2 and atan with the same bits on every processor.

The functions of the C library and of numpy differ in their last digit from one processor to the next, and one digit
can swap two documents. These use only + - * / and the bits of a float64, which round the same everywhere. Relative
errors are below 1e-14 for exp and 1e-15 for the others.

`exponential`, `exp2`, `logarithm`, `logarithm2` and `arctangent` take one number and are for kernels;
`exponentials`, `logarithms` and `logarithms2` take arrays.
"""

import math
from collections.abc import Callable

import numpy as np

from genm._math.lanes import power_of_two, scale
from genm._math.parallel import kernel, part
from genm._typing import Floats

TAIL = 37.0
"""exp(-37) is below the last bit of 1: beyond it, a sigmoid is 0 or 1 in float64."""
STEEPEST = 700.0
"""Arguments are cut here: exp(700) still fits float64."""

_SHIFT = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the lowest bits
LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # 33 bits, so that its product with an exponent is exact
_LN2_LOW = 1.90821492927058770002e-10
_TWO_LOG2_E = 2.8853900817779268
_TWO_LOG2_E_LOW = 4.0710547481862066e-17
_SPLIT = 134217729.0  # 2^27 + 1 cuts a float64 into two halves of 26 bits
_ROOT_HALF = 0.7071067811865476
_HALF_PI = 1.5707963267948966
_ATAN_STEP = 0.125
_ATANS = tuple(math.atan(_ATAN_STEP * i) for i in range(9))


@part()
def exponential(x: float) -> float:
    """Return exp(x) for |x| <= 708: x a number, or eight in lanes. x = k ln 2 + r, exp(x) = 2^k p(r)."""
    shifted = x * LOG2_E + _SHIFT
    k = shifted - _SHIFT
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    r2 = r * r
    low = (1.0 + r) + r2 * (1 / 2 + r * (1 / 6))
    middle = (1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040))
    high = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800 + r * (1 / 39916800))
    r4 = r2 * r2
    power: float = power_of_two(shifted)
    return (low + r4 * (middle + r4 * high)) * power


@part()
def exp2(x: float) -> float:
    """Return 2^x for |x| <= 1020: x a number, or lanes. x = k + f, 2^x = 2^k p(f).

    p is the polynomial of degree 10 with p(0) = 1 whose relative error is least from -1/2 to 1/2 (Remez): 3e-16.
    """
    shifted = x + _SHIFT
    f = x - (shifted - _SHIFT)
    f2 = f * f
    odd = 1.525264774769592e-05 + f2 * 1.0210506458816145e-07
    odd = 0.6931471805599516 + f2 * (0.05550410866434658 + f2 * (0.001333355824648072 + f2 * odd))
    even = 1.321523563477604e-06 + f2 * 7.111758687557852e-09
    even = 0.24022650695910472 + f2 * (0.009618129107380715 + f2 * (0.00015403530800818256 + f2 * even))
    power: float = scale((1.0 + f2 * even) + f * odd, shifted)
    return power


@part()
def _near_1(x: float) -> tuple[float, int]:
    """Return m from the root of 1/2 to the root of 2, and k, with m 2^k = x."""
    m, k = math.frexp(x)
    return (2.0 * m, k - 1) if m < _ROOT_HALF else (m, k)


@part()
def _atanh_series(z: float) -> float:
    """Return (atanh(s) - s) / (s z) for z = s^2 up to .03: 1/3 + z/5 + z^2/7 + ..."""
    series = 1 / 21 + z * (1 / 23)
    for n in (19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        series = 1.0 / n + z * series
    return series


@part()
def _log_near_1(m: float) -> float:
    """Return log(m) for m from the root of 1/2 to the root of 2: 2 atanh(s), s = (m - 1) / (m + 1)."""
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    series = _atanh_series(z)
    # f - s f + 2 s z series, the largest part first and exact: m - 1 is
    return f - s * (f - 2.0 * z * series)


@part()
def logarithm(x: float) -> float:
    """Return log(x) for a finite x above 0, -inf for 0."""
    if x == 0.0:
        return -math.inf
    m, k = _near_1(x)
    return k * _LN2_HIGH + (_log_near_1(m) + k * _LN2_LOW)


@part()
def _product(a: float, b: float) -> tuple[float, float]:
    """Return a b rounded, and what rounding took away (Dekker 1971)."""
    p = a * b
    x = a * _SPLIT
    a_high = x - (x - a)
    x = b * _SPLIT
    b_high = x - (x - b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@part()
def logarithm2(x: float) -> float:
    """Return log2(x) for a finite x above 0: exact for powers of two, and nearly always correctly rounded.

    trec_eval takes its discounts from such a function, and nDCG is held to its last digit. With m x 2^k = x and
    s = (m - 1) / (m + 1), log2(x) = k + (2 / ln 2) atanh(s), the leading term carried in two numbers.
    """
    m, k = _near_1(x)
    f, d = m - 1.0, m + 1.0
    lost = m - (d - 1.0)  # by rounding in m + 1
    s = f / d
    p, e = _product(s, d)
    s_low = (((f - p) - e) - s * lost) / d
    z = s * s
    series = _atanh_series(z)
    p, e = _product(_TWO_LOG2_E, s)
    low = e + (_TWO_LOG2_E * (s_low + s * z * series) + _TWO_LOG2_E_LOW * s)
    high = k + p
    rest = p - (high - k) if k else 0.0
    return high + (rest + low)


@part()
def arctangent(x: float) -> float:
    """Return atan(x): that of the nearest eighth, and a series for what is left."""
    size = abs(x)
    y = size if size <= 1.0 else 1.0 / size
    i = int(y / _ATAN_STEP + 0.5)
    c = _ATAN_STEP * i
    t = (y - c) / (1.0 + y * c)
    z = t * t
    series = 1 / 13 - z * (1 / 15)
    for n in (11.0, 9.0, 7.0, 5.0, 3.0):
        series = 1.0 / n - z * series
    angle = _ATANS[i] + (t - t * z * series)
    if size > 1.0:
        angle = _HALF_PI - angle
    return -angle if x < 0.0 else angle


@kernel
def _exponentials(x: Floats, out: Floats) -> None:
    for i in range(len(x)):
        value = min(x[i], STEEPEST)
        out[i] = exponential(value) if value > -STEEPEST else 0.0


@kernel
def _logarithms(x: Floats, out: Floats) -> None:
    for i in range(len(x)):
        out[i] = logarithm(x[i])


@kernel
def _logarithms2(x: Floats, out: Floats) -> None:
    for i in range(len(x)):
        out[i] = logarithm2(x[i])


def _of_each(function: Callable[[Floats, Floats], None], x: Floats | float) -> Floats:
    flat = np.ascontiguousarray(x, np.float64).ravel()
    out = np.empty(len(flat))
    function(flat, out)
    return out.reshape(np.shape(x))


def exponentials(x: Floats | float) -> Floats:
    """Return exp(x) of every number: 0 below -700, and exp(700) above 700."""
    return _of_each(_exponentials, x)


def logarithms(x: Floats | float) -> Floats:
    """Return log(x) of every number, none negative; -inf for 0."""
    return _of_each(_logarithms, x)


def logarithms2(x: Floats | float) -> Floats:
    """Return log2(x) of every number, all above 0; exact for powers of two."""
    return _of_each(_logarithms2, x)
