"""When the service learns from its stored feedback by itself.

A thread watches the log. It waits until feedback has been quiet for a while, or a tenth of what was learned from is
new, and it rests long enough between two times for the second process to take a small share of the machine. When it
runs is a matter of the clock; what came of it is an event of the log, so a replay comes to the same weights.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from genm.errors import StoreError
from genm.serve.engine import Action, Engine, Status
from genm.serve.messages import ActionAnswer, Relearned, RelearnRequest, RequestError
from genm.serve.relearning import MOST_QUERIES, Learned, Order
from genm.serve.store import Session

_log = logging.getLogger("genm.serve")

DEFAULT_REST = 30.0
_QUIET = 5.0
"""Seconds without feedback after which what is new is learned from at once."""
_GROWTH = 0.1
"""The share of new queries from which on it is worth while even if more are coming."""
_SHARE = 0.05
"""The most that learning anew may take of the time."""
_BACK_OFF = 600.0
"""Seconds to wait after a failure, or where the limit of influence is used up."""
_LOOK = 1.0
"""Seconds between two looks at the clock while something is new."""


@dataclass(frozen=True, slots=True)
class News:
    """What the log has that was not learned from together."""

    n_new: int
    """Events that the stream has learned from since."""
    n_before: int
    """Queries that were learned from together the last time, as far as they still count; 0 the first time."""

    def are_due(self, quiet: float) -> bool:
        """Tell whether to learn anew; `quiet` is the number of seconds since the last feedback."""
        return self.n_new > 0 and (quiet >= _QUIET or self.n_new >= _GROWTH * self.n_before)


def find_news(session: Session) -> News:
    """Return what is new since a person set the weights, or since the last time."""
    setting, last = session.last_setting(), session.last_event("relearn")
    after, n_before = 0 if setting is None else setting.sequence, 0
    if last is not None and last.sequence > after:
        told = msgspec.json.decode(last.body, type=Relearned)
        if told.by_itself:
            after, n_before = max(after, told.upto), told.n_queries
    return News(session.n_learned(after, MOST_QUERIES), n_before)


class AutomaticRelearning:
    """The thread that learns anew."""

    def __init__(
        self,
        engine: Engine,
        learn: Callable[[Order], Learned | None],
        *,
        rest: float = DEFAULT_REST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the engine, what learns, and the least number of seconds between two times."""
        self.engine, self.learn, self.rest = engine, learn, rest
        self.n_done = self.n_failed = 0
        self._clock = clock
        self._changed, self._stopped = threading.Event(), threading.Event()
        self._sequence = -1
        self._last_feedback = self._next = clock()
        self._thread = threading.Thread(target=self._run, name="genm-relearning", daemon=True)

    def start(self) -> None:
        """Begin to watch; what is in the log already may be new."""
        self._next = self._clock() + self.rest
        self._sequence = self.engine.status.sequence
        self._changed.set()
        self.engine.listeners.append(self._notice)
        self._thread.start()

    def stop(self, end_learning: Callable[[], None]) -> None:
        """Stop; `end_learning` ends what is under way."""
        self._stopped.set()
        self._changed.set()
        end_learning()
        self._thread.join()

    def _notice(self, status: Status) -> None:
        """Note that the log has grown; called by the writer."""
        if status.sequence != self._sequence:
            self._sequence, self._last_feedback = status.sequence, self._clock()
            self._changed.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._changed.wait()
            if not self._stopped.wait(_LOOK) and self._clock() >= self._next:
                self.look()

    def look(self) -> None:
        """Learn anew if it is time."""
        self._changed.clear()  # before the store is read: what comes from now on is noticed
        try:
            with self.engine.store.snapshot() as session:
                news = find_news(session)
            if not news.are_due(self._clock() - self._last_feedback):
                if news.n_new:
                    self._changed.set()
                return
            begun = self._clock()
            if not self._learn_if_alone():
                self._changed.set()  # should the other replica fail, this one goes on
            took = self._clock() - begun
            self._next = self._clock() + max(self.rest, took / _SHARE)
        except RequestError as refusal:
            wait = _BACK_OFF if refusal.status == 429 else self.rest
            self._try_again(wait)
            _log.info("weights learned anew were not taken over, next try in %.0f s: %s", wait, refusal)
        except Exception as error:  # noqa: BLE001 (the thread must go on; what failed is counted and said)
            if self._stopped.is_set():
                return
            self.n_failed += 1
            wait = max(self.rest, _BACK_OFF)
            self._try_again(wait)
            trace = None if isinstance(error, StoreError) else error
            _log.warning("learning anew failed, next try in %.0f s: %s", wait, error, exc_info=trace)

    def _try_again(self, wait: float) -> None:
        self._next = self._clock() + wait
        self._changed.set()

    def _learn_if_alone(self) -> bool:
        """Learn and hand over the weights; False if another replica does so."""
        with self.engine.store.alone_in_relearning() as alone:
            if not alone:
                return False
            found = self.learn(Order(self.engine.store.address, MOST_QUERIES, by_itself=True))
            if found is None:
                return True
            request = RelearnRequest(f"genm:relearn:{uuid.uuid4()}", MOST_QUERIES)
            told = Relearned(
                request.key, request.last, found.upto, found.n_queries, found.weights, by_itself=True,
                since=found.since,
            )  # fmt: skip
            work = Action("genm", request, found.weights, told)
            self.engine.submit(work)
            answer: ActionAnswer = work.done.result()
            self.n_done += 1
            _log.info("learned anew from %d queries: version %d", found.n_queries, answer.version)
            return True
