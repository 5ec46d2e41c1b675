"""The sigmoid of Eq. (3) for the kernels: an exponential that the compiler turns into vector code.

The compiled code cannot call a vector library, so exp is a polynomial here: x = k ln 2 + r, exp(x) = 2^k p(r)
with |r| <= ln(2) / 2, and 2^k is put together from its bits. Relative error below 1e-14 for |x| <= 708.
"""

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from genm._math.compiled import kept

TAIL = 37.0
"""exp(-37) is below the last bit of 1: beyond it, a sigmoid is 0 or 1 in float64."""
STEEPEST = 700.0
"""Arguments are cut here: exp(700) still fits float64."""

_SHIFT = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the lowest bits
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10


@intrinsic
def _read_bits(_context: Any, _number: Any) -> Any:
    """Read a float64 as an int64 with the same bits."""

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _read_float(_context: Any, _bits: Any) -> Any:
    """Read an int64 as a float64 with the same bits."""

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


# The decorator hides that what is called takes the number alone.
_bits_of: Callable[[float], int] = cast("Any", _read_bits)
_float_of: Callable[[int], float] = cast("Any", _read_float)


@kept(fastmath={"contract"})
def exponential(x: float) -> float:
    """Return exp(x) for |x| <= 708. Must not be compiled with reordered sums: `_SHIFT` would vanish."""
    shifted = x * _LOG2_E + _SHIFT
    k = shifted - _SHIFT
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    r2 = r * r
    low = (1.0 + r) + r2 * (1 / 2 + r * (1 / 6))
    middle = (1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040))
    high = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800 + r * (1 / 39916800))
    r4 = r2 * r2
    return (low + r4 * (middle + r4 * high)) * _float_of((_bits_of(shifted) + 1023) << 52)
