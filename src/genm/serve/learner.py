"""Learning from feedback: events change the weights one after another, and the same events give the same bits.

The learner knows neither the network nor the disk. It is a fold over the log of events: the same log gives the same
versions, the same champion and the same outcomes, to the last bit. `genm serve check` does so.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import msgspec
import numpy as np

from genm._typing import Floats
from genm.align import Aligned
from genm.learn import OnlineFuser
from genm.learn.objectives import beta_of
from genm.model import Model, OnlineState
from genm.serve.fusion import Fusion, QueryScores
from genm.serve.guards import (
    LEAST_MOVE,
    NANO,
    Influence,
    RecentQueries,
    average_precisions,
    merge_queries,
    moved_distance,
)
from genm.serve.interleaving import credit, team_draft
from genm.serve.messages import FeedbackEvent, Outcome, RequestError, invalid, kinds_of

N_AP_VALUES = 512
"""How many of the newest AP values the running mean and the test for drift read."""


class Rules(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How feedback is learned from. A change of the rules is an event of the log."""

    max_ap_loss: float = 0.02
    """An update that loses more than this mean AP on the recent queries is not promoted."""
    n_recent: int = 64
    """How many judged queries an update is tried on."""
    influence: float | None = 0.25
    """How far one client's events may move the weights in an hour, in total variation; None is without limit."""
    position_bias: float = 1.0
    """A place r is taken to be looked at with a chance of r ** -position_bias; 0 trusts clicks as they are."""
    largest_click: float = 10.0
    """A click counts at most this many times a click on the first place."""
    prior_queries: int | None = None
    """A model without a stream goes on as if its weights came from this many queries; None is as many as the model
    says that it was trained on, 1 if it does not say."""


@dataclass(frozen=True, slots=True)
class Weights:
    """One version: what fusing and learning need of it."""

    version: int
    vector: tuple[float, ...]
    state: OnlineState | None
    """None as long as no stream has begun."""


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """One event made ready: checked, aligned, and free of anything that could fail later."""

    event: FeedbackEvent
    kind: str
    clients: tuple[str, ...]
    """Whose influence it uses."""
    rules: Rules
    """Under which it was made ready: they say what a click counts."""
    steps: tuple[Aligned, ...] = ()
    """What the learner takes a step on: the judged query, or one query per click."""
    judged: Aligned | None = None
    """The judged query, where it has a relevant document."""
    pair: tuple[int, int] | None = None
    credit: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one event."""

    outcome: Outcome
    ap: float | None = None
    """AP of the champion on the judged query, before learning from it."""
    moved: int = 0
    """How far the weights moved, in billionths of total variation; the first of a group of events has the sum."""


@dataclass(frozen=True, slots=True)
class Update:
    """A new version, and how it did beside the champion on the recent queries."""

    weights: Weights
    parent: int
    promoted: bool
    recent_ap: float | None
    champion_recent_ap: float | None


@dataclass(frozen=True, slots=True, eq=False)
class _Position:
    """Where the stream stands: its state, and the weights that are served."""

    state: OnlineState | None
    vector: Floats


def prior_queries(model: Model, rules: Rules) -> int:
    """Return how many queries the weights of a model without a stream are taken to come from."""
    if rules.prior_queries is not None:
        return rules.prior_queries
    told = model.training.get("queries")
    return told if isinstance(told, int) and told > 0 else 1


RELEARNING = ":relearn"
"""Whose influence the service's own learning from stored feedback uses; no client can have this name."""


