"""Several fits that ask a table at the same time share its passes.

The folds of a cross-validation ask about different weights, but a table that does not fit into memory is read for
each question. Here every job (a fold, a start) has a thread. A job that asks waits until all other jobs wait, too,
or are finished; one pass over the table then answers all of them. No answer depends on what else a pass is asked.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from genm._math.parallel import items_run_by
from genm.scale.evaluation import Answer, Request

Ask = Callable[[Sequence[Request]], list[Answer]]


@dataclass(eq=False)
class _Question:
    requests: list[Request]
    answers: list[Answer] = field(default_factory=list)
    error: BaseException | None = None
    is_answered: bool = False


class Lockstep:
    """Collects the questions of all jobs into passes; works as a runner of `genm._math.parallel.over_items`."""

    def __init__(self, ask: Ask, recall: Callable[[Request], Answer | None]) -> None:
        self._ask, self._recall = ask, recall
        self._changed = threading.Condition()
        self._n_running = 1  # jobs that can ask: at first the caller
        self._waiting: list[_Question] = []
        # passes have a thread of their own: kernels are compiled and files read on a stack of the usual size
        self._passes = ThreadPoolExecutor(1, thread_name_prefix="genm-pass")

    def close(self) -> None:
        """End the thread of the passes."""
        self._passes.shutdown(wait=False, cancel_futures=True)

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the answers, once all jobs wait for theirs; at once if all of them are known."""
        known = [self._recall(request) for request in requests]
        found = [answer for answer in known if answer is not None]
        if len(found) == len(known):
            return found
        question = _Question(list(requests))
        with self._changed:
            self._waiting.append(question)
            while not question.is_answered:
                if len(self._waiting) == self._n_running:
                    self._answer_all()
                else:
                    self._changed.wait()
        if question.error is not None:
            raise question.error
        return question.answers

    def _answer_all(self) -> None:
        asked, self._waiting = self._waiting, []
        try:
            answers = self._passes.submit(self._ask, [r for one in asked for r in one.requests]).result()
        except BaseException as error:  # noqa: BLE001  each of the waiting jobs raises it
            for one in asked:
                one.error = error
        else:
            left = iter(answers)
            for one in asked:
                one.answers = [next(left) for _ in one.requests]
        for one in asked:
            one.is_answered = True
        self._changed.notify_all()

    def __call__(self, work: Callable[[Any], Any], items: list[Any], /) -> list[Any]:
        """Return `work(item)` for every item, in order; all items are worked on side by side."""
        if len(items) < 2:
            return [work(item) for item in items]
        results: list[Any] = [None] * len(items)
        errors: dict[int, BaseException] = {}
        n_left = len(items)

        def run(i: int) -> None:
            nonlocal n_left
            try:
                with items_run_by(self):
                    results[i] = work(items[i])
            except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
                errors[i] = error
            finally:
                with self._changed:
                    n_left -= 1
                    if n_left:  # the last job's place goes to the caller
                        self._n_running -= 1
                        self._changed.notify_all()

        with self._changed:
            self._n_running += len(items) - 1
        threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(items))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[min(errors)]
        return results
