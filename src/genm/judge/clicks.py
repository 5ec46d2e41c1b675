"""Judgments from clicks: read a log, remove the bias of positions, and keep what has enough evidence."""

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from genm.errors import InputError
from genm.io import Destination, opened
from genm.judge.click_logs import MOST_LISTS, ClickCounts, read_clicks
from genm.judge.click_models import MODELS, pbm
from genm.progress import silent
from genm.read import write_qrels
from genm.read.diagnostics import Diagnostics
from genm.read.rows import LIKELY
from genm.read.sources import FileSource, name_of, open_source
from genm.read.texts import read_texts
from genm.records import Note, Qrels, contents

LEAST_LISTS = 10
"""Lists that must have been shown for a query."""
LEAST_CLICKS = 3
"""Clicks that a query must have."""
LEAST_LOOKS = 3.0
"""Times that users must have looked at a document, as far as the model can tell."""
GRADES = 4
"""Grades 0 to 3 are quarters of the relevance."""
Z_95 = 1.96
LEAST_ERROR = 1e-3
"""A relevance is not known better than this."""


class ClickJudgment(NamedTuple):
    """What the clicks say about one document of a query."""

    query: str
    doc_id: str
    relevance: float
    """From 0 to 1; 1 is as good as the best document of a typical query."""
    confidence: float
    """From 0 to 1: 1 less the length of the 95% interval of the relevance."""

    @property
    def probability(self) -> float:
        """How likely the relevance is at least LIKELY, given its interval."""
        error = max((1.0 - self.confidence) / (2.0 * Z_95), LEAST_ERROR)
        return 0.5 + 0.5 * math.erf((self.relevance - LIKELY) / error / math.sqrt(2.0))

    @property
    def grade(self) -> int:
        """The relevance as a grade from 0 to 3: which quarter it is in."""
        return min(int(self.relevance * GRADES), GRADES - 1)


@dataclass(frozen=True, slots=True, eq=False)
class ClickJudgments:
    """Judgments from a log of clicks."""

    judgments: tuple[ClickJudgment, ...]
    model: str
    examination: tuple[float, ...]
    """How likely a position is looked at, the first 1."""
    n_lists: int
    """Lists that the log holds."""
    n_queries: int
    """Queries with judgments."""
    n_left_out: int
    """Queries with too little evidence."""
    notes: tuple[Note, ...]

    def __repr__(self) -> str:
        """Say how many, by which model, on one line."""
        return f"<ClickJudgments by {self.model}: {contents(self.notes, judgments=self.judgments)}>"

    def to_qrels(self) -> Qrels:
        """Return the judgments with grades 0 to 3."""
        table: dict[str, dict[str, int]] = {}
        for one in self.judgments:
            table.setdefault(one.query, {})[one.doc_id] = one.grade
        return Qrels.from_dict(table)


def judge_by_clicks(
    logs: str | Iterable[str] | ClickCounts,
    *,
    model: str = "pbm",
    harvesting: bool = True,
    least_lists: int = LEAST_LISTS,
    least_clicks: int = LEAST_CLICKS,
    most_lists: int = MOST_LISTS,
) -> ClickJudgments:
    """Return the judgments that a log of clicks supports.

    `logs` are files (User Behavior Insights, JSON lines or CSV; see `genm.judge.click_logs`) or counts that were
    read before. `model` is "pbm", "dbn" or "coec". Queries with fewer than `least_lists` lists or `least_clicks`
    clicks are left out and counted, and so are documents that users hardly looked at. A value is divided by the
    median, over the queries, of the best document's value: 1 means as good as the best document of a typical query.
    """
    if model not in MODELS:
        raise InputError(f"model (--model) {model!r}: expected one of {', '.join(MODELS)}.")
    for what, least in (("lists", least_lists), ("clicks", least_clicks)):
        if least < 0:
            raise InputError(
                f"least_{what} (--least-{what}): expected a number of at least 0; found {least}. 0 sets no limit."
            )
    if isinstance(logs, ClickCounts):
        counts = logs
    else:
        counts = read_clicks([logs] if isinstance(logs, str) else list(logs), most_lists=most_lists)
    kept = [q for q in counts.lists if counts.n_lists(q) >= least_lists and counts.n_clicks(q) >= least_clicks]
    notes = _notes_of(counts, len(counts.lists) - len(kept), least_lists, least_clicks)
    if not kept:
        raise InputError(
            f"clicks: expected a query with at least {least_lists} lists and {least_clicks} clicks; found none "
            f"among {len(counts.lists):,} queries. Collect more, or lower the limits (--least-lists, "
            f"--least-clicks)."
        )
    lists, pairs = counts.to_arrays(kept)
    found = pbm(lists, harvesting=harvesting) if model == "pbm" else MODELS[model](lists)
    usable = found.evidence >= LEAST_LOOKS
    best: dict[str, float] = {}
    for (query, _), value, is_usable in zip(pairs, found.value.tolist(), usable.tolist(), strict=True):
        if is_usable:
            best[query] = max(best.get(query, 0.0), value)
    top = float(np.median(list(best.values()))) if best else 1.0
    judgments = tuple(
        ClickJudgment(*pairs[i], min(value / top, 1.0), max(0.0, 1.0 - 2.0 * Z_95 * error / top))
        for i, (value, error) in enumerate(zip(found.value.tolist(), found.error.tolist(), strict=True))
        if usable[i]
    )
    n_unseen = int((~usable).sum())
    if n_unseen:
        text = f"{n_unseen:,} documents were looked at fewer than {LEAST_LOOKS:g} times and are left out."
        notes.append(Note("few-looks", n_unseen, text))
    if model == "pbm":
        how = "documents that were shown at several positions" if found.harvested else "the model itself (EM)"
        notes.append(Note("examination", 1, f"how likely users look at a position comes from {how}."))
    queries = {one.query for one in judgments}
    examination = tuple(found.examination.tolist())
    n_left_out = len(counts.lists) - len(queries)
    return ClickJudgments(judgments, model, examination, counts.n_shown, len(queries), n_left_out, tuple(notes))


