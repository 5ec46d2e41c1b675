"""Callers of the cache that come at the same time, apart from the tests: a process of theirs imports this alone."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from genm import cache


def ask(ledger: str, n: int, arrived: Any) -> None:
    """Ask for an entry; its build waits until all `n` callers have found no entry and have reached the lock."""

    def build():
        with Path(ledger).open("a") as file:
            file.write("built\n")
        assert all(arrived.acquire(timeout=60) for _ in range(n))
        return {"a": np.arange(3)}

    assert cache.cached("x", ("slow",), build)["a"].tolist() == [0, 1, 2]


def counting_arrivals(arrived: Any):
    """Return the function that locks an entry, made to count the callers that reach it."""
    locked = cache._locked

    def counted(path: Path) -> AbstractContextManager[Any]:
        arrived.release()
        return locked(path)

    return counted


def ask_in_a_process(ledger: str, n: int, arrived: Any) -> None:
    cache._locked = counting_arrivals(arrived)
    ask(ledger, n, arrived)
