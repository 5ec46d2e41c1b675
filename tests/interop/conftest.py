import numba.typed  # noqa: F401 - its own kernels must be loaded before the fixture switches compiling off
import pytest
from numba.core import config


@pytest.fixture
def ranx(monkeypatch: pytest.MonkeyPatch):
    """Give ranx itself, none of whose functions is compiled: that takes 40 s to hold two queries.

    numba then hands out dictionaries and lists of Python for its own; test_frames.py has a mapping that is neither.
    genm's kernels are loaded by now and stay compiled. One that is loaded in between fails aloud (`compile_later`).
    """
    monkeypatch.setattr(config, "DISABLE_JIT", True)
    return pytest.importorskip("ranx", reason="ranx is not installed")
