"""LETOR and SVMrank text, `label qid:7 1:0.3 2:0.7 # document`: a run for each feature, and judgments."""

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genm.errors import InputError
from genm.ids import encode
from genm.progress import Progress, silent
from genm.read.diagnostics import Diagnostics, shown
from genm.read.rows import Duplicates, Rows, as_qrels, as_run, segments
from genm.read.sources import FileSource, check_unpacked, decoded, name_of, open_source
from genm.read.trec import judge_number
from genm.records import Qrels, Run

_EXAMPLE = "2 qid:7 1:0.3 2:0.7 # d12"
_MOST_FEATURES = 10_000
_DOCID = re.compile(r"docid\s*=\s*(\S+)")


class Letor(NamedTuple):
    """The contents of a LETOR file."""

    runs: tuple[Run, ...]
    qrels: Qrels


class _Line(NamedTuple):
    number: int
    query: str
    doc: str
    label: float
    features: dict[int, float]


def read_letor(
    source: FileSource,
    *,
    names: Sequence[str] | None = None,
    lenient: bool = False,
    duplicates: Duplicates = "error",
    progress: Progress = silent,
) -> Letor:
    """Read features as rankers: feature 1, 2, ... become runs called `names`, or feature-1, feature-2, ...

    The comment names the document (`# d12`, or LETOR's `# docid = d12 ...`); without one, its id is made of the
    query and its position, and a note says so. A missing feature is 0, as in SVMrank, which is noted too.
    """
    report = Diagnostics(name_of(source), lenient=lenient)
    content = decoded(open_source(source, report, progress), report)
    lines = _parsed(content, report, progress)
    if not lines:
        report.fault(
            "empty", line=None, expected=f"lines such as {_EXAMPLE}", found="none",
            advice="See how the file was made.", repair="read as empty",
        )  # fmt: skip
    n_features = max((max(line.features, default=0) for line in lines), default=0)
    check_unpacked(8 * len(lines) * n_features, len(content), "LETOR text", report)
    matrix = np.zeros((len(lines), n_features))
    for row, line in enumerate(lines):
        for feature, value in line.features.items():
            matrix[row, feature - 1] = value
    n_absent = len(lines) * n_features - sum(len(line.features) for line in lines)
    if n_absent:
        report.say("absent-features", n_absent, "a line leaves features out: they are 0")
    called = list(names) if names is not None else [f"feature-{i + 1}" for i in range(n_features)]
    if len(called) != n_features:
        raise InputError(f"names: expected {n_features} of them, one per feature; found {len(called)}.")
    queries, query = encode(line.query for line in lines)
    docs, doc = encode(line.doc for line in lines)
    starts, query = segments(query)

    def rows(value: NDArray[np.float64]) -> Rows:
        return Rows(queries, docs, starts, query, doc, value, lambda row: lines[row].number)

    def run(column: int) -> Run:
        own = Diagnostics(report.source, lenient=lenient)
        return as_run(rows(np.ascontiguousarray(matrix[:, column])), called[column], duplicates, own)

    runs = tuple(run(column) for column in range(n_features))
    return Letor(runs, as_qrels(rows(np.array([line.label for line in lines], np.float64)), report))


def _parsed(content: str, report: Diagnostics, progress: Progress) -> list[_Line]:
    """Parse line by line; a line that cannot be parsed is a fault."""
    lines: list[_Line] = []
    n_seen: dict[str, int] = {}
    texts = content.split("\n")
    for number, text in enumerate(texts, 1):
        if number % 65_536 == 0 or number == len(texts):
            progress(f"reading {report.source}", number, len(texts))
        body, _, comment = text.partition("#")
        words = body.split()
        if not words:
            continue
        fault = partial(
            report.fault, line=number, advice=f"A line looks like this: {_EXAMPLE}", repair="the line was left out"
        )
        if len(words) < 2 or not words[1].startswith("qid:") or words[1] == "qid:":
            fault("columns", expected="label, then qid:<query>, then features", found=shown(text))
            continue
        query = words[1][4:]
        n_seen[query] = n_seen.get(query, 0) + 1
        label, matter = judge_number(words[0].encode())
        if matter:
            fault(matter, expected="a number as label", found=shown(words[0]))
            continue
        features = _features(words[2:], fault)
        if features is None:
            continue
        named = _DOCID.search(comment)
        doc = named.group(1) if named else (comment.split() or [""])[0]
        if not doc:
            doc = f"{query}-{n_seen[query]}"
            report.say("made-doc-ids", 1, f"no document after #: called {shown(doc)}", line=number)
        lines.append(_Line(number, query, doc, label, features))
    return lines


def _features(words: list[str], fault: "partial[None]") -> dict[int, float] | None:
    """Return the features of a line, or None after a fault."""
    features: dict[int, float] = {}
    for word in words:
        index, _, text = word.partition(":")
        known = index.isascii() and index.isdigit() and len(index) < 9 and 0 < int(index) <= _MOST_FEATURES
        if not known or int(index) in features:
            expected = f"each feature once, as number:value, with numbers from 1 to {_MOST_FEATURES:,}"
            fault("feature", expected=expected, found=shown(word))
            return None
        value, matter = judge_number(text.encode())
        if matter:
            fault(matter, expected="a finite number as feature", found=shown(word))
            return None
        features[int(index)] = value
    return features
