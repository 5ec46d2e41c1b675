"""The document that everything else is made of."""

import json

import numpy as np
import pytest
from report.examples import example_report

from genm.report.payload import pack, unpack


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8"])
def test_arrays_survive_to_the_bit(dtype) -> None:
    array = (np.random.default_rng(0).random((3, 5)) * 200).astype(dtype)
    back = unpack(json.loads(json.dumps(pack(array, dtype))))
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    assert back.shape == (3, 5)


def test_the_example_is_json_and_its_columns_are_as_long_as_it_says() -> None:
    report = json.loads(json.dumps(example_report(), allow_nan=False))
    table = report["queries"]
    assert {len(table[c]) for c in ("query_ids", "delta", "fold", "n_relevant", "detail")} == {report["n_queries"]}
    assert {len(column) for column in table["values"].values()} == {report["n_queries"]}
    assert set(table["values"]) == {system["id"] for system in report["measures"]["systems"]}
