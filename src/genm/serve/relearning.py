"""Learning from stored feedback anew, all together, as `auto` does: from what, and in a process of its own.

A stream takes one step per query and never comes back to it, which costs quality where queries are few. So the
service also learns from what it has stored. That takes seconds, all cores, and memory for all lists at once. So it
happens in a second process of low priority (`python -m genm.serve.relearning`), which reads the store by itself and
ends with the service. The writer then takes over the weights, by an event of the log that holds them: a replay need
not learn them again.
"""

import contextlib
import os
import subprocess
import sys
import threading
from dataclasses import replace

import msgspec
import numpy as np

from genm._math.simplex_optimizers import as_distribution
from genm._typing import Floats
from genm.align import Aligned
from genm.errors import GenmError, StoreError
from genm.learn.auto import AutoFuser
from genm.model import Model
from genm.serve.engine import decode_model, decode_rules, stored_event, weights_of
from genm.serve.guards import merge_queries
from genm.serve.learner import Lessons, Rules, Weights, prior_queries
from genm.serve.store import Session, Store, existing_store

MOST_QUERIES = 2000
"""How many of the newest queries the service learns from by itself."""

MOST_BYTES = 64_000_000
"""The size of the events that are learned from together: it bounds the memory. The newest ones count."""

_AT_A_TIME = 50
"""Events that are read and aligned together."""


class Order(msgspec.Struct, frozen=True):
    """What to learn from."""

    address: str
    """Of the store; it may hold a password, so it is never an argument of a command."""
    last: int
    """How many of the newest queries."""
    by_itself: bool
    """Whether the service asks, not an administrator. Then it learns from what the stream learned from since a
    person last set the weights: clicks too, but no events beyond a client's influence. Those weights count as well.
    """


class Learned(msgspec.Struct, frozen=True):
    """What was learned, and from what."""

    since: int
    """The event by which a person last set the weights: the first model, a rollback, or weights that were given."""
    upto: int
    """The last event that was learned from."""
    n_queries: int
    weights: tuple[float, ...]


class _Answer(msgspec.Struct, frozen=True):
    """What the second process answers: what it learned, None where nothing is stored, or why it failed."""

    learned: Learned | None = None
    failure: str | None = None


def learn_anew(store: Store, order: Order) -> Learned | None:
    """Return what `auto` learns from the stored feedback, or None where there is none."""
    with store.snapshot() as session:
        first, last_rules, since = session.first_event("model"), session.last_event("rules"), session.last_setting()
        if first is None or last_rules is None or since is None:
            return None
        model, rules = decode_model(first.body), decode_rules(last_rules.body)
        row = session.version(since.version)
        if row is None:
            raise StoreError(f"expected version {since.version} in the store; found none. Run: genm serve check")
        after = since.sequence if order.by_itself else 0
        queries, upto = _stored_queries(session, Lessons(model, rules), after, order)
    if not queries:
        return None
    learned = learn_weights(model, rules, queries, weights_of(row) if order.by_itself else None)
    return Learned(since.sequence, upto, len(queries), tuple(learned.tolist()))


def learn_weights(model: Model, rules: Rules, queries: list[Aligned], start: Weights | None) -> Floats:
    """Return what `auto` learns from these queries, together with the weights that the service started from.

    The start counts as much as the queries behind it, as it does in the stream: the mean of the two, weighted by
    their numbers of queries.
    """
    fuser = AutoFuser(measure=model.measure, level=model.relevance_level)
    learned = fuser.fit(merge_queries(queries)).weights_
    if start is None:
        return learned
    behind = prior_queries(model, rules) if start.state is None else start.state.n_seen
    n = len(queries)
    return as_distribution((behind * as_distribution(np.array(start.vector)) + n * learned) / (behind + n))


def _stored_queries(session: Session, lessons: Lessons, after: int, order: Order) -> tuple[list[Aligned], int]:
    """Return the newest queries of the log, the oldest of them first, and the last event that they are from."""
    chosen = session.newest_feedback(after, order.last, only_learned=order.by_itself, most_bytes=MOST_BYTES)
    queries: list[Aligned] = []
    for start in range(0, len(chosen), _AT_A_TIME):
        rows = session.events_of(chosen[start : start + _AT_A_TIME])
        for lesson in lessons.prepare_all([stored_event(row) for row in rows], {}):
            # the learner reads neither raw scores nor arrays of the events beside it, so they do not stay in memory
            tables = [(step, step.scores.copy(), step.retrieved.copy()) for step in lesson.steps]
            queries += [replace(step, raw=scores, scores=scores, retrieved=given) for step, scores, given in tables]
    return queries[-order.last :], chosen[-1] if chosen else after


class LearningProcess:
    """Learns in a second process, one order at a time."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._starting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def __call__(self, order: Order) -> Learned | None:
        """Return what was learned, or None where nothing is stored; raises a StoreError where it failed."""
        with self._one_at_a_time:
            process = self._start()
            try:
                content, faults = process.communicate(msgspec.json.encode(order))
            finally:
                process.kill()
                process.wait()
                self._process = None
        if process.returncode != 0:
            last = faults.decode(errors="replace").strip().rpartition("\n")[2]
            raise StoreError(f"learning anew ended with status {process.returncode}: {last[:300] or 'no message'}.")
        try:
            answer = msgspec.json.decode(content, type=_Answer)
        except msgspec.MsgspecError as error:
            raise StoreError(f"learning anew: expected an answer in JSON; {error}.") from None
        if answer.failure is not None:
            raise StoreError(answer.failure)
        return answer.learned

    def _start(self) -> "subprocess.Popen[bytes]":
        flags = ["-P"] if sys.flags.safe_path else []
        command = [sys.executable, *flags, "-m", "genm.serve.relearning"]
        with self._starting:
            if self._stopped:
                raise StoreError("the service is stopping.")
            pipe = subprocess.PIPE
            try:
                self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603 (ours)
            except OSError as error:
                raise StoreError(f"learning anew: expected to start a process; {error}.") from error
            return self._process

    def stop(self) -> None:
        """End what is under way, and start nothing more."""
        with self._starting:
            self._stopped = True
            if self._process is not None:
                self._process.kill()


def main() -> None:
    """Read an order from standard input, learn, and write the answer to standard output."""
    with contextlib.suppress(AttributeError, OSError):  # not every system has it
        os.nice(10)
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    try:
        with existing_store(order.address) as store:
            answer = _Answer(learn_anew(store, order))
    except GenmError as error:
        answer = _Answer(failure=str(error))
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main()
