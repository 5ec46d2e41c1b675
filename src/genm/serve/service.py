"""What each endpoint does, apart from HTTP."""

import asyncio
import math
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np

from genm._typing import Floats
from genm.align import Aligned
from genm.errors import GenmError, StoreError
from genm.evaluate import AlignedEvaluator
from genm.model import Model
from genm.serve.bodies import Body
from genm.serve.columns import ColumnReader, TextIds
from genm.serve.engine import Action, Engine, Feedback, Status, weights_of
from genm.serve.fusion import Fusion, QueryScores
from genm.serve.guards import latest_change, merge_queries
from genm.serve.interleaving import sequential_test, team_draft
from genm.serve.learner import Weights, parse_interleaving
from genm.serve.messages import (
    ActionAnswer,
    Columns,
    ComparisonAnswer,
    EvaluateAnswer,
    EvaluateRequest,
    FeedbackAnswer,
    FeedbackEvent,
    FeedbackRequest,
    FuseAnswer,
    FuseRequest,
    InterleaveAnswer,
    InterleaveRequest,
    Measured,
    Relearned,
    RelearnRequest,
    RequestError,
    RollbackRequest,
    VersionEntry,
    VersionsAnswer,
    WeightsAnswer,
    WeightsRequest,
    check_names,
    invalid,
    read_weights,
)
from genm.serve.metrics import Metrics, label
from genm.serve.relearning import Learned, LearningProcess, Order
from genm.serve.security import Caller
from genm.serve.store import EventRow, VersionRow

if TYPE_CHECKING:
    from genm.serve.automatic_relearning import AutomaticRelearning

_PATIENCE = 30.0
"""Seconds that a request waits for the disk."""

_WAITING = 2000
"""Requests that may wait for the writer; further ones are sent away."""

_SHOWN_EVENTS = 30
_SHOWN_VERSIONS = 300


class RecentEvent(msgspec.Struct):
    """One line of the page's list of events."""

    sequence: int
    at: float
    kind: str
    outcome: str
    version: int


class RunningAp(msgspec.Struct):
    """The champion's mean AP on the newest judged queries, each measured before it was learned from."""

    mean: float
    low: float
    """The 95 % interval of the mean, by the normal approximation."""
    high: float
    n_queries: int
    drift_at: int | None
    """The event at which the mean changed, if it did; older queries are left out of the mean then."""


class Overview(msgspec.Struct):
    """Everything that the page shows."""

    rankers: tuple[str, ...]
    champion: int
    latest: int
    sequence: int
    weights: dict[str, float]
    versions: list[VersionEntry]
    """The newest ones, the oldest of them first."""
    running_ap: RunningAp | None
    ap_values: list[tuple[int, float]]
    events: list[RecentEvent]
    event_rate: float
    """Acknowledged events per second, over the last minute."""
    latency_ms: dict[str, tuple[float, float]]
    """Median and 99th percentile of the newest requests, by route."""
    comparison: ComparisonAnswer | None
    """The champion beside the newest version, if lists of the two were interleaved."""
    failure: str | None
    may_roll_back: bool


def _no_judgments() -> RequestError:
    return RequestError(
        422, "no-judgments", "the store", "at least one judged query", "none", "Send judgments as feedback."
    )


