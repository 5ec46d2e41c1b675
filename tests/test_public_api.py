"""The root exports what it says it exports."""

import genm


def test_version_is_a_string() -> None:
    assert genm.__version__.count(".") == 2
