"""Workers for the tests of `genm.explain.processes`; the processes import them from here."""

import os
import signal
import threading
import time
import warnings
from pathlib import Path

import numpy as np

from genm.errors import ConvergenceWarning, InputError


def wait_for_processes(processes):
    """Leave all items but the first to processes; the parent would be done with them before these are ready."""
    here = processes._take(1 if processes._stored is None else 0)
    while processes._running and processes._stored and processes._events.empty():
        time.sleep(0.01)
    return here if processes._running else here + processes._take(1000)


class Squares:
    """Adds the first square to each item's own; says in which process it did."""

    def __init__(self):
        self.home, self.table = os.getpid(), np.arange(100.0) ** 2

    def values(self, items):
        return [(item, float(self.table[item]), self.is_away) for item in items]

    @property
    def is_away(self):
        """Whether this is not the process of the test."""
        return os.getpid() != self.home


class Deadly(Squares):
    """Its process is killed by an item, as the system does where memory is short."""

    def values(self, items):
        if self.is_away and 30 in items:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().values(items)


class LocalError(Exception):
    """Cannot be pickled: it holds a lock."""

    def __init__(self, where, what):
        super().__init__(f"{where}: {what}")
        self.lock = threading.Lock()


class Plain:
    """A worker without arrays."""

    def values(self, items):
        return [(item, item**2, True) for item in items]


class OddWarning(UserWarning):
    """Wants more than the text."""

    def __init__(self, where, what):
        super().__init__(f"{where}: {what}")


class Failing(Squares):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def values(self, items):
        if self.is_away and self.kind == "warning":
            warnings.warn("stopped at its limit", ConvergenceWarning, stacklevel=1)
        elif self.is_away and self.kind == "odd warning":
            warnings.warn(OddWarning("here", "odd"), stacklevel=1)
        elif self.is_away and self.kind == "local":
            raise LocalError("here", "no")
        elif self.is_away and max(items) > 10:
            raise InputError(f"item {items[0]}: expected less")
        return super().values(items)


class Sleeping(Squares):
    """Says through a pipe that it began, and that it came to an end if nobody stops it."""

    def __init__(self, pipe):
        super().__init__()
        self.pipe = pipe

    def values(self, items):
        if self.is_away:
            with Path(self.pipe).open("w") as told:
                told.write("began\n")
                told.flush()
                time.sleep(100)
                told.write("ended\n")
        return super().values(items)
