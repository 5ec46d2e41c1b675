"""Arrays as JSON carries them: base64 of their bytes, with type and shape."""

import base64
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray


class Packed(TypedDict):
    """An array of numbers: base64 of its bytes, lowest byte first; `shape` is row by row."""

    dtype: Literal["float64", "int32", "uint8"]
    shape: list[int]
    base64: str


def pack(array: NDArray[Any], dtype: Literal["float64", "int32", "uint8"]) -> Packed:
    """Return an array as JSON carries it."""
    plain = np.ascontiguousarray(array, np.dtype(dtype).newbyteorder("<"))
    return {"dtype": dtype, "shape": list(plain.shape), "base64": base64.b64encode(plain.tobytes()).decode()}


def unpack(packed: Packed) -> NDArray[Any]:
    """Return the array again."""
    raw = base64.b64decode(packed["base64"])
    return np.frombuffer(raw, np.dtype(packed["dtype"]).newbyteorder("<")).reshape(packed["shape"])