class Learner:
    """The state of learning between two events."""

    def __init__(self, model: Model, rules: Rules) -> None:
        self.model, self.rules = model, rules
        self.fusion = Fusion(model)
        self.current = Weights(1, model.weights, model.online)
        self.champion = self.current
        self.n_versions = 1
        self.recent = RecentQueries(rules.n_recent, model.relevance_level)
        self.influence = Influence()

    def set_rules(self, rules: Rules) -> None:
        """Learn by other rules from now on."""
        if rules.n_recent != self.rules.n_recent:
            recent = RecentQueries(rules.n_recent, self.model.relevance_level)
            recent.add(self.recent.queries())
            self.recent = recent
        self.rules = rules

    def learn(self, lessons: Sequence[Lesson], received: int) -> tuple[list[Result], Update | None]:
        """Take the steps of one request's events; return what became of each, and the new version if any."""
        judged = [lesson.judged for lesson in lessons if lesson.judged is not None]
        champion = np.array(self.champion.vector)
        values = iter(average_precisions(judged, champion, self.model.relevance_level))
        at = _Position(self.current.state, np.array(self.current.vector))
        results: list[Result] = []
        for (kind, clients), group in groupby(lessons, lambda lesson: (lesson.kind, lesson.clients)):
            some = list(group)
            if kind == "interleaved":
                results += [Result("counted") for _ in some]
                continue
            outcomes, at = self._learn_group(some, clients, at, received)
            results += outcomes
        results = [
            replace(result, ap=next(values)) if lesson.judged is not None else result
            for lesson, result in zip(lessons, results, strict=True)
        ]
        update = None
        if any(result.outcome == "learned" for result in results):
            update = self._new_version(tuple(at.vector.tolist()), at.state)
        self.recent.add(judged)
        return results, update

    def _learn_group(
        self, lessons: Sequence[Lesson], clients: tuple[str, ...], start: "_Position", received: int
    ) -> tuple[list[Result], "_Position"]:
        """Take the steps of consecutive events of the same clients: all at once, or one by one near the limit."""
        taught = [bool(lesson.steps) for lesson in lessons]
        at, moved = self._step([step for lesson in lessons for step in lesson.steps], start)
        limit = self.rules.influence
        if self.influence.allows(clients, received, moved, limit):
            if at is start:
                return [Result("skipped") for _ in lessons], start
            self.influence.add(clients, received, moved)
            first = taught.index(True)
            return [
                Result("learned" if has_steps else "skipped", moved=moved if number == first else 0)
                for number, has_steps in enumerate(taught)
            ], at
        if len(lessons) == 1:
            return [Result("limited")], start
        results, at = [], start
        for lesson in lessons:
            result, at = self._learn_group([lesson], clients, at, received)
            results += result
        return results, at

    def _step(self, steps: Sequence[Aligned], start: "_Position") -> tuple["_Position", int]:
        """Return the state after the steps and how far the weights moved; the start itself if nothing changed."""
        if not steps:
            return start, 0
        state = start.state if start.state is not None else self._begin_stream(steps[0], start.vector)
        if state is None:
            return start, 0
        fuser = OnlineFuser.from_model(replace(self.model, weights=tuple(start.vector.tolist()), online=state))
        after = fuser.partial_fit(steps[0] if len(steps) == 1 else merge_queries(steps)).to_model()
        assert after.online is not None
        vector, raw = np.array(after.weights), np.array(after.online.raw_weights)
        if not (np.isfinite(vector).all() and np.isfinite(raw).all()):
            return start, 0
        moved = max(moved_distance(start.vector, vector), moved_distance(np.array(state.raw_weights), raw))
        return _Position(after.online, vector), moved

    def _begin_stream(self, first: Aligned, vector: Floats) -> OnlineState | None:
        """Return the state of a stream that goes on from a model's weights.

        The adaptive schedule scales its steps by the gradients met so far. It has met none, so the first query's
        gradient stands in for those of the queries that the weights are taken to come from.
        """
        n, weights = prior_queries(self.model, self.rules), tuple(vector.tolist())
        beta = self.model.beta if self.model.beta is not None else beta_of(first)
        empty = OnlineState(weights, 0, "adaptive", beta, (0.0,) * (2 + len(weights)))
        fuser = OnlineFuser.from_model(replace(self.model, weights=weights, online=empty))
        square = float(fuser.partial_fit(first).memory_[0])
        if not square > 0.0:
            return None
        total = n * (n + 1) / 2
        return replace(empty, n_seen=n, memory=(n * square, total, *(total * weight for weight in weights)))

    def _new_version(self, vector: tuple[float, ...], state: OnlineState | None) -> Update:
        self.n_versions += 1
        made, parent = Weights(self.n_versions, vector, state), self.current.version
        before = self.recent.mean_ap(np.array(self.champion.vector))
        after = self.recent.mean_ap(np.array(vector))
        promoted = self._passes(before, after)
        self.current = made
        if promoted:
            self.champion = made
        return Update(made, parent, promoted, after, before)

    def roll_back(self, to: Weights) -> None:
        """Make an older version the champion, and go on learning from it."""
        self.current = self.champion = to

    def set_weights(self, vector: tuple[float, ...]) -> Update:
        """Make given weights a version and the champion; the stream goes on from them."""
        return self._take_over(vector, is_free=True)

    def relearn(self, vector: tuple[float, ...], received: int, *, by_itself: bool) -> tuple[Update, int]:
        """Make weights that were learned from the stored feedback a version.

        It is promoted, and the stream goes on from it, unless it loses too much AP on the recent queries. What the
        service learns by itself moves the weights no further in an hour than the limit of one client's influence.
        Returns how far the weights that are served moved, too, as the limit counts it.
        """
        moved = 0
        if by_itself:
            vector, moved = self._within_limit(vector, received)
        update = self._take_over(vector, is_free=False)
        if not update.promoted:
            return update, 0
        if moved:
            self.influence.add((RELEARNING,), received, moved)
        return update, moved

    def _within_limit(self, vector: tuple[float, ...], received: int) -> tuple[tuple[float, ...], int]:
        """Return the weights as far on the way from the served ones as the limit lets them go, and the distance."""
        served, wanted = np.array(self.champion.vector), np.array(vector)
        moved, limit = moved_distance(served, wanted), self.rules.influence
        if limit is None:
            return vector, moved
        left = math.floor(limit * NANO) - self.influence.used(RELEARNING, received)
        if moved <= left:
            return vector, moved
        if left < LEAST_MOVE:
            raise RequestError(
                429, "influence", "the service", f"weights moved by at most {limit:g} in an hour by learning anew",
                "more", "Wait, or start the service with a larger --influence.",
            )  # fmt: skip
        nearer = served + (left - 1) / moved * (wanted - served)  # the distance is rounded up
        return tuple(nearer.tolist()), moved_distance(served, nearer)

    def _take_over(self, vector: tuple[float, ...], *, is_free: bool) -> Update:
        """Make weights from outside the stream a version; `is_free` promotes them whatever they lose."""
        state = self.current.state
        if state is not None and state.schedule == "adaptive":
            gradients, total = state.memory[:2]
            state = replace(state, memory=(gradients, total, *(total * weight for weight in vector)))
        if state is not None:
            state = replace(state, raw_weights=vector)
        before = self.recent.mean_ap(np.array(self.champion.vector))
        after = self.recent.mean_ap(np.array(vector))
        promoted = is_free or self._passes(before, after)
        self.n_versions += 1
        made, parent = Weights(self.n_versions, vector, state), self.current.version
        if promoted:
            self.current = self.champion = made
        return Update(made, parent, promoted, recent_ap=after, champion_recent_ap=before)

    def _passes(self, before: float | None, after: float | None) -> bool:
        """Tell whether a version may be served: it must not lose too much AP on the recent queries."""
        return before is None or after is None or after >= before - self.rules.max_ap_loss


