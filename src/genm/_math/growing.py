"""Arrays that grow inside compiled code, where lists would be slow and slices take seconds to compile."""

from typing import Any

import numpy as np

from genm._math.exact.rank_gains import Floats
from genm._math.parallel import kernel


@kernel
def longer_ints(array: Any, needed: int) -> Any:
    """Return the array, or a longer copy in which `needed` entries fit; its integers may be of any size."""
    if needed <= len(array):
        return array
    longer = np.empty(max(needed, len(array) * 3 // 2), array.dtype)
    for e in range(len(array)):
        longer[e] = array[e]
    return longer


@kernel
def longer_floats(array: Floats, needed: int) -> Floats:
    """Return the array, or a longer copy in which `needed` entries fit."""
    if needed <= len(array):
        return array
    longer = np.empty(max(needed, len(array) * 3 // 2))
    for e in range(len(array)):
        longer[e] = array[e]
    return longer
