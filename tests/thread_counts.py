"""Let a test run on a number of threads, however small its data."""

import pytest

from genm._math import parallel


def use_threads(patch: pytest.MonkeyPatch, n: str) -> None:
    """Share all work among so many threads, also work that one thread does sooner."""
    patch.setenv("GENM_THREADS", n)
    for name in ("FEW_SCORES", "SMALL_COST"):
        patch.setattr(parallel, name, 0)
    patch.setattr(parallel, "LEAST_COST", 1)