class Lessons:
    """Makes events ready for the learner: checks them and aligns their lists."""

    def __init__(self, model: Model, rules: Rules) -> None:
        self.model, self.rules = model, rules
        self.fusion = Fusion(model)

    def prepare(
        self, event: FeedbackEvent, clients: tuple[str, ...], place: str, versions: Mapping[int, Weights]
    ) -> Lesson:
        """Return the event made ready, or refuse it. `versions` holds those that the event names."""
        (lesson,) = self._prepare([(event, clients, place)], versions)
        return lesson

    def prepare_all(
        self, given: Sequence[tuple[FeedbackEvent, tuple[str, ...], str]], versions: Mapping[int, Weights]
    ) -> list[Lesson]:
        """Return events made ready, each given with its clients and its place, or refuse the first wrong one.

        The lists of all events are aligned at once, which takes a fraction of the time.
        """
        try:
            return self._prepare(given, versions)
        except RequestError:
            return [self.prepare(*one, versions) for one in given]  # refuses the first event that is wrong

    def _prepare(
        self, given: Sequence[tuple[FeedbackEvent, tuple[str, ...], str]], versions: Mapping[int, Weights]
    ) -> list[Lesson]:
        kinds = [_kind_of(event, place) for event, _, place in given]
        queries = self.fusion.join_all([(event.runs, f"{place}.runs") for event, _, place in given])
        return [
            self._lesson(event, kind, clients, place, query, versions)
            for (event, clients, place), kind, query in zip(given, kinds, queries, strict=True)
        ]

    def _lesson(
        self,
        event: FeedbackEvent,
        kind: str,
        clients: tuple[str, ...],
        place: str,
        query: QueryScores,
        versions: Mapping[int, Weights],
    ) -> Lesson:
        if event.judgments is not None:
            if not event.judgments:
                raise invalid(f"{place}.judgments", "at least one judgment", "none", "Leave the event out.")
            if max(event.judgments.values()) < self.model.relevance_level:
                return Lesson(event, kind, clients, self.rules)
            aligned = self.fusion.aligned(query, event.judgments)
            return Lesson(event, kind, clients, self.rules, (aligned,), aligned)
        if event.impression is not None:
            shown, clicks = event.impression.shown, event.impression.clicks
            check_clicks(shown, clicks, f"{place}.impression")
            known = set(query.doc_ids)
            rank = {doc_id: number for number, doc_id in enumerate(shown, 1)}
            steps = tuple(
                self.fusion.aligned(query, {doc_id: self.model.relevance_level}, self._click_weight(rank[doc_id]))
                for doc_id in sorted(clicks, key=rank.__getitem__)
                if doc_id in known
            )
            return Lesson(event, kind, clients, self.rules, steps)
        return self._interleaved(event, clients, place, query, versions)

    def renew(self, lesson: Lesson) -> Lesson:
        """Return a lesson as these rules make it."""
        if lesson.kind != "clicks":
            return replace(lesson, rules=self.rules)
        return self.prepare(lesson.event, lesson.clients, "event", {})

    def _click_weight(self, rank: int) -> float:
        """Return the inverse chance that the place was looked at, cut off, as a share of the largest.

        Joachims, Swaminathan and Schnabel (2017): a click weighted so counts as if all places were looked at.
        """
        inverse = math.pow(rank, self.rules.position_bias)
        return min(inverse, self.rules.largest_click) / self.rules.largest_click

    def _interleaved(
        self,
        event: FeedbackEvent,
        clients: tuple[str, ...],
        place: str,
        query: QueryScores,
        versions: Mapping[int, Weights],
    ) -> Lesson:
        given = event.interleaved
        assert given is not None
        first, second, top, seed = parse_interleaving(given.id, f"{place}.interleaved.id")
        for number in (first, second):
            if number not in versions:
                raise invalid(f"{place}.interleaved.id", "versions of this store", f"{number}", "Interleave anew.")
        lists = []
        for number in (first, second):
            order, _ = query.fuse(np.array(versions[number].vector), top)
            lists.append(query.doc_ids_of(order))
        shown, teams = team_draft(lists[0], lists[1], top, seed)
        check_clicks(shown, given.clicks, f"{place}.interleaved")
        return Lesson(
            event,
            "interleaved",
            clients,
            self.rules,
            pair=(first, second),
            credit=credit(shown, teams, given.clicks),
        )


