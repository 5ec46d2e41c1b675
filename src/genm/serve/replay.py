"""The check of a store: a replay of its log must come to the same versions, outcomes and aliases, to the bit."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

import msgspec

from genm.serve.engine import comparison_row, decode_model, decode_rules, stored_event, version_row
from genm.serve.learner import Learner, Lessons, Rules, Update, Weights
from genm.serve.messages import Relearned, RollbackRequest, WeightsRequest, read_weights
from genm.serve.store import ComparisonRow, EventRow, Session, Store, VersionRow


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found."""

    n_events: int
    n_versions: int
    champion: int
    faults: tuple[str, ...]
    """What does not fit, in words; empty for a sound store."""


def check_store(store: Store, *, most_faults: int = 20) -> Checked:
    """Replay the whole log and compare."""
    with store.snapshot() as session:
        replayed = _Replay(session)
        faults = []
        for fault in replayed.compare():
            faults.append(fault)
            if len(faults) >= most_faults:
                faults.append("further faults are not listed")
                break
        return Checked(replayed.sequence, replayed.n_versions, replayed.champion, tuple(faults))


class _Replay:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.sequence = self.n_versions = self.champion = 0
        self.versions: dict[int, Weights] = {}

    def compare(self) -> Iterator[str]:
        """Yield what does not fit."""
        learner: Learner | None = None
        for request, rows in groupby(self._events(), lambda row: row.request):
            events = list(rows)
            for row in events:
                if row.sequence != self.sequence + 1:
                    yield f"event {row.sequence}: expected {self.sequence + 1}; the log has a gap"
                self.sequence = row.sequence
            if request != events[0].sequence:
                yield f"event {events[0].sequence}: expected its request to begin with it; found {request}"
            if learner is None:
                if events[0].kind != "model":
                    yield f"event {events[0].sequence}: expected the model; found {events[0].kind}"
                    return
                learner = Learner(decode_model(events[0].body), Rules())
                self.versions[1] = learner.current
                yield from self._compare_version(learner.current, None, events[0], "model")
                continue
            yield from self._apply(learner, events)
        if learner is None:
            yield "the log is empty"
            return
        self.n_versions, self.champion = learner.n_versions, learner.champion.version
        head = self.session.head()
        if head is None or (head.champion, head.current, head.n_versions) != (
            learner.champion.version, learner.current.version, learner.n_versions,
        ):  # fmt: skip
            expected = f"champion {learner.champion.version}, newest {learner.n_versions}"
            yield f"aliases: expected {expected}; found {head}"
        (n_versions,) = self.session.rows("SELECT COUNT(*) FROM versions")[0]
        if n_versions != learner.n_versions:
            yield f"versions: expected {learner.n_versions}; found {n_versions}"

    def _events(self) -> Iterator[EventRow]:
        after = 0
        while part := self.session.events(after, 500):
            yield from part
            after = part[-1].sequence

    def _apply(self, learner: Learner, events: list[EventRow]) -> Iterator[str]:
        first = events[0]
        update: Update | None = None
        reason = "feedback"
        if first.kind == "rules":
            learner.set_rules(decode_rules(first.body))
        elif first.kind == "rollback":
            wanted = msgspec.json.decode(first.body, type=RollbackRequest).version
            if wanted not in self.versions:
                yield f"event {first.sequence}: expected an older version; found {wanted}"
                return
            learner.roll_back(self.versions[wanted])
        elif first.kind == "weights":
            reason = "set"
            given = msgspec.json.decode(first.body, type=WeightsRequest).weights
            vector = tuple(read_weights("weights", given, learner.model, distribution=True).values())
            update = learner.set_weights(vector)
        elif first.kind == "relearn":
            reason = first.kind
            told = msgspec.json.decode(first.body, type=Relearned)
            update, moved = learner.relearn(told.weights, first.received, by_itself=told.by_itself)
            if moved != first.moved:
                yield f"event {first.sequence}: expected weights moved by {moved}; found {first.moved}"
        else:
            update = yield from self._learn(learner, events)
        if update is not None:
            self.versions[update.weights.version] = update.weights
            yield from self._compare_version(update.weights, update, events[-1], reason)
        if events[-1].version != learner.current.version:
            last = events[-1]
            yield f"event {last.sequence}: expected version {learner.current.version}; found {last.version}"

    def _learn(self, learner: Learner, events: list[EventRow]) -> Generator[str, None, Update | None]:
        lessons = Lessons(learner.model, learner.rules)
        ready = lessons.prepare_all([stored_event(row) for row in events], self.versions)
        results, update = learner.learn(ready, events[0].received)
        for row, lesson, result in zip(events, ready, results, strict=True):
            found = (row.outcome, row.ap, row.moved)
            if found != (result.outcome, result.ap, result.moved):
                yield f"event {row.sequence}: expected {result}; found {found}"
            if lesson.pair is not None:
                rows = self.session.rows(
                    "SELECT sequence, first, second, credit FROM comparisons WHERE sequence = ?", row.sequence
                )
                expected = comparison_row(row.sequence, lesson)
                if [ComparisonRow(*one) for one in rows] != [expected]:
                    yield f"event {row.sequence}: expected {expected}; found {rows}"
        return update

    def _compare_version(
        self, weights: Weights, update: Update | None, event: EventRow, reason: str
    ) -> Iterator[str]:
        stored = self.session.version(weights.version)
        expected: VersionRow = version_row(weights, update, event.sequence, event.received, reason)
        if stored is None:
            yield f"version {weights.version}: expected it in the store; found none"
        elif stored != replace(expected, created=stored.created):
            yield f"version {weights.version}: expected {expected}; found {stored}"
