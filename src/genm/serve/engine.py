"""The writer: applies requests that change something, in their order, and acknowledges what is on disk.

One thread writes. It takes whatever requests have come in, applies them in their order inside one transaction, and
answers all of them after the commit (group commit), so that many clients share one flush of the disk. If anything
fails, nothing is acknowledged, and the state is read anew from the store.
"""

import hashlib
import logging
import queue
import threading
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import msgspec

from genm.align import Aligned
from genm.errors import GenmError, StoreError
from genm.model import Model, OnlineState, model_from_json, model_to_json
from genm.serve.learner import N_AP_VALUES, RELEARNING, Learner, Lesson, Lessons, Result, Rules, Update, Weights
from genm.serve.messages import (
    ActionAnswer,
    EventAnswer,
    FeedbackAnswer,
    FeedbackEvent,
    Relearned,
    RelearnRequest,
    RequestError,
    RollbackRequest,
    WeightsRequest,
)
from genm.serve.store import (
    SETTING_KINDS,
    Answer,
    AuditRow,
    ComparisonRow,
    EventRow,
    Session,
    Store,
    VersionRow,
    now_ms,
)

_log = logging.getLogger("genm.serve")

_MOST_EVENTS = 4096
"""Events of one transaction; further requests wait for the next."""

_INFLUENCE_MINUTES = 119
_RELEARNING_CLIENTS = msgspec.json.encode([RELEARNING]).decode()
_FOLLOW = 1000
"""A replica that is further behind than this many events reads its state anew."""


@dataclass(slots=True)
class Feedback:
    """Events of one request, made ready."""

    lessons: list[Lesson]
    done: "Future[FeedbackAnswer]" = field(default_factory=Future)

    @property
    def keys(self) -> list[str]:
        """Return the keys of the events."""
        return [lesson.event.key for lesson in self.lessons]

    def __len__(self) -> int:
        return len(self.lessons)


@dataclass(slots=True)
class Action:
    """A rollback, weights that an administrator sets, or weights learned anew."""

    actor: str
    request: RollbackRequest | WeightsRequest | RelearnRequest
    vector: tuple[float, ...] = ()
    """The weights to take over, in the order of the model's rankers."""
    relearned: Relearned | None = None
    """What was learned, and from what; only where the request asks for it."""
    done: "Future[ActionAnswer]" = field(default_factory=Future)

    @property
    def keys(self) -> list[str]:
        """Return the key of the action."""
        return [self.request.key]

    @property
    def kind(self) -> str:
        """Return the kind of event that it leaves in the log."""
        kinds = {RollbackRequest: "rollback", WeightsRequest: "weights", RelearnRequest: "relearn"}
        return kinds[type(self.request)]

    def __len__(self) -> int:
        return 1


Work: TypeAlias = Feedback | Action


@dataclass(frozen=True, slots=True)
class Status:
    """What readers see: replaced as a whole after each commit."""

    champion: Weights
    current: Weights
    n_versions: int
    sequence: int
    ap_values: tuple[tuple[int, float], ...]