class Service:
    """The endpoints over one engine."""

    def __init__(self, engine: Engine, learn: Callable[[Order], Learned | None] | None = None) -> None:
        """Take the engine, and what learns from the stored judgments: a process of its own if it is not given."""
        self.engine = engine
        self._learn = LearningProcess() if learn is None else learn
        self.automatic: AutomaticRelearning | None = None
        """What learns from the stored feedback by itself, for the figures of it."""
        self.metrics = Metrics()
        self.started = time.time()
        self._recent: deque[tuple[float, int]] = deque(maxlen=10_000)
        self._fusion: Fusion | None = None
        self._columns: ColumnReader | None = None

    @property
    def model(self) -> Model:
        """Return the model that the store began with."""
        return self.engine.model

    @property
    def fusion(self) -> Fusion:
        """Return what fuses one query."""
        if self._fusion is None:
            self._fusion = Fusion(self.model)
        return self._fusion

    @property
    def status(self) -> Status:
        """Return the present state of the weights."""
        return self.engine.status

    def warm_up(self) -> None:
        """Compile the kernels before the first request comes."""
        runs: Any = {name: [("a", 2.0), ("b", 1.0), ("c", 0.0)] for name in self.model.rankers}
        columns = {name: {"doc_ids": ["a:b", "c"], "scores": [2.0, 1.0]} for name in self.model.rankers}
        self.fuse_body(Body(FuseRequest), msgspec.json.encode({"runs": columns}))
        query = self.fusion.join(runs, in_order=True)
        query.fuse(np.array(self.model.weights))
        event = FeedbackEvent("warm-up", "warm-up", runs, judgments={"b": self.model.relevance_level})
        lesson = self.engine.lessons.prepare(event, (), "warm-up", {})
        self.engine.rehearse([lesson])

    def fuse_body(self, body: Body, content: bytes) -> FuseAnswer:
        """Fuse the lists of a body."""
        if self._columns is None:
            self._columns = ColumnReader(self.fusion)
        found = self._columns.read(content)
        return self.fuse(body.read(content)) if found is None else self.fuse(*found)

    def fuse(self, request: FuseRequest, query: QueryScores | None = None) -> FuseAnswer:
        """Fuse one query's lists; `query` is what they hold, if that is known."""
        if request.weights is not None and request.version is not None:
            raise invalid("body", "weights or version", "both", "Leave one out.")
        version: int | None = None
        if request.weights is not None:
            weights = self._given_weights(request)
        else:
            used = self._weights(request.version)
            version, weights = used.version, np.array(used.vector)
        if query is None:
            query = self.fusion.join(request.runs, request.rankers)
        group = None
        if request.weights is None and request.version is None:
            group = self.fusion.group_of(request.group, request.text, request.columns)
            if group is not None and self.model.groups is not None:
                weights = np.array(self.model.groups.weights[group])
            elif self.model.gate is not None:
                weights = self.fusion.gated_weights(query, request.text, request.columns)
            else:
                pass  # the global weights
        order, fused = query.fuse(weights, request.top)
        scores = fused[order].tolist()
        answer = FuseAnswer(version, request.query_id, group=group)
        if isinstance(query.doc_ids, TextIds):
            answer.doc_ids, answer.scores = cast("list[str]", query.doc_ids.encoded(order)), scores
        elif all(isinstance(one, Columns) for one in request.runs.values()):
            answer.doc_ids, answer.scores = query.doc_ids_of(order), scores
        else:
            answer.results = list(zip(query.doc_ids_of(order), scores, strict=True))
        if request.explain:
            parts = query.scores[order] * weights
            names = self.model.rankers
            answer.contributions = {
                name: parts[:, k].tolist()
                for k, name in enumerate(names)
                if request.rankers is None or name in request.rankers
            }
        return answer

    def _given_weights(self, request: FuseRequest) -> Floats:
        given = request.weights
        assert given is not None
        if request.rankers is not None:
            check_names("body.weights", given, self.model.rankers)
            given = {**dict.fromkeys(self.model.rankers, 0.0), **given}
        return np.array(list(read_weights("body.weights", given, self.model, distribution=False).values()))

    def _weights(self, version: int | None) -> Weights:
        return self.status.champion if version is None else self.engine.weights_of(version)

    def prepare_feedback(self, caller: Caller, request: FeedbackRequest) -> Feedback:
        """Check and align the events; nothing that follows can fail because of them."""
        keys = [event.key for event in request.events]
        if len(set(keys)) < len(keys):
            raise invalid("body.events", "a different key for each event", "one twice", "Send each event once.")
        places = [f"body.events[{number}]" for number in range(len(keys))]
        versions = self._named_versions(request, places)
        clients = [caller.clients(event.client) for event in request.events]
        return Feedback(
            self.engine.lessons.prepare_all(list(zip(request.events, clients, places, strict=True)), versions)
        )

    def _named_versions(self, request: FeedbackRequest, places: list[str]) -> dict[int, Weights]:
        """Return the versions whose lists were interleaved."""
        found: dict[int, Weights] = {}
        for event, place in zip(request.events, places, strict=True):
            if event.interleaved is not None:
                first, second, _, _ = parse_interleaving(event.interleaved.id, f"{place}.interleaved.id")
                found |= {number: self.engine.weights_of(number) for number in (first, second)}
        return found

    async def feedback(self, work: Feedback) -> FeedbackAnswer:
        """Learn from events; returns when everything is on disk."""
        before = self.status.sequence
        answer: FeedbackAnswer = await self._done(work)
        new = 0
        for event in answer.events:
            if event.sequence > before:
                self.metrics.events[event.outcome] += 1
                new += 1
        self._recent.append((time.monotonic(), new))
        return answer

    async def roll_back(self, caller: Caller, request: RollbackRequest) -> ActionAnswer:
        """Make an older version the champion."""
        answer: ActionAnswer = await self._done(Action(caller.name, request))
        return answer

    async def set_weights(self, caller: Caller, request: WeightsRequest) -> ActionAnswer:
        """Make given weights the champion."""
        vector = tuple(read_weights("body.weights", request.weights, self.model, distribution=True).values())
        answer: ActionAnswer = await self._done(Action(caller.name, request, vector))
        return answer

    async def relearn(self, caller: Caller, request: RelearnRequest) -> ActionAnswer:
        """Learn from the stored judgments anew, beside the requests; the writer only takes over the weights."""
        known = await asyncio.to_thread(self._relearned_before, request)
        found = None if known else await asyncio.to_thread(self._learn_anew, request)
        vector = () if found is None else found.weights
        answer: ActionAnswer = await self._done(Action(caller.name, request, vector, found))
        return answer

    def _relearned_before(self, request: RelearnRequest) -> bool:
        with self.engine.store.snapshot() as session:
            return request.key in session.answers([request.key])

    def _learn_anew(self, request: RelearnRequest) -> Relearned:
        """Return what `auto` learns from the newest judged queries, in the order in which they came."""
        found = self._learn(Order(self.engine.store.address, request.last, by_itself=False))
        if found is None:
            raise _no_judgments()
        return Relearned(request.key, request.last, found.upto, found.n_queries, found.weights)

    def _judged(self, rows: Sequence[EventRow]) -> list[Aligned]:
        """Return the queries of stored judgments; refuses where there are none."""
        if not rows:
            raise _no_judgments()
        return self.engine.judged_queries(rows)

    async def _done(self, work: Feedback | Action) -> Any:
        if self.engine.n_waiting > _WAITING:
            raise StoreError("too many requests wait for the disk. Send this one again later, with the same key.")
        self.engine.submit(work)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(work.done), _PATIENCE)
        except TimeoutError:
            raise StoreError(
                f"the disk did not answer within {_PATIENCE:.0f} s; whether the request is stored is not known. "
                f"Send it again with the same key."
            ) from None

    def weights(self, version: int | None) -> WeightsAnswer:
        """Return the weights of a version, the champion's if none is named."""
        used, status = self._weights(version), self.status
        with self.engine.store.snapshot() as session:
            row = session.version(used.version)
        return WeightsAnswer(
            version=used.version,
            champion=status.champion.version,
            weights=dict(zip(self.model.rankers, used.vector, strict=True)),
            n_seen=0 if used.state is None else used.state.n_seen,
            sequence=0 if row is None else row.sequence,
        )

    def versions(self, limit: int, before: int | None) -> VersionsAnswer:
        """Return versions, the newest first."""
        with self.engine.store.snapshot() as session:
            rows = session.versions(limit, before)
        status = self.status
        return VersionsAnswer(status.champion.version, status.n_versions, [self._entry(row) for row in rows])

    def _entry(self, row: VersionRow) -> VersionEntry:
        weights = weights_of(row)
        return VersionEntry(
            version=row.version,
            parent=row.parent,
            sequence=row.sequence,
            created=row.created / 1000,
            reason=row.reason,
            weights=dict(zip(self.model.rankers, weights.vector, strict=True)),
            n_seen=0 if weights.state is None else weights.state.n_seen,
            promoted=bool(row.promoted),
            recent_ap=row.recent_ap,
            champion_recent_ap=row.champion_recent_ap,
        )

    def evaluate(self, request: EvaluateRequest) -> EvaluateAnswer:
        """Measure weights on the newest stored judgments."""
        systems: list[tuple[int | None, Floats]] = []
        if request.weights is not None:
            given = read_weights("body.weights", request.weights, self.model, distribution=False)
            systems.append((None, np.array(list(given.values()))))
        wanted = request.versions
        if wanted is None and request.weights is None:
            wanted = [self.status.champion.version]
        if len(wanted or []) > 100:
            raise invalid("body.versions", "at most 100", f"{len(wanted or [])}", "Send several requests.")
        systems += [(number, np.array(self.engine.weights_of(number).vector)) for number in wanted or []]
        with self.engine.store.snapshot() as session:
            rows = session.judged_events(request.last)
        queries = self._judged(rows)
        try:
            evaluator = AlignedEvaluator(merge_queries(queries), request.measures)
            measured = [
                Measured(number, {str(m): float(v) for m, v in self._means(evaluator, weights)})
                for number, weights in systems
            ]
        except GenmError as error:
            raise invalid(
                "body.measures", "measures such as AP, nDCG@10", str(error), "See: genm evaluate"
            ) from None
        return EvaluateAnswer(len(queries), measured)

    @staticmethod
    def _means(evaluator: AlignedEvaluator, weights: Floats) -> list[tuple[Any, float]]:
        return list(zip(evaluator.measures, evaluator.values(weights).mean(axis=0), strict=True))

    def interleave(self, request: InterleaveRequest) -> InterleaveAnswer:
        """Rank by two versions and interleave."""
        status = self.status
        first, second = request.versions or (status.champion.version, status.current.version)
        if request.top > 1000:
            raise invalid("body.top", "at most 1000", f"{request.top}", "Nobody looks that far.")
        query = self.fusion.join(request.runs, in_order=True)
        lists = []
        for number in (first, second):
            order, _ = query.fuse(np.array(self.engine.weights_of(number).vector), request.top)
            lists.append(query.doc_ids_of(order))
        seed = secrets.token_hex(8)
        shown, _ = team_draft(lists[0], lists[1], request.top, seed)
        return InterleaveAnswer(f"{first}-{second}-{request.top}-{seed}", (first, second), shown)

    def comparison(self, first: int | None, second: int | None) -> ComparisonAnswer:
        """Say how two versions stand; the champion and the newest one if none are named."""
        status = self.status
        one = status.champion.version if first is None else first
        two = status.current.version if second is None else second
        for number in (one, two):
            self.engine.weights_of(number)
        with self.engine.store.snapshot() as session:
            credits_of_pair = session.credits(min(one, two), max(one, two))
        found = sequential_test(credits_of_pair if one <= two else [-credit for credit in credits_of_pair])
        return ComparisonAnswer(
            versions=(one, two),
            wins=found.wins,
            losses=found.losses,
            ties=found.ties,
            e_value=found.e_value,
            p_value=found.p_value,
            share=found.share,
            interval=found.interval,
            verdict=found.verdict(),
        )

    def running_ap(self) -> RunningAp | None:
        """Return the running mean of AP; it begins anew where the mean has changed."""
        values = self.status.ap_values
        if not values:
            return None
        cut = latest_change([value for _, value in values])
        kept = np.array([value for _, value in values[cut or 0 :]])
        half = 1.96 * float(kept.std(ddof=1)) / math.sqrt(len(kept)) if len(kept) > 1 else 1.0
        mean = float(kept.mean())
        drift_at = None if cut is None else values[cut][0]
        return RunningAp(mean, max(0.0, mean - half), min(1.0, mean + half), len(kept), drift_at)

    def event_rate(self) -> float:
        """Return acknowledged events per second over the last minute."""
        now = time.monotonic()
        seconds = min(60.0, max(1.0, time.time() - self.started))
        return sum(n for at, n in self._recent if now - at <= 60.0) / seconds

    def overview(self, caller: Caller) -> Overview:
        """Return everything that the page shows."""
        status = self.status
        with self.engine.store.snapshot() as session:
            rows, events = session.versions(_SHOWN_VERSIONS), session.newest_events(_SHOWN_EVENTS)
        latency = {
            route: (1000.0 * (one.quantile(0.5) or 0.0), 1000.0 * (one.quantile(0.99) or 0.0))
            for route, one in self.metrics.latencies.items()
            if route.startswith("/v1/")
        }
        comparison = None
        if status.current.version != status.champion.version:
            comparison = self.comparison(status.champion.version, status.current.version)
        return Overview(
            rankers=self.model.rankers,
            champion=status.champion.version,
            latest=status.n_versions,
            sequence=status.sequence,
            weights=dict(zip(self.model.rankers, status.champion.vector, strict=True)),
            versions=[self._entry(row) for row in reversed(rows)],
            running_ap=self.running_ap(),
            ap_values=list(status.ap_values[-200:]),
            events=[
                RecentEvent(row.sequence, row.received / 1000, row.kind, row.outcome, row.version) for row in events
            ],
            event_rate=self.event_rate(),
            latency_ms=latency,
            comparison=comparison,
            failure=self.engine.failure,
            may_roll_back=caller.may("admin"),
        )

    def metrics_text(self) -> str:
        """Return the figures for Prometheus."""
        status, running = self.status, self.running_ap()
        weights = {
            label("ranker", name): weight
            for name, weight in zip(self.model.rankers, status.champion.vector, strict=True)
        }
        gauges: dict[str, tuple[str, dict[str, float]]] = {
            "genm_champion_version": ("The version that is served.", {"": status.champion.version}),
            "genm_latest_version": ("The newest version.", {"": status.n_versions}),
            "genm_sequence": ("The last event of the log.", {"": status.sequence}),
            "genm_weight": ("The champion's weights.", dict(weights)),
            "genm_store_failing": ("1 while the store cannot be written.", {"": float(bool(self.engine.failure))}),
            "genm_requests_waiting": ("Requests that wait for the disk.", {"": self.engine.n_waiting}),
            "genm_commits_total": ("Transactions.", {"": self.engine.n_commits}),
        }
        if self.automatic is not None:
            done, failed = self.automatic.n_done, self.automatic.n_failed
            gauges["genm_relearned_total"] = ("How often the service learned anew by itself.", {"": done})
            gauges["genm_relearning_failures_total"] = ("How often that failed.", {"": failed})
        if running is not None:
            gauges["genm_running_ap"] = ("Mean AP of the newest judged queries.", {"": running.mean})
            gauges["genm_drift"] = ("1 where the mean has changed.", {"": float(running.drift_at is not None)})
        return self.metrics.text(gauges)
