"""The document that everything else is made of: its description and what is built never part."""

import json
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
import pytest
from report.examples import example_report

from genm.report.payload import Report, pack, unpack


def check(value: Any, hint: Any, place: str = "report") -> None:
    """Hold a value to its description, key by key."""
    if is_typeddict(hint):
        assert set(value) == set(get_type_hints(hint)), place
        for key, inner in get_type_hints(hint).items():
            check(value[key], inner, f"{place}.{key}")
    elif get_origin(hint) is list:
        assert isinstance(value, list), place
        for item in value:
            check(item, get_args(hint)[0], f"{place}[]")
    elif get_origin(hint) is dict:
        for item in value.values():
            check(item, get_args(hint)[1], f"{place}{{}}")
    elif type(None) in get_args(hint):
        if value is not None:
            check(value, next(arg for arg in get_args(hint) if arg is not type(None)), place)
    elif isinstance(hint, type):
        assert type(value) is hint, (place, value)
    else:
        assert value in get_args(hint), (place, value)


def test_what_is_built_is_what_is_described(built) -> None:
    check(json.loads(json.dumps(built.report, allow_nan=False)), Report)


def test_the_example_is_too() -> None:
    report = json.loads(json.dumps(example_report(), allow_nan=False))
    check(report, Report)
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
