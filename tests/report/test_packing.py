"""Arrays in JSON."""

import json

import numpy as np
import pytest

from genm.report.packing import pack, unpack


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8"])
def test_arrays_survive_to_the_bit(dtype) -> None:
    array = (np.random.default_rng(0).random((3, 5)) * 200).astype(dtype)
    back = unpack(json.loads(json.dumps(pack(array, dtype))))
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    assert back.shape == (3, 5)