def _notes_of(counts: ClickCounts, n_left_out: int, least_lists: int, least_clicks: int) -> list[Note]:
    """Say what was left out of the log."""
    said = (
        ("few-clicks", n_left_out, f"queries have fewer than {least_lists} lists or {least_clicks} clicks"),
        ("dropped-lists", counts.n_dropped, "lists of rare queries exceed the memory that is allowed"),
        ("no-search", counts.n_without_search, "clicks belong to no search of the log"),
        ("not-shown", counts.n_not_shown, "clicks are on documents that their search did not return"),
        ("other-actions", counts.n_other_actions, "events are no clicks"),
    )
    return [Note(code, n, f"{n:,} {text} and are left out.") for code, n, text in said if n]


def with_query_ids(found: ClickJudgments, source: FileSource) -> ClickJudgments:
    """Return the judgments under the ids of a file of queries (lines of id, tab, text, or any format of texts).

    Texts are compared without regard to case and white space. Queries that the file lacks are left out and counted.
    """
    report = Diagnostics(name_of(source), lenient=False)
    texts = read_texts(open_source(source, report, silent), report, silent)
    ids: dict[str, str] = {}
    for query_id, text in texts.items():
        ids.setdefault(_plain(text), query_id)
    known = tuple(one._replace(query=ids[_plain(one.query)]) for one in found.judgments if _plain(one.query) in ids)
    queries = {one.query for one in found.judgments}
    n_unknown = sum(_plain(query) not in ids for query in queries)
    if not known:
        example = next(iter(queries), "")
        raise InputError(
            f"queries (--queries) {report.source}: expected the text of a query of the log, such as {example!r}; "
            f"found none of {len(queries):,}. Check that the file holds the texts as users typed them."
        )
    text = f"{n_unknown:,} queries of the log are not in {report.source} and are left out."
    notes = (*found.notes, *([Note("unknown-query", n_unknown, text)] if n_unknown else []))
    n_queries = len({one.query for one in known})
    return replace(
        found, judgments=known, n_queries=n_queries, n_left_out=found.n_left_out + n_unknown, notes=notes
    )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def write_click_judgments(found: ClickJudgments, destination: Destination) -> None:
    """Write judgments as TREC lines with grades.

    Names ending in .csv or .tsv get fractions, source, confidence and the probability of relevance.
    """
    name = str(destination).removesuffix(".gz").removesuffix(".zst")
    if not name.endswith((".csv", ".tsv")):
        write_qrels(found.to_qrels(), destination)
        return
    text = io.StringIO()
    table = csv.writer(text, delimiter="," if name.endswith(".csv") else "\t", lineterminator="\n")
    table.writerow(("query_id", "doc_id", "relevance", "source", "confidence", "probability"))
    for one in found.judgments:
        sure, likely = f"{one.confidence:.4f}", f"{one.probability:.4f}"
        table.writerow((one.query, one.doc_id, f"{one.relevance:.4f}", f"clicks-{found.model}", sure, likely))
    with opened(destination) as file:
        file.write(text.getvalue().encode())