def _kind_of(event: FeedbackEvent, place: str) -> str:
    """Return the one kind of feedback that the event holds."""
    kinds = list(kinds_of(event))
    if len(kinds) != 1:
        raise invalid(
            place,
            "exactly one of judgments, impression and interleaved",
            " and ".join(kinds) or "none",
            "Send one event for each.",
        )
    return kinds[0]


def parse_interleaving(text: str, place: str) -> tuple[int, int, int, str]:
    """Return the two versions, the length and the seed that an id of an interleaved list holds."""
    parts = text.split("-")
    if len(parts) != 4 or not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts[:3]):
        raise invalid(place, "an id that /v1/interleave gave", f"{text[:60]!r}", "Send it back as it came.")
    first, second, top = map(int, parts[:3])
    if not 1 <= top <= 1000:
        raise invalid(place, "an id that /v1/interleave gave", f"{text[:60]!r}", "Send it back as it came.")
    return first, second, top, parts[3]


def check_clicks(shown: Sequence[str], clicks: Sequence[str], place: str) -> None:
    """Refuse clicks on documents that were not shown, and anything twice."""
    if not shown:
        raise invalid(f"{place}.shown", "at least one document", "none", "Leave the event out.")
    for name, docs in (("shown", shown), ("clicks", clicks)):
        if len(set(docs)) < len(docs):
            raise invalid(f"{place}.{name}", "each document once", "one twice", "Send each document once.")
    strange = next((doc_id for doc_id in clicks if doc_id not in set(shown)), None)
    if strange is not None:
        raise invalid(f"{place}.clicks", "documents that were shown", f"{strange[:80]!r}", "Check the impression.")
