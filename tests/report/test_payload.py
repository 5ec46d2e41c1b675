"""A built report has exactly the declared keys and types."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from report.examples import example_report

from genm.report.payload import Report, pack, unpack


def check(report: Any) -> None:
    """Check every value against its declared type, and that there are no other keys."""
    assert json.dumps(msgspec.convert(report, Report), sort_keys=True) == json.dumps(report, sort_keys=True)


def test_what_is_built_is_what_is_described(built) -> None:
    check(json.loads(json.dumps(built.report, allow_nan=False)))


def test_the_example_is_too() -> None:
    report = json.loads(json.dumps(example_report(), allow_nan=False))
    check(report)
    table = report["queries"]
    assert {len(table[c]) for c in ("query_ids", "delta", "fold", "n_relevant", "detail")} == {report["n_queries"]}
    assert {len(column) for column in table["values"].values()} == {report["n_queries"]}
    assert set(table["values"]) == {system["id"] for system in report["measures"]["systems"]}


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8"])
def test_arrays_survive_to_the_bit(dtype) -> None:
    array = (np.random.default_rng(0).random((3, 5)) * 200).astype(dtype)
    back = unpack(json.loads(json.dumps(pack(array, dtype))))
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    assert back.shape == (3, 5)
