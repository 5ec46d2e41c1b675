"""What the experiment found: per collection and method the held-out values, and the tables made of them.

Tables are data: cells with a meaning, written out as text, Markdown or comma-separated values.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from genm._typing import Floats
from genm.align import Aligned
from genm.evaluate import Measure
from genm.records import Note

Kind = Literal["single", "rule", "baseline", "unsupervised", "supervised", "printed"]

MEASURES: tuple[tuple[str, Measure], ...] = (
    ("MAP", Measure("AP")),
    ("Pr@1", Measure("P", cutoff=1)),
    ("Pr@5", Measure("P", cutoff=5)),
)
"""The paper's measures under its names; the last axis of values is in this order."""
RECALL_LEVELS: tuple[float, ...] = tuple(level / 10 for level in range(11))
"""Where the precision-recall curves are taken."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what it says, and how it is meant."""

    text: str
    strong: bool = False
    """The best of its row, or whatever the table's notes say that bold means."""
    number: bool = False
    """Set to the right, so that digits stand below digits."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table with its title, and notes that say how to read it."""

    key: str
    """What its files are called: lower-case letters, digits and hyphens."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def to_markdown(self) -> str:
        """Return the table as a section of a Markdown page."""
        numeric = [all(row[c].number for row in self.rows) for c in range(len(self.columns))]
        lines = [f"### {self.title}", "", _markdown_row(self.columns)]
        lines.append("|" + "|".join("---:" if right else "---" for right in numeric) + "|")
        lines += [_markdown_row(_marked(row)) for row in self.rows]
        lines += [line for note in self.notes for line in ("", note)]
        return "\n".join(lines) + "\n"

    def to_csv(self) -> str:
        """Return the bare cells, comma-separated, the columns' names first; title and notes are left out."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([cell.text for cell in row] for row in self.rows)
        return buffer.getvalue()

    def to_json(self) -> dict[str, object]:
        """Return the table as plain data."""
        return {
            "key": self.key,
            "title": self.title,
            "columns": list(self.columns),
            "rows": [[cell.text for cell in row] for row in self.rows],
            "notes": list(self.notes),
        }


def words(*texts: str) -> tuple[Cell, ...]:
    """Return cells of words."""
    return tuple(Cell(text) for text in texts)


def figures(values: Iterable[float | None], form: str = ".4f", *, strong: Sequence[int] = ()) -> tuple[Cell, ...]:
    """Return cells of numbers, None as an empty cell; `strong` are the positions of those to stand out."""
    return tuple(
        Cell("" if value is None else format(value, form), strong=at in strong, number=True)
        for at, value in enumerate(values)
    )


def _marked(row: Sequence[Cell]) -> list[str]:
    return [f"**{cell.text}**" if cell.strong and cell.text else cell.text for cell in row]


def _markdown_row(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


@dataclass(frozen=True, slots=True, eq=False)
class MethodResult:
    """One method on one collection, measured on queries that its weights had not seen."""

    name: str
    kind: Kind
    """single: one ranker; rule: no weights to learn; baseline: what learning has to beat; unsupervised: no labels
    seen; supervised: the paper's methods and ours; printed: the paper's algorithms to the letter, or in part."""
    values: Floats
    """(splits, queries, 3) held-out values of MEASURES; a method that no split can change has a single one."""
    curves: Floats
    """(splits, 11) held-out interpolated precision at RECALL_LEVELS, averaged over the queries."""
    weights: Floats
    """(splits, folds, K) what was learned without each fold; (0, 0, K) for a method without weights."""
    train: Floats
    """(splits, folds) MAP on the queries learned from; (0, 0) where nothing was learned from labels."""
    notes: tuple[Note, ...] = ()

    @property
    def per_query(self) -> Floats:
        """(queries, 3) values averaged over the splits: what the paired tests compare."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def per_split(self) -> Floats:
        """(splits, 3) mean over all queries in each split: what the spread is taken of."""
        return np.asarray(self.values.mean(axis=1))

    @property
    def mean(self) -> Floats:
        """(3,) mean over queries and splits."""
        return np.asarray(self.per_split.mean(axis=0))

    @property
    def spread(self) -> Floats:
        """(3,) standard deviation over the splits; 0 with a single one."""
        return np.asarray(self.per_split.std(axis=0, ddof=1 if len(self.values) > 1 else 0))

    @property
    def curve(self) -> Floats:
        """(11,) the precision-recall curve, averaged over the splits."""
        return np.asarray(self.curves.mean(axis=0))


@dataclass(frozen=True, slots=True)
class Facts:
    """Counts of one collection."""

    documents: int
    queries: int
    judged: int
    """Queries with a relevant document: only these are measured."""
    terms: int
    """In the vocabulary that our rankers use."""
    terms_as_printed: int | None
    """In the vocabulary of the paper's recipe; None where its stop list is not at hand."""
    relevant: int
    """Pairs of a query and a relevant document."""
    sha256: str = ""
    """Of ids, texts and judgments: which data this was."""


@dataclass(frozen=True, slots=True, eq=False)
class CollectionResult:
    """Everything found on one collection."""

    name: str
    """As `load_collection` knows it: med, cran, cisi, cacm, mc, pydocs."""
    title: str
    """As the paper writes it: MED, CRAN, CISI, CACM, MC."""
    facts: Facts
    aligned: Aligned
    """The paper's four rankers: raw cosines of all documents (no normaliser), judged queries only."""
    fold: NDArray[np.int64]
    """(splits, queries) the fold that each query was held out in."""
    methods: Mapping[str, MethodResult]
    """The paper's rankers, by the method's name, in the order of the tables."""
    more: Mapping[str, MethodResult] = field(default_factory=dict)
    """The same with further rankers in the ensemble; empty where that was not asked for."""
    more_rankers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """What one run of the experiment found."""

    collections: tuple[CollectionResult, ...]
    splits: int
    seed: int
    tables: tuple[ResultTable, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    """Seconds by the part of the work."""
    notes: tuple[Note, ...] = ()

    def collection(self, name: str) -> CollectionResult | None:
        """Return what was found on a collection; None if it was not asked for."""
        return next((found for found in self.collections if found.name == name), None)
