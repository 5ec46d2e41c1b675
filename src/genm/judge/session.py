"""A session of judging: which pair a judge sees next, what was said, and how far the work has come.

Several judges work on one store at once. A pair that one of them is looking at is not shown to another for a while.
A stated share of the pairs is shown to two judges, so that their agreement can be measured.
"""

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from genm.errors import GenmError, InputError
from genm.judge.store import Action, Judgment, JudgmentStore, Opinion, settle, standing

Pair = tuple[str, str]
"""Query and document."""
Order = Callable[[Sequence[Judgment]], Sequence[Pair]]
"""Returns the pairs that are still worth a look, the most useful first, given what was judged."""

LEASE_SECONDS = 600.0
"""How long a pair that one judge is looking at is kept from the others."""
NEARBY = 8
"""Among this many of the most useful pairs, one of the query that the judge is reading comes first."""
QUICK_SECONDS = 1.0
"""An order that takes less is computed while the judge waits, so that it is the same in every session."""
_RECENT = 20


@dataclass(frozen=True, slots=True)
class Standing:
    """What the judgments so far say, for the panel beside the page."""

    weights: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    """Where the weight of each ranker lies, given the queries and judgments so far."""
    sentence: str
    """What can be said by now, and what cannot."""
    outlook: str
    """What further judgments would buy."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work has come."""

    n_judged: int
    n_waiting: int
    """Pairs that are still worth a look."""
    grades: Mapping[int, int]
    judges: Mapping[str, int]
    """How many opinions of each judge stand."""
    n_queries: int
    """Queries with a judgment."""
    n_queries_relevant: int
    """Queries with a relevant document: only these can be learned from."""
    n_disputed: int
    per_minute: float | None
    """Judgments a minute of this judge, over the last ones."""
    standing: Standing | None
    failure: str | None
    """Why there is no standing."""


@dataclass
class _Lease:
    judge: str
    until: float


