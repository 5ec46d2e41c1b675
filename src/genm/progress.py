"""How long work tells how far it has come: a callable passed down; only the command line draws it."""

from typing import Protocol


class Progress(Protocol):
    """Called as `progress(task, done, total)`; `total` 0 means unknown; done == total closes the task."""

    def __call__(self, task: str, done: int, total: int, /) -> None:
        """Tell that `done` of `total` steps of `task` are finished."""


def silent(task: str, done: int, total: int, /) -> None:
    """Show nothing: the default everywhere below the command line."""
