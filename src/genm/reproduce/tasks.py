"""Pieces of work that wait for nothing but a free core."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from genm._math.parallel import over_items

T = TypeVar("T")


class Task(Generic[T]):
    """One piece of work, and its result once it is done."""

    value: T

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work

    def run(self) -> None:
        """Do the work in this thread, and let go of what it needed."""
        self.value = self._work()
        del self._work


def run_all(tasks: Sequence[Task[Any]]) -> None:
    """Do all the work, several pieces at a time, begun in this order: so the longest should come first."""
    over_items(Task.run, tasks)
