"""Stable sorting of one query's rows by integer keys: a byte or eleven bits at a time.

A query holds from a handful to some thousands of rows. There a radix sort costs a third of a comparison sort,
compiles in a fraction of the time, and is stable, which is what settles ties.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from genm._math.parallel import kernel

N_COUNTS = 2048
"""Length of the counter that the sort needs."""

Count: TypeAlias = int | np.int64
"""Kernels say np.int64(0) where 0 would do: for a plain constant numba compiles a copy of what they call."""

_SIGN = np.uint64(1 << 63)
_FEW = 24


@kernel
def sort_pairs(
    keys: NDArray[np.uint64],
    items: NDArray[np.int32],
    n: Count,
    bits: Count,
    spare_keys: NDArray[np.uint64],
    spare_items: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Sort keys[:n] upwards and take items[:n] along; only the lowest `bits` bits of the keys are in use."""
    if n <= _FEW:
        for i in range(1, n):
            key, item, j = keys[i], items[i], i - 1
            while j >= 0 and keys[j] > key:
                keys[j + 1], items[j + 1] = keys[j], items[j]
                j -= 1
            keys[j + 1], items[j + 1] = key, item
        return
    width = 8 if n < 1024 else 11
    mask = np.uint64((1 << width) - 1)
    from_keys, from_items, to_keys, to_items = keys, items, spare_keys, spare_items
    moved = False
    for low in range(0, bits, width):
        shift = np.uint64(low)
        counts[: 1 << width] = 0
        for i in range(n):
            counts[(from_keys[i] >> shift) & mask] += 1
        if counts[(from_keys[0] >> shift) & mask] == n:
            continue
        total = 0
        for digit in range(1 << width):
            count = counts[digit]
            counts[digit] = total
            total += count
        for i in range(n):
            digit = (from_keys[i] >> shift) & mask
            at = counts[digit]
            counts[digit] = at + 1
            to_keys[at], to_items[at] = from_keys[i], from_items[i]
        from_keys, to_keys = to_keys, from_keys
        from_items, to_items = to_items, from_items
        moved = not moved
    if moved:
        for i in range(n):
            keys[i], items[i] = from_keys[i], from_items[i]


@kernel
def downward_keys(values: NDArray[np.float64], n: Count, keys: NDArray[np.uint64]) -> None:
    """Write keys whose upward order is the downward order of values[:n]; both zeros get one key."""
    for i in range(n):
        values[i] += 0.0  # minus zero becomes zero
    bits = values.view(np.uint64)
    for i in range(n):
        keys[i] = bits[i] if bits[i] & _SIGN else ~(bits[i] | _SIGN)
