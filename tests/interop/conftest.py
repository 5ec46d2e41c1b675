import sys

import numba.typed  # noqa: F401 - its own kernels must be loaded before the fixture switches compiling off
import pytest
from numba.core import config

from genm._math.parallel import LazyKernel


@pytest.fixture
def ranx(monkeypatch: pytest.MonkeyPatch):
    """Give ranx itself, none of whose functions is compiled: that takes 40 s to hold two queries.

    numba then hands out dictionaries and lists of Python for its own; test_frames.py has a mapping that is neither.
    ir_measures may have imported ranx with compiled functions, so that it is imported anew. genm's kernels are made
    known to numba before, and stay compiled. One that is loaded in between fails aloud.
    """
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "ranx":
            monkeypatch.delitem(sys.modules, name)
        elif name.startswith("genm."):
            for value in vars(module).values():
                if isinstance(value, LazyKernel):
                    assert value._dispatcher is not None
    monkeypatch.setattr(config, "DISABLE_JIT", True)
    return pytest.importorskip("ranx", reason="ranx is not installed")