class Engine:
    """Applies requests to the learner and the store."""

    def __init__(self, store: Store, *, clock: Callable[[], int] = now_ms) -> None:
        self.store = store
        self.listeners: list[Callable[[Status], None]] = []
        """Called in the writer's thread after each change."""
        self._clock = clock
        self._queue: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._learner: Learner | None = None
        self._ap_values: deque[tuple[int, float]] = deque(maxlen=N_AP_VALUES)
        self._sequence = 0
        self._versions: dict[int, Weights] = {}
        self.failure: str | None = None
        """Why the store cannot be written, as far as is known."""
        self.n_commits = 0

    def start(self, model: Model | None = None, rules: Rules | None = None) -> None:
        """Open the store, begin its log with the model if it is empty, and start to write.

        If this fails, the store is closed again.
        """
        try:
            self.store.open()
            self._begin(model, rules)
            self._thread = threading.Thread(target=self._run, name="genm-writer", daemon=True)
            self._thread.start()
            self.store.follow(self.refresh)
        except BaseException:
            self.stop()
            raise

    def _begin(self, model: Model | None, rules: Rules | None) -> None:
        """Load what the store holds, or begin its log."""
        with self.store.transaction() as session:
            if session.head() is None:
                if model is None:
                    raise StoreError(f"{self.store.place}: expected a model; the store is empty. Name one.")
                self._begin_log(session, model, rules or Rules())
            self._load(session)
            assert self._learner is not None
            if model is not None and model_to_json(model) != model_to_json(self._learner.model):
                raise StoreError(
                    f"{self.store.place}: expected the model that this store began with; found another. "
                    f"Use another --store, or set the new weights by PUT /v1/weights."
                )
            if rules is not None and rules != self._learner.rules:
                self._change_rules(session, rules)
        self.lessons = Lessons(self._learner.model, self._learner.rules)
        self.model, self.rules = self._learner.model, self._learner.rules
        self.status = self._status()

    def stop(self) -> None:
        """Finish what is under way, then close the store."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        self.store.close()

    @property
    def is_running(self) -> bool:
        """Tell whether the writer is at work."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def n_waiting(self) -> int:
        """Return how many requests wait for the writer."""
        return self._queue.qsize()

    def rehearse(self, lessons: Sequence[Lesson]) -> None:
        """Let a copy of the learner take the steps, so that everything is compiled; nothing is kept."""
        Learner(self.model, self.rules).learn(lessons, 0)

    def judged_queries(self, rows: Sequence[EventRow]) -> list[Aligned]:
        """Return the judged queries of stored events."""
        return judged_queries(self.lessons, rows)

    def submit(self, work: Work) -> None:
        """Hand over a request; its future holds the answer once everything is on disk."""
        self._queue.put(work)

    def weights_of(self, version: int) -> Weights:
        """Return a version, from memory or from the store; refuses one that does not exist."""
        if version in (self.status.champion.version, self.status.current.version):
            return self.status.champion if version == self.status.champion.version else self.status.current
        if version not in self._versions:
            with self.store.snapshot() as session:
                row = session.version(version)
            if row is None:
                raise RequestError(
                    404, "version", "version", f"one of 1 to {self.status.n_versions}", f"{version}",
                    "GET /v1/versions lists them.",
                )  # fmt: skip
            if len(self._versions) > 1000:
                self._versions.clear()
            self._versions[version] = weights_of(row)
        return self._versions[version]

    def refresh(self) -> None:
        """Take over what other replicas have written since."""
        self._queue.put(Feedback([]))

    def _run(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            group, stop = [first], False
            size = len(first)
            while size < _MOST_EVENTS:
                try:
                    work = self._queue.get_nowait()
                except queue.Empty:
                    break
                if work is None:
                    stop = True
                    break
                group.append(work)
                size += len(work)
            self._commit(group)
            if stop:
                return

    def _commit(self, group: Sequence[Work]) -> None:
        answers: list[Any] = []
        try:
            # where nothing is to be written, only to be followed, no lock is taken
            with self.store.transaction() if any(map(len, group)) else self.store.snapshot() as session:
                self._follow(session)
                answers = _Batch(self, session).apply(group)
            self.failure = None
            self.n_commits += 1
        except Exception as error:  # noqa: BLE001 (the writer must go on, and nobody may wait for it in vain)
            if not isinstance(error, GenmError):
                _log.error("a group of requests failed", exc_info=error)
            self._learner = None  # read anew before the next change
            self.failure = str(error) or type(error).__name__
            for work in group:
                work.done.set_exception(error if isinstance(error, StoreError) else StoreError(self.failure))
            return
        self.status = self._status()
        for listener in self.listeners:
            listener(self.status)
        for work, answer in zip(group, answers, strict=True):
            if isinstance(answer, RequestError):
                work.done.set_exception(answer)
            else:
                work.done.set_result(answer)  # type: ignore[arg-type]

    def _status(self) -> Status:
        learner = self._learner
        assert learner is not None
        return Status(learner.champion, learner.current, learner.n_versions, self._sequence, tuple(self._ap_values))

    def _begin_log(self, session: Session, model: Model, rules: Rules) -> None:
        """Write the first two events and version 1."""
        now = self._clock()
        bodies = (("model", encode_model(model)), ("rules", msgspec.json.encode(rules)))
        session.add_events(
            [_action_row(number, kind, body, now, 1) for number, (kind, body) in enumerate(bodies, 1)]
        )
        learner = Learner(model, rules)
        session.add_versions([version_row(learner.current, None, 1, now, "model")])
        session.write("aliases", [("champion", 1), ("current", 1)])

    def _change_rules(self, session: Session, rules: Rules) -> None:
        learner = self._learner
        assert learner is not None
        self._sequence += 1
        row = _action_row(
            self._sequence, "rules", msgspec.json.encode(rules), self._clock(), learner.current.version
        )
        session.add_events([row])
        learner.set_rules(rules)

    def _follow(self, session: Session) -> None:
        """Bring the state up to the end of the log, which another replica may have extended."""
        head = session.head()
        if self._learner is None or head is None or head.sequence - self._sequence > _FOLLOW:
            self._load(session)
        elif head.sequence != self._sequence:
            for row in session.events(self._sequence, _FOLLOW):
                self._absorb(row)
            self._point(session)
            if self._learner.rules != self.rules:
                self.rules = self._learner.rules
                self.lessons = Lessons(self.model, self.rules)

    def _load(self, session: Session) -> None:
        """Read the state from the store: what a replay of the whole log would come to."""
        model_event, rules_event, head = session.first_event("model"), session.last_event("rules"), session.head()
        if model_event is None or rules_event is None or head is None:
            raise StoreError(f"{self.store.place}: expected a model at the start of the log; found none.")
        learner = Learner(decode_model(model_event.body), decode_rules(rules_event.body))
        self._learner, self._sequence = learner, head.sequence
        lessons = Lessons(learner.model, learner.rules)
        learner.recent.add(judged_queries(lessons, session.judged_events(learner.rules.n_recent)))
        for clients, minute, moved in session.movements(_INFLUENCE_MINUTES):
            learner.influence.add(msgspec.json.decode(clients, type=list[str]), minute * 60_000, moved)
        self._ap_values.clear()
        self._ap_values.extend(session.ap_values(N_AP_VALUES))
        self._point(session)

    def _absorb(self, row: EventRow) -> None:
        """Take over one event that another replica has applied."""
        learner = self._learner
        assert learner is not None
        if row.kind == "rules":
            learner.set_rules(decode_rules(row.body))
        if row.ap is not None:
            self._ap_values.append((row.sequence, row.ap))
            learner.recent.add(judged_queries(Lessons(learner.model, learner.rules), [row]))
        if row.moved:
            learner.influence.add(msgspec.json.decode(row.clients, type=list[str]), row.received, row.moved)
        self._sequence = row.sequence

    def _point(self, session: Session) -> None:
        learner, head = self._learner, session.head()
        assert learner is not None
        assert head is not None
        learner.n_versions = head.n_versions
        learner.champion, learner.current = (_stored(session, number) for number in (head.champion, head.current))


class _Batch:
    """The requests of one transaction."""

    def __init__(self, engine: Engine, session: Session) -> None:
        self._engine, self._session = engine, session
        assert engine._learner is not None
        self._learner = engine._learner
        self._now = engine._clock()
        self._events: list[EventRow] = []
        self._versions: list[VersionRow] = []
        self._comparisons: list[ComparisonRow] = []
        self._audit: list[AuditRow] = []

    def apply(self, group: Sequence[Work]) -> list[FeedbackAnswer | ActionAnswer | RequestError]:
        """Apply the requests in their order, write what they lead to, and return the answers."""
        self._known = self._session.answers(key for work in group for key in work.keys)
        answers = [self._apply(work) for work in group]
        self._session.add_events(self._events)
        self._session.add_versions(self._versions)
        self._session.add_comparisons(self._comparisons)
        self._session.add_audit(self._audit)
        if self._events:
            self._session.point(champion=self._learner.champion.version, current=self._learner.current.version)
        return answers

    def _apply(self, work: Work) -> FeedbackAnswer | ActionAnswer | RequestError:
        try:
            return self._feedback(work) if isinstance(work, Feedback) else self._action(work)
        except RequestError as refusal:
            return refusal

    def _feedback(self, work: Feedback) -> FeedbackAnswer:
        rules = self._learner.rules
        if any(lesson.rules != rules for lesson in work.lessons):  # another replica has changed them meanwhile
            lessons = Lessons(self._learner.model, rules)
            work.lessons = [lessons.renew(lesson) for lesson in work.lessons]
        bodies = [msgspec.json.encode(lesson.event) for lesson in work.lessons]
        digests = [_digest(lesson.kind, body) for lesson, body in zip(work.lessons, bodies, strict=True)]
        for lesson, digest in zip(work.lessons, digests, strict=True):
            self._check_key(lesson.event.key, digest)
        new = [number for number, lesson in enumerate(work.lessons) if lesson.event.key not in self._known]
        learned = [work.lessons[number] for number in new]
        results, update = self._learner.learn(learned, self._now)
        request = self._engine._sequence + 1
        for number, lesson, result in zip(new, learned, results, strict=True):
            self._append(request, lesson, bodies[number], digests[number], result)
        if update is not None:
            self._add_version(update, "feedback")
        answers = [self._known[lesson.event.key] for lesson in work.lessons]
        return FeedbackAnswer([_event_answer(answer) for answer in answers], self._learner.champion.version)

    def _append(self, request: int, lesson: Lesson, body: bytes, digest: bytes, result: Result) -> None:
        engine, key = self._engine, lesson.event.key
        engine._sequence += 1
        row = EventRow(
            engine._sequence, request, key, lesson.kind, msgspec.json.encode(lesson.clients).decode(), self._now,
            body, digest, self._learner.current.version, result.outcome, result.ap, result.moved,
        )  # fmt: skip
        self._events.append(row)
        self._known[key] = Answer(key, digest, row.sequence, row.version, row.outcome)
        if result.ap is not None:
            engine._ap_values.append((row.sequence, result.ap))
        if lesson.pair is not None:
            self._comparisons.append(comparison_row(row.sequence, lesson))

    def _action(self, work: Action) -> ActionAnswer:
        engine, learner, request = self._engine, self._learner, work.request
        body = msgspec.json.encode(work.relearned or request)
        digest = _digest(work.kind, msgspec.json.encode(request))  # what a retry sends again
        key = request.key
        self._check_key(key, digest)
        if key not in self._known:
            update, clients, moved = None, "[]", 0
            if isinstance(request, RollbackRequest):
                target = self._version(request.version)
                learner.roll_back(target)
                detail = f"to version {request.version}"
            elif isinstance(request, WeightsRequest):
                update = learner.set_weights(work.vector)
                detail = f"as version {update.weights.version}"
            else:
                told = work.relearned
                assert told is not None
                if told.by_itself:
                    self._check_setting(told.since)
                    clients = _RELEARNING_CLIENTS
                update, moved = learner.relearn(work.vector, self._now, by_itself=told.by_itself)
                detail = f"as version {update.weights.version}, {'' if update.promoted else 'not '}promoted"
            engine._sequence += 1
            version = learner.current.version
            row = EventRow(
                sequence=engine._sequence,
                request=engine._sequence,
                key=key,
                kind=work.kind,
                clients=clients,
                received=self._now,
                body=body,
                digest=digest,
                version=version,
                outcome="done",
                ap=None,
                moved=moved,
            )
            self._events.append(row)
            if update is not None:
                self._add_version(update, "set" if work.kind == "weights" else work.kind)
            if clients != _RELEARNING_CLIENTS:  # that is no action of an administrator
                self._audit.append(AuditRow(self._now, work.actor, work.kind, detail))
            self._known[key] = Answer(key, digest, engine._sequence, version, "done")
        stored = self._known[key]
        return ActionAnswer(key, stored.sequence, stored.version)

    def _check_setting(self, since: int) -> None:
        """Refuse what was learned before a person set the weights."""
        last = self._session.last_setting()
        if last is None or last.sequence != since or any(row.kind in SETTING_KINDS for row in self._events):
            raise RequestError(
                409, "conflict", "the service", "weights that nobody has set meanwhile", "others",
                "Learn from what came since.",
            )  # fmt: skip

    def _version(self, number: int) -> Weights:
        made = next((row for row in self._versions if row.version == number), None)
        row = made or self._session.version(number)
        if row is None:
            raise RequestError(
                404, "version", "body.version", f"one of 1 to {self._learner.n_versions}", f"{number}",
                "GET /v1/versions lists them.",
            )  # fmt: skip
        return weights_of(row)

    def _add_version(self, update: Update, reason: str) -> None:
        self._versions.append(version_row(update.weights, update, self._engine._sequence, self._now, reason))

    def _check_key(self, key: str, digest: bytes) -> None:
        stored = self._known.get(key)
        if stored is not None and stored.digest != digest:
            raise RequestError(
                409, "conflict", f"key {key[:80]!r}", "the body that came with this key before", "another one",
                "A new event needs a key of its own.",
            )  # fmt: skip


def _digest(kind: str, body: bytes) -> bytes:
    return hashlib.blake2b(kind.encode() + b"\0" + body, digest_size=16).digest()


def _action_row(sequence: int, kind: str, body: bytes, now: int, version: int) -> EventRow:
    key = f"genm:{kind}:{uuid.uuid4()}"
    return EventRow(sequence, sequence, key, kind, "[]", now, body, _digest(kind, body), version, "done", None, 0)


def _event_answer(answer: Answer) -> EventAnswer:
    return EventAnswer(answer.key, answer.sequence, answer.version, answer.outcome)  # type: ignore[arg-type]


def comparison_row(sequence: int, lesson: Lesson) -> ComparisonRow:
    """Return what a list said; the older version of a pair is always its first."""
    assert lesson.pair is not None
    first, second = lesson.pair
    if first <= second:
        return ComparisonRow(sequence, first, second, lesson.credit)
    return ComparisonRow(sequence, second, first, -lesson.credit)


def version_row(weights: Weights, update: Update | None, sequence: int, now: int, reason: str) -> VersionRow:
    """Return a version as the store keeps it; numbers survive to the last bit."""
    state = None if weights.state is None else msgspec.json.encode(asdict(weights.state)).decode()
    return VersionRow(
        version=weights.version,
        parent=None if update is None else update.parent,
        sequence=sequence,
        created=now,
        reason=reason,
        weights=msgspec.json.encode(weights.vector).decode(),
        state=state,
        promoted=int(update is None or update.promoted),
        recent_ap=None if update is None else update.recent_ap,
        champion_recent_ap=None if update is None else update.champion_recent_ap,
    )


def weights_of(row: VersionRow) -> Weights:
    """Return a stored version."""
    vector = msgspec.json.decode(row.weights, type=tuple[float, ...])
    return Weights(row.version, vector, None if row.state is None else decode_state(row.state))


def decode_state(text: str) -> OnlineState:
    """Return a stored state of a stream."""
    return msgspec.json.decode(text, type=OnlineState)


def _stored(session: Session, number: int) -> Weights:
    row = session.version(number)
    if row is None:
        raise StoreError(f"expected version {number} in the store; found none. Run: genm serve check")
    return weights_of(row)


def encode_model(model: Model) -> bytes:
    """Return the model as the log keeps it."""
    return msgspec.json.encode(model_to_json(model))


def decode_model(body: bytes) -> Model:
    """Return the model of the log."""
    return model_from_json(msgspec.json.decode(body), "the store's model")


def decode_rules(body: bytes) -> Rules:
    """Return rules of the log."""
    return msgspec.json.decode(body, type=Rules)


def stored_event(row: EventRow) -> tuple[FeedbackEvent, tuple[str, ...], str]:
    """Return a stored event with its clients and its place, as `Lessons.prepare_all` takes it."""
    event = msgspec.json.decode(row.body, type=FeedbackEvent)
    return event, tuple(msgspec.json.decode(row.clients, type=list[str])), f"event {row.sequence}"


def judged_queries(lessons: Lessons, rows: Sequence[EventRow]) -> list[Aligned]:
    """Return the judged queries of stored events."""
    ready = lessons.prepare_all([stored_event(row) for row in rows], {}) if rows else []
    return [lesson.judged for lesson in ready if lesson.judged is not None]
