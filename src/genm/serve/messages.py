"""The bodies that the service takes and gives, and how a body that does not fit is refused.

Every refusal is a `RequestError`: an HTTP status and the five things that a caller needs (code, place, expected,
found, advice). Bodies are decoded strictly: an unknown field, a string for a number, NaN, 1e400 or a document twice
in one list never pass.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from genm.model import Model

MAX_NAME = 512
"""Characters of a key, a query id or a document id."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Grade = Annotated[int, msgspec.Meta(ge=-(2**31) + 1, le=2**31 - 1)]


class Columns(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One ranker's list as two columns: quicker to read and write than rows."""

    doc_ids: list[Name]
    scores: list[float]


Rows = list[tuple[Name, float]]
Runs = dict[Name, Rows | Columns]


class FuseRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One query's lists, to be fused."""

    runs: Runs
    """Each ranker's list: rows [doc_id, score], or the columns doc_ids and scores."""
    query_id: Name | None = None
    rankers: list[Name] | None = None
    """The rankers to fuse, if not all of the model's."""
    weights: dict[Name, float] | None = None
    """Weights to use instead of the stored ones."""
    version: Positive | None = None
    """A version of the weights; the champion if it is not given."""
    top: Positive | None = None
    explain: bool = False
    """Whether to add what each ranker contributed to each score."""
    group: Name | None = None
    """The query's group, where the model has weights by group."""
    text: Annotated[str, msgspec.Meta(max_length=10_000)] | None = None
    """The query's text, which the rules of groups and a per-query gate read."""
    columns: dict[Name, str] | None = None
    """Further columns of the query, which they may read as well."""


class FuseAnswer(msgspec.Struct, omit_defaults=True):
    """The fused list, in the form of the lists that came: rows, or columns."""

    version: int | None
    """The version of the weights; null where the request brought its own."""
    query_id: str | None = None
    results: list[tuple[str, float]] | None = None
    doc_ids: list[str] | None = None
    scores: list[float] | None = None
    group: str | None = None
    """The group whose weights were used; left out for the global weights."""
    contributions: dict[str, list[float]] | None = None
    """For each ranker, weight times normalised score of each document, in the order of the results."""


class Impression(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a user was shown, from the first place down, and what was clicked."""

    shown: list[Name]
    clicks: list[Name]


class InterleavedClicks(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Clicks on a list that /v1/interleave gave."""

    id: Name
    """The id that came with the list."""
    clicks: list[Name]


class FeedbackEvent(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """One query's lists with judgments, clicks, or clicks on an interleaved list: exactly one of the three."""

    key: Name
    """Chosen by the client, once per event: a retry with the same key changes nothing and gets the same answer."""
    query_id: Name
    runs: Runs
    judgments: dict[Name, Grade] | None = None
    impression: Impression | None = None
    interleaved: InterleavedClicks | None = None
    client: Name | None = None
    """On whose behalf the event comes, so that one user's influence is limited."""


class FeedbackRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Some events; all of them are stored, or none is."""

    events: Annotated[list[FeedbackEvent], msgspec.Meta(min_length=1, max_length=10_000)]


Outcome = Literal["learned", "skipped", "limited", "counted", "done"]
"""learned: the weights took a step; skipped: nothing to learn from; limited: the client's influence is used up;
counted: clicks on an interleaved list; done: an action of an administrator."""


class EventAnswer(msgspec.Struct):
    """What became of one event."""

    key: str
    sequence: int
    version: int
    """The newest version when the event was done."""
    outcome: Outcome


class FeedbackAnswer(msgspec.Struct):
    """What became of the events, in their order. It is sent after everything is on disk."""

    events: list[EventAnswer]
    champion: int


class WeightsRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Weights to serve from now on; learning goes on from them."""

    weights: dict[Name, float]
    key: Name


class RollbackRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The version to go back to; learning goes on from it."""

    version: Positive
    key: Name


class RelearnRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Learn from the stored judgments anew, all together; the guard rail decides whether the result is served."""

    key: Name
    last: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 2000
    """How many of the newest judged queries."""


class Relearned(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What the log keeps of it: a replay takes over the weights."""

    key: str
    last: int
    upto: int
    """The last event that was learned from."""
    n_queries: int
    weights: tuple[float, ...]
    by_itself: bool = False
    """Whether the service did it without being asked: then the weights move as far as the limit of influence lets
    them, and not if a person has set the weights meanwhile."""
    since: int = 0
    """The event by which a person had set the weights; what came later was learned from, if by itself."""


class ActionAnswer(msgspec.Struct):
    """What an administrator's action led to."""

    key: str
    sequence: int
    version: int
    """The version that learning goes on from since the action. It is the champion, unless weights learned anew were
    not promoted."""


class VersionEntry(msgspec.Struct):
    """One version of the weights. Versions never change."""

    version: int
    parent: int | None
    sequence: int
    """The last event that went into it."""
    created: float
    """Seconds since 1970."""
    reason: str
    weights: dict[str, float]
    n_seen: int
    """Queries learned from."""
    promoted: bool
    """Whether it became the champion when it was made."""
    recent_ap: float | None
    """Mean AP on the recent judged queries, those of this update aside; null if there were none."""
    champion_recent_ap: float | None
    """The same of the champion that it was compared with."""


class WeightsAnswer(msgspec.Struct):
    """The weights of one version."""

    version: int
    champion: int
    weights: dict[str, float]
    n_seen: int
    sequence: int


class VersionsAnswer(msgspec.Struct):
    """Versions, the newest first."""

    champion: int
    latest: int
    versions: list[VersionEntry]


class EvaluateRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Which weights to measure on the stored judgments."""

    versions: list[Positive] | None = None
    """The champion if neither versions nor weights are given."""
    weights: dict[Name, float] | None = None
    measures: str = "AP"
    last: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 200
    """How many of the newest judged queries."""


class Measured(msgspec.Struct):
    """Means of one vector of weights."""

    version: int | None
    means: dict[str, float]


class EvaluateAnswer(msgspec.Struct):
    """Means over the newest judged queries."""

    n_queries: int
    systems: list[Measured]


class InterleaveRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One query's lists, to be ranked by two versions whose lists are then interleaved."""

    runs: Runs
    versions: tuple[Positive, Positive] | None = None
    """The champion and the newest version if it is not given."""
    top: Positive = 10


class InterleaveAnswer(msgspec.Struct):
    """The list to show. Send the clicks back as feedback, under `interleaved`, with this id and the same runs."""

    id: str
    versions: tuple[int, int]
    doc_ids: list[str]


class ComparisonAnswer(msgspec.Struct):
    """How two versions stand after the interleaved lists so far."""

    versions: tuple[int, int]
    wins: int
    """Lists on which the first version got more clicks."""
    losses: int
    ties: int
    e_value: float
    """Evidence of a difference. Without one it ever exceeds 20 with a chance of 5 % at most."""
    p_value: float
    """Valid however often one looks: 1 over the largest e-value so far."""
    share: float | None
    """The first version's share of the lists that one of the two won."""
    interval: tuple[float, float]
    """95 % confidence sequence of the share."""
    verdict: str


class Fault(msgspec.Struct):
    """Why a request was refused."""

    code: str
    place: str
    expected: str
    found: str
    advice: str
    message: str
    """All of it in one sentence or two."""


class FaultAnswer(msgspec.Struct):
    """The body of every answer from status 400 on."""

    error: Fault


class RequestError(Exception):
    """A request that cannot be served, with its HTTP status."""

    def __init__(self, status: int, code: str, place: str, expected: str, found: str, advice: str) -> None:
        message = f"{place}: expected {expected}; found {found}. {advice}".strip()
        super().__init__(message)
        self.status = status
        self.fault = Fault(code, place, expected, found, advice, message)

    def answer(self) -> FaultAnswer:
        """Return the body to send."""
        return FaultAnswer(self.fault)


def invalid(place: str, expected: str, found: str, advice: str) -> RequestError:
    """Return the refusal of a body that can be read but not used."""
    return RequestError(422, "input", place, expected, found, advice)


def read_list(place: str, given: Rows | Columns) -> tuple[Sequence[str], Sequence[float]]:
    """Return one ranker's documents and scores as columns, checked."""
    doc_ids: Sequence[str]
    scores: Sequence[float]
    if isinstance(given, Columns):
        doc_ids, scores = given.doc_ids, given.scores
        if len(doc_ids) != len(scores):
            raise invalid(
                place, "as many scores as doc_ids", f"{len(doc_ids)} doc_ids, {len(scores)} scores", "Send pairs."
            )
    else:
        doc_ids, scores = [doc_id for doc_id, _ in given], [score for _, score in given]
    if not doc_ids:
        raise invalid(
            place,
            "at least one document",
            "an empty list",
            "If the ranker returned nothing, leave it out and name the others in `rankers`.",
        )
    return doc_ids, scores


def repeated(place: str, doc_ids: Sequence[str]) -> RequestError:
    """Return the refusal of a list that holds a document twice."""
    seen = set[str]()
    for twice in doc_ids:
        if twice in seen:
            break
        seen.add(twice)
    return invalid(place, "each document once", f"{twice!r} twice", "Keep the higher score of the two.")


def read_weights(place: str, weights: Mapping[str, float], model: Model, *, distribution: bool) -> dict[str, float]:
    """Return a weight for each of the model's rankers; as a distribution they are >= 0 and sum to 1."""
    check_names(place, weights, model.rankers)
    missing = [name for name in model.rankers if name not in weights]
    if missing:
        raise invalid(place, "a weight for each ranker", f"none for {', '.join(missing)}", "0 leaves one out.")
    if not any(weights.values()):
        raise invalid(place, "a weight that is not 0", "zeros only", "With these weights all documents would tie.")
    if distribution:
        if any(weight < 0 for weight in weights.values()):
            raise invalid(place, "weights >= 0", "a negative one", "Only a fuse request may have them.")
        total = math.fsum(weights.values())
        if not math.isfinite(total):
            raise invalid(place, "weights with a finite sum", "an infinite one", "Scale them.")
        return {name: weights[name] / total for name in model.rankers}
    return {name: weights[name] for name in model.rankers}


def check_names(place: str, names: Mapping[str, object] | list[str], known: tuple[str, ...]) -> None:
    """Refuse names of rankers that the model does not have."""
    for name in names:
        if name not in known:
            found = f"{name[:80]!r}"
            raise invalid(place, f"rankers out of {', '.join(known)}", found, "Check the spelling.")


def kinds_of(event: FeedbackEvent) -> Iterator[str]:
    """Yield which kinds of feedback the event holds."""
    if event.judgments is not None:
        yield "judgments"
    if event.impression is not None:
        yield "clicks"
    if event.interleaved is not None:
        yield "interleaved"
