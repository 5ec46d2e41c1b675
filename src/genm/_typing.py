"""Types of arrays that many modules share."""

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Codes = NDArray[np.int32]
"""What 32 bits hold: codes of documents, ranks, grades, topics."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Singles = NDArray[np.float32]
Words = NDArray[np.uint64]
