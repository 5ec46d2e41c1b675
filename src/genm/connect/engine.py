"""The contract of every engine: a search gives documents with their raw scores, checked before they are used."""

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

from genm.connect.access import Access
from genm.connect.templates import Template, Values
from genm.errors import EngineError, InputError

MOST_DEPTH = 1_000_000
DUPLICATE_RULES = ("error", "max", "first", "last")


class Hit(NamedTuple):
    """A document as the engine returned it; nothing is checked yet."""

    doc_id: Any
    score: Any
    text: str | None = None


class Page(NamedTuple):
    """A part of an answer."""

    hits: list[Hit]
    partial: str = ""
    """What the engine left out, such as shards that failed; empty if it searched everything."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The checked documents of one search, in the engine's order."""

    hits: tuple[tuple[str, float], ...]
    texts: dict[str, str] = field(default_factory=dict)
    partial: str = ""
    n_duplicates: int = 0


class Engine(ABC):
    """A search engine, or anything that answers like one. Use it as a context manager, or close it.

    with connect(engine="opensearch", address="https://localhost:9200", index="articles") as engine:
        hits = engine.search({"match": {"text": "$query"}}, "red cars", depth=10)
    """

    name: ClassVar[str]
    extra: ClassVar[str] = ""
    """The extra that brings the engine's client."""
    most_threads: ClassVar[int] = 64
    """How many searches may run at once; 1 for engines that live in this process."""
    largest_page: ClassVar[int] = MOST_DEPTH
    has_pages: ClassVar[bool] = True
    """Whether a list can be asked for in parts; if not, every search asks for the whole depth."""

    def __init__(self, access: Access) -> None:
        self.access = access

    @abstractmethod
    def read_template(self, template: Template, place: str) -> Any:
        """Check a template before anything is asked, and return it in the form that `page` takes."""

    @abstractmethod
    def page(self, template: Any, values: Values, start: int, size: int) -> Page:
        """Return `size` documents from position `start` (from 0) on; raise EngineError for everything else."""

    def state(self) -> str | None:
        """Return a text that changes when the index changes; None where the engine cannot tell."""
        return None

    def version(self) -> str | None:
        """Return the engine's version, None where it cannot tell."""
        return None

    def close(self) -> None:  # noqa: B027 (an engine without connections needs none)
        """Close the connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def search(
        self,
        template: Template,
        query: str,
        vector: Iterable[float] | Mapping[str, Any] | None = None,
        depth: int = 100,
    ) -> list[tuple[str, float]]:
        """Return the documents and raw scores of one sub-query, best first, as the engine orders them.

        Args:
            template: The sub-query in the engine's own language, with `$query` and `$vector` in it.
            query: The query's text.
            vector: The query's vector, for a template that has `$vector`; a sparse one has `indices` and `values`.
            depth: How many documents to ask for.

        Raises:
            EngineError: The engine cannot be reached, refuses the query, or its answer cannot be used.
            InputError: The template or the depth cannot be used.
        """
        place = f"{self.name} template"
        values = Values(
            "query",
            query,
            vector if vector is None or isinstance(vector, Mapping) else tuple(map(float, vector)),
            check_depth(depth),
        )
        answer = self.ask(self.read_template(template, place), values)
        if answer.partial:
            raise EngineError(
                f"{self.name}: expected an answer of the whole index; found a part: {answer.partial}."
            )
        return list(answer.hits)

    def ask(
        self, template: Any, values: Values, *, page_size: int | None = None, duplicates: str = "error"
    ) -> Answer:
        """Return the checked answer to one query, page by page; the template is what `read_template` returned."""
        size = min(page_size or values.depth, self.largest_page, values.depth) if self.has_pages else values.depth
        hits: list[Hit] = []
        partial = ""
        while len(hits) < values.depth:
            wanted = min(size, values.depth - len(hits))
            page = self.page(template, values, len(hits), wanted)
            if len(page.hits) > wanted:
                raise EngineError(
                    f"{self.name}: expected at most {wanted} documents for query {values.query_id!r}; found "
                    f"{len(page.hits)}. Does the template set its own limit?"
                )
            hits += page.hits
            partial = partial or page.partial
            if len(page.hits) < wanted:
                break
        return checked_answer(hits, f"{self.name}: query {values.query_id!r}", partial, duplicates)


def check_depth(depth: int) -> int:
    """Return the depth if it can be one."""
    if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= MOST_DEPTH:
        raise InputError(f"depth: expected an integer from 1 to {MOST_DEPTH}; found {depth!r:.40}.")
    return depth


def checked_answer(hits: list[Hit], where: str, partial: str, duplicates: str) -> Answer:
    """Return an answer whose ids are words, whose scores are finite and fall, and which has each document once."""
    scores: dict[str, float] = {}
    texts: dict[str, str] = {}
    n_duplicates = 0
    previous: float | None = None
    n_rises = n_falls = 0
    for rank, hit in enumerate(hits, 1):
        doc_id, score = (
            _checked_id(hit.doc_id, f"{where}, rank {rank}"),
            _checked_score(hit, f"{where}, rank {rank}"),
        )
        n_rises += previous is not None and score > previous
        n_falls += previous is not None and score < previous
        previous = score
        if doc_id in scores:
            n_duplicates += 1
            if duplicates == "error":
                raise EngineError(
                    f"{where}, rank {rank}: expected each document once; found {doc_id!r:.80} again. If several "
                    'parts of a document share its id, set duplicates = "max"; otherwise see whether the index '
                    "changed between two pages."
                )
            if duplicates == "first" or (duplicates == "max" and score <= scores[doc_id]):
                continue
        scores[doc_id] = score
        if hit.text is not None:
            texts[doc_id] = hit.text
    if n_rises and not n_falls:
        raise EngineError(
            f"{where}: expected scores of which higher is better; found scores that rise from the first to the "
            "last "
            "document, as distances do. Ask for a similarity, or for the negative distance."
        )
    return Answer(tuple(scores.items()), texts, partial, n_duplicates)


def _checked_id(doc_id: Any, place: str) -> str:
    if isinstance(doc_id, bool) or not isinstance(doc_id, str | int):
        doc_id = str(doc_id) if doc_id is not None and type(doc_id).__name__ in ("UUID", "ObjectId") else None
    text = "" if doc_id is None else str(doc_id)
    if not text or any(c.isspace() or not c.isprintable() for c in text):
        raise EngineError(
            f"{place}: expected a document id of printable characters without white space; found {doc_id!r:.80}. "
            "Name another id_field."
        )
    return text


def _checked_score(hit: Hit, place: str) -> float:
    score = hit.score
    if score is None:
        raise EngineError(
            f"{place}: expected a score for document {hit.doc_id!r:.80}; found none. Does the template sort by a "
            "field, or filter only?"
        )
    value = math.nan
    if not isinstance(score, bool) and isinstance(score, numbers.Real):
        with suppress(OverflowError):  # an integer beyond all floats
            value = float(score)
    if not math.isfinite(value):
        raise EngineError(f"{place}: expected a finite score for document {hit.doc_id!r:.80}; found {score!r:.40}.")
    return value


def joined_text(parts: Iterable[Any]) -> str | None:
    """Return the texts of a document's fields in one line; None if it has none of them."""
    found = [" ".join(str(part).split()) for part in parts if part is not None]
    return " ".join(part for part in found if part) or None
