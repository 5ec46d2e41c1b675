"""Say so when the wait is for the compiler: kernels are compiled at their first use on a machine, and kept."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 0.7
"""Seconds of compiling that pass without a word."""
MESSAGE = "compiling kernels for this machine, once ..."


@contextmanager
def telling_of_compiling(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` once, when compiling inside takes more than a moment; kernels kept from before take none."""
    from numba.core import event

    class Watch(event.Listener):
        """Adds up the time of compiling; kernels that a kernel calls are compiled within its own time."""

        def __init__(self) -> None:
            self.spent, self.began, self.depth, self.told = 0.0, 0.0, 0, False

        def on_start(self, _: Any) -> None:
            now = time.monotonic()
            if self.depth == 0:
                self.began = now
            self.depth += 1
            if not self.told and self.spent + now - self.began > PATIENCE:
                self.told = True
                tell(MESSAGE)

        def on_end(self, _: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                self.spent += time.monotonic() - self.began

    with event.install_listener("numba:compile", Watch()):
        yield
