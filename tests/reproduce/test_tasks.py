"""Pieces of work side by side."""

import pytest

from genm.errors import InputError
from genm.reproduce.tasks import Task, run_all


def test_every_task_keeps_its_own_result(monkeypatch):
    for threads in ("1", "3"):
        monkeypatch.setenv("GENM_THREADS", threads)
        tasks = [Task(lambda n=n: n * n) for n in range(20)]
        run_all(tasks)
        assert [task.value for task in tasks] == [n * n for n in range(20)]


def test_what_goes_wrong_is_heard_of():
    def refuse() -> None:
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        run_all([Task(refuse), Task(lambda: None)])