@dataclass
class Session:
    """Hands out pairs and takes opinions. Any thread may call it."""

    store: JudgmentStore
    order: Order
    queries: Mapping[str, str]
    """The text of each query."""
    documents: Mapping[str, str]
    """The text of each document."""
    assess: Callable[[Sequence[Judgment]], Standing] | None = None
    """Says what the judgments come to; slow, so it runs in a thread of its own."""
    overlap: float = 0.1
    """The share of the pairs that two judges see."""
    refresh: int = 5
    """The order is computed again after this many judgments."""
    level: int = 1
    """The lowest grade that counts as relevant."""
    clock: Callable[[], float] = time.monotonic
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _log: list[Opinion] = field(default_factory=list, repr=False)
    _leases: dict[Pair, _Lease] = field(default_factory=dict, repr=False)
    _pairs: list[Pair] = field(default_factory=list, repr=False)
    _reading: dict[str, Pair] = field(default_factory=dict, repr=False)
    _standing: Standing | None = None
    _failure: str | None = None
    _ordered_at: int = -1
    _order_seconds: float = 0.0
    _wake: threading.Event = field(default_factory=threading.Event, repr=False)
    _stopping: bool = False
    _worker: threading.Thread | None = field(default=None, repr=False)

    def start(self) -> None:
        """Compute the first order, then keep it and the standing fresh in a thread."""
        if not 0.0 <= self.overlap <= 1.0:
            raise InputError(f"overlap: expected a share from 0 to 1; found {self.overlap!r}.")
        self._log = self.store.log()
        self._renew()
        self._worker = threading.Thread(target=self._work, name="genm-judge", daemon=True)
        self._worker.start()

    def stop(self) -> None:
        """Stop the thread; opinions are in the store already."""
        self._stopping = True
        self._wake.set()
        if self._worker is not None:
            self._worker.join()

    def _work(self) -> None:
        while not self._stopping:
            self._assess()
            self._wake.wait()
            self._wake.clear()
            if not self._stopping and self._is_stale():
                self._renew()

    def _renew(self) -> None:
        """Compute the order anew; if that fails, the old one stays and the panel says why."""
        with self._lock:
            n, judgments = len(self._log), self._judgments()
        begun = self.clock()
        try:
            pairs, failure = list(self.order(judgments)), None
        except GenmError as error:
            pairs, failure = None, str(error)
        with self._lock:
            self._ordered_at, self._order_seconds = n, self.clock() - begun
            self._failure = failure
            if pairs is not None:
                self._pairs = pairs

    def _assess(self) -> None:
        if self.assess is None:
            return
        with self._lock:
            judgments = self._judgments()
        try:
            standing, failure = self.assess(judgments), None
        except GenmError as error:
            standing, failure = None, str(error)
        with self._lock:
            self._standing, self._failure = standing, failure or self._failure

    def _follow(self) -> None:
        """Read what other processes have written to the store."""
        after = self._log[-1].sequence if self._log else 0
        self._log += self.store.log(after=after)
        if self._is_stale():
            if self._order_seconds < QUICK_SECONDS:
                self._renew()
            self._wake.set()

    def _is_stale(self) -> bool:
        return len(self._log) - self._ordered_at >= self.refresh

    def _judgments(self) -> list[Judgment]:
        return settle(standing(self._log), level=self.level)

    def next(self, judge: str) -> Pair | None:
        """Return the pair that this judge should look at, None where nothing is left for this judge."""
        with self._lock:
            self._follow()
            now = self.clock()
            said = standing(self._log)
            mine = {row.pair for row in said if row.judge == judge}
            graded = Counter(row.pair for row in said if row.grade is not None)
            taken = {pair for pair, lease in self._leases.items() if lease.judge != judge and lease.until > now}
            second = [pair for pair, times in graded.items() if times == 1 and self._is_shared(pair)]
            open_pairs = []
            for pair in (*second, *self._pairs):
                wanted = 2 if self._is_shared(pair) else 1
                if pair in mine or pair in taken or graded[pair] >= wanted or pair[1] not in self.documents:
                    continue
                open_pairs.append(pair)
                if len(open_pairs) == NEARBY:
                    break
            if not open_pairs:
                return None
            reading = self._reading.get(judge)
            chosen = next((pair for pair in open_pairs if reading and pair[0] == reading[0]), open_pairs[0])
            self._leases = {pair: lease for pair, lease in self._leases.items() if lease.until > now}
            self._lend(judge, chosen)
            return chosen

    def _lend(self, judge: str, pair: Pair) -> None:
        for other, lease in list(self._leases.items()):
            if lease.judge == judge:
                del self._leases[other]
        self._leases[pair] = _Lease(judge, self.clock() + LEASE_SECONDS)
        self._reading[judge] = pair

    def _is_shared(self, pair: Pair) -> bool:
        """Tell whether two judges see a pair; the same in every session."""
        digest = hashlib.sha256("\0".join(pair).encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:4]) < self.overlap * 2**32

    def add(
        self, judge: str, pair: Pair, action: Action, grade: int | None, *, key: str, note: str = ""
    ) -> Opinion:
        """Store an opinion; when this returns, it is on disk."""
        query, document = pair
        if query not in self.queries or document not in self.documents:
            raise InputError(
                f"{query[:60]!r}, {document[:60]!r}: expected a pair of these runs. Load the page again."
            )
        said = self.store.add(judge, query, document, grade, action=action, key=key, note=note)
        with self._lock:
            self._leases.pop(pair, None)
            self._follow()
        return said

    def undo(self, judge: str, *, key: str) -> Pair | None:
        """Take the judge's last opinion back and return its pair; None where there is none."""
        back = self.store.undo(judge, key=key)
        if back is None:
            return None
        with self._lock:
            self._lend(judge, back.pair)
            self._follow()
        return back.pair

    def progress(self, judge: str) -> Progress:
        """Return how far the work has come; the rate is this judge's."""
        with self._lock:
            self._follow()
            said = standing(self._log)
            judgments = settle(said, level=self.level)
            relevant = {one.query for one in judgments if one.grade >= self.level}
            judged = {(one.query, one.document) for one in judgments}
            return Progress(
                len(judgments),
                sum(pair not in judged for pair in self._pairs),
                Counter(one.grade for one in judgments),
                Counter(row.judge for row in said if row.action != "skip"),
                len({one.query for one in judgments}),
                len(relevant),
                sum(one.is_disputed for one in judgments),
                _rate([row for row in self._log if row.judge == judge and row.action != "undo"]),
                self._standing,
                self._failure,
            )


def _rate(rows: Sequence[Opinion]) -> float | None:
    """Return opinions a minute over the last ones; pauses of more than five minutes are no work."""
    times = [row.at / 60_000 for row in rows[-_RECENT:]]
    gaps = [after - before for before, after in pairwise(times) if after - before < 5]
    return len(gaps) / sum(gaps) if len(gaps) >= 3 and sum(gaps) > 0 else None
