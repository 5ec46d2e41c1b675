"""Queries and their vectors: files of texts with ids, a query log, arrays, columns, or a function that encodes."""

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from genm.errors import FormatError, GenmError, InputError, WrongTypeError
from genm.progress import Progress, silent
from genm.read import read_qrels
from genm.read.diagnostics import Diagnostics, shown
from genm.read.json_tables import is_number, parse_object
from genm.read.sources import decoded, open_source
from genm.read.tables import SEPARATORS, delimited_lines, first_known, read_parquet
from genm.read.texts import ID_NAMES, TEXT_NAMES, read_texts
from genm.records import Note
from genm.strict_json import unique_keys

LOG_NAMES = (*TEXT_NAMES, "q", "search", "search_term", "user_query")
VECTOR_NAMES = ("vector", "embedding", "emb")
Vectors = dict[str, Any]
"""A tuple of numbers for each query, or a sparse vector: {"indices": [...], "values": [...]}."""
Encoder = Callable[[list[str]], Any]
"""Returns one vector for each text."""


@dataclass(frozen=True)
class Queries:
    """Texts by query id, and vectors if the file has them."""

    texts: Mapping[str, str]
    vectors: Vectors = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    file_order: tuple[str, ...] = ()
    """All ids of the file in their order, also of queries that were left out: rows of an array follow it."""


def read_queries(
    source: str | os.PathLike[str] | Mapping[str, str],
    *,
    form: str | None = None,
    top: int | None = None,
    qrels: str | os.PathLike[str] | None = None,
    progress: Progress = silent,
) -> Queries:
    """Return the queries of a file, a folder in BEIR form, or a dictionary.

    Args:
        source: JSON lines, a table, lines of `id TAB text`, TREC topics, or a folder with queries.jsonl.
        form: "log" for a query log, which has texts and no ids: JSON lines, a table with a header, or plain lines.
            Equal queries become one, whose id is made of its text.
        top: Of a log, the most frequent queries only.
        qrels: Judgments; queries that they do not judge are left out.
        progress: Called as the file is read.
    """
    if form not in (None, "log"):
        raise InputError(
            f'queries.format: expected "log" or nothing, since other forms are found; found {form!r:.40}.'
        )
    if top is not None and (form != "log" or top < 1):
        raise InputError('queries.top: expected a positive integer, with format = "log".')
    if isinstance(source, Mapping):
        found = Queries({str(key): _text(key, text) for key, text in source.items()})
    else:
        found = _from_file(Path(source).expanduser(), form, top, progress)
    found = replace(found, file_order=tuple(found.texts))
    if not found.texts:
        raise InputError(f"queries: expected at least one query; found none in {source!r:.80}.")
    return found if qrels is None else _judged(found, qrels, progress)


def _text(key: object, text: object) -> str:
    if not isinstance(text, str):
        raise WrongTypeError(f"queries[{key!r}]: expected text; found {type(text).__name__}.")
    return text


def _from_file(path: Path, form: str | None, top: int | None, progress: Progress) -> Queries:
    if path.is_dir():
        names = ("queries.jsonl", "queries.jsonl.gz", "queries.jsonl.zst")
        inside = next((path / name for name in names if (path / name).exists()), None)
        if inside is None:
            raise InputError(
                f"{path}: expected a file of queries, or a folder in BEIR form; found no queries.jsonl."
            )
        path = inside
    report = Diagnostics(str(path), lenient=False)
    source = open_source(path, report, progress)
    if form == "log":
        texts = _log_queries(decoded(source, report), report, top)
        return Queries(texts, notes=tuple(report.notes))
    texts = read_texts(source, report, progress)
    return Queries(texts, _vector_column(decoded(source, report), str(path)), tuple(report.notes))


def _judged(queries: Queries, qrels: str | os.PathLike[str], progress: Progress) -> Queries:
    judged = set(read_qrels(qrels, progress=progress).queries)
    texts = {key: text for key, text in queries.texts.items() if key in judged}
    if not texts:
        raise InputError(f"{qrels}: expected judgments about the queries; found none that has one of their ids.")
    n = len(queries.texts) - len(texts)
    note = Note("unjudged-queries", n, f"{qrels}: {n:,} queries without a judgment were left out")
    return replace(queries, texts=texts, notes=(*queries.notes, *([note] if n else [])))


def _log_queries(content: str, report: Diagnostics, top: int | None) -> dict[str, str]:
    """Return the distinct queries of a log by ids that are made of their texts, so that a longer log keeps them."""
    counts = Counter(" ".join(text.split()) for text in _log_lines(content, report))
    counts.pop("", None)
    chosen = counts.most_common(top) if top else list(counts.items())
    report.say("log", sum(counts.values()), f"{len(counts):,} distinct queries, {len(chosen):,} of them taken")
    return {f"q{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}": text for text, _ in chosen}


def _log_lines(content: str, report: Diagnostics) -> Iterable[str]:
    lines = [line.rstrip("\r") for line in content.split("\n") if line.strip()]
    if not lines:
        return []
    if lines[0].lstrip().startswith("{"):
        return [_log_object(line, number, report) for number, line in enumerate(lines, 1)]
    for separator in SEPARATORS.values():
        header = [name.strip().strip('"') for name in lines[0].split(separator)]
        name = first_known(header, LOG_NAMES)
        if name is not None and len(header) > 1:
            rows = delimited_lines(content, separator, report)
            place = next(rows)[1].index(name)
            return [cells[place] for _, cells in rows if len(cells) > place]
    return lines


def _log_object(line: str, number: int, report: Diagnostics) -> str:
    entry, fault = parse_object(line)
    name = first_known(list(entry), LOG_NAMES)
    text = None if name is None or is_number(entry[name]) else entry[name]
    if fault or not isinstance(text, str) or not _is_unicode(text):
        raise report.fail(
            number, expected=f"a JSON object with one of {', '.join(LOG_NAMES)}",
            found=f"{shown(line)}{f' ({fault})' if fault else ''}",
            advice="Give every line the query's text under one of these names.",
        )  # fmt: skip
    return text


def _is_unicode(text: str) -> bool:
    """Whether a text has no half of a character, which JSON can name and UTF-8 cannot hold."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _vector_column(content: str, name: str) -> Vectors:
    """Return the vectors that JSON lines of queries carry; other forms have none."""
    if not content.lstrip().startswith("{"):
        return {}
    found: Vectors = {}
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip():
            entry = _line_object(line, name, number)
            key, column = first_known(list(entry), ID_NAMES), first_known(list(entry), VECTOR_NAMES)
            if key is not None and column is not None:
                found[str(entry[key])] = _checked(entry[column], f"{name}:{number}")
    return found


def _line_object(line: str, name: str, number: int) -> dict[str, Any]:
    try:
        entry, fault = json.loads(line, object_pairs_hook=unique_keys), ""
    except (ValueError, RecursionError) as error:
        entry, fault = None, f" ({error!s:.80})"
    if not isinstance(entry, dict):
        raise FormatError(name, number, "one JSON object a line", f"{shown(line)}{fault}", "See docs/pull.md.")
    return entry


def read_vectors(
    source: str | os.PathLike[str] | Mapping[str, Any] | Encoder,
    queries: Mapping[str, str],
    file_order: Sequence[str] = (),
) -> Vectors:
    """Return a vector for each query.

    Args:
        source: A file (.npy with a row for each query in their order; .npz with `ids` and `vectors`; JSON lines
            with an id and a vector; Parquet with the columns id and vector), a dictionary by query id, or a
            function that returns one vector for each text of a list, given as `package.module:function` or itself.
        queries: Texts by query id.
        file_order: The ids that the rows of an .npy belong to, if they are not those of `queries`.
    """
    if isinstance(source, Mapping):
        found = {str(key): _checked(vector, f"vectors[{key!r}]") for key, vector in source.items()}
        place = "vectors"
    elif callable(source):
        found, place = _encoded(source, queries, getattr(source, "__name__", "vectors")), "vectors"
    else:
        place = str(source)
        is_function = ":" in place and not Path(place).exists() and not Path(place).suffix
        found = (
            _encoded(_function(place), queries, place)
            if is_function
            else _vector_file(Path(place), file_order or list(queries))
        )
    if missing := [key for key in queries if key not in found]:
        raise InputError(
            f"{place}: expected a vector for every query; found none for {missing[0]!r} and "
            f"{len(missing) - 1:,} others."
        )
    sizes = {-1 if isinstance(found[key], Mapping) else len(found[key]) for key in queries}
    if len(sizes) > 1:
        raise InputError(f"{place}: expected vectors of one length; found {', '.join(map(str, sorted(sizes)))}.")
    return {key: found[key] for key in queries}


def _encoded(function: Encoder, queries: Mapping[str, str], place: str) -> Vectors:
    rows = list(function(list(queries.values())))
    if len(rows) != len(queries):
        raise InputError(f"{place}: expected {len(queries):,} vectors, one for each text; found {len(rows):,}.")
    return {key: _checked(row, f"{place}, query {key!r}") for key, row in zip(queries, rows, strict=True)}


def _function(name: str) -> Encoder:
    """Return the function `package.module:function`; modules of the working folder are found too."""
    module, _, attribute = name.partition(":")
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        found = getattr(import_module(module), attribute, None)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"vectors: expected the function {name}; found: {error}. Is the module installed?"
        ) from None
    finally:
        sys.path.remove(here)
    if not callable(found):
        raise InputError(f"vectors: expected a function {attribute!r} in the module {module}; found none.")
    function: Encoder = found
    return function


def _vector_file(path: Path, ids: Sequence[str]) -> Vectors:
    path = path.expanduser()
    if not path.is_file():
        raise InputError(f"{path}: expected a file of vectors, or a function as module:function; found neither.")
    suffix = path.suffix.lower()
    try:
        if suffix == ".npy":
            with path.open("rb") as file:
                rows = np.load(file, allow_pickle=False)
            if rows.ndim != 2 or len(rows) != len(ids):
                raise InputError(
                    f"{path}: expected a row for each of the {len(ids):,} queries, in their order; found an array "
                    f"of shape {rows.shape}. An .npz with ids and vectors, or JSON lines, need no order."
                )
            return {key: _checked(row, str(path)) for key, row in zip(ids, rows, strict=True)}
        if suffix == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                pairs = zip(arrays["ids"].tolist(), arrays["vectors"], strict=True)
                return {str(key): _checked(row, str(path)) for key, row in pairs}
        if suffix in (".parquet", ".pq"):
            return _parquet_vectors(path)
    except (GenmError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - damaged files raise many kinds: EOFError, BadZipFile, TokenError
        fault = " ".join(str(error).split())[:200] or type(error).__name__
        raise FormatError(str(path), None, "arrays that numpy wrote", fault, "See docs/pull.md.") from None
    report = Diagnostics(str(path), lenient=False)
    content = decoded(open_source(path, report, silent), report)
    found = _vector_column(content, str(path))
    if not found:
        raise FormatError(
            str(path), None, 'lines such as {"_id": "q1", "vector": [0.1, 0.2]}', "none", "See docs/pull.md."
        )
    return found


def _parquet_vectors(path: Path) -> Vectors:
    report = Diagnostics(str(path), lenient=False)
    frame = read_parquet(open_source(path, report, silent), report)
    key, column = first_known(frame.columns, ID_NAMES), first_known(frame.columns, VECTOR_NAMES)
    if key is None or column is None:
        raise InputError(f"{path}: expected columns for id and vector; found {', '.join(frame.columns)}.")
    pairs = zip(frame[key].to_list(), frame[column].to_list(), strict=True)
    return {str(name): _checked(row, f"{path}, query {name}") for name, row in pairs}


def _checked(vector: Any, place: str) -> Any:
    if isinstance(vector, Mapping):
        return _checked_sparse(vector, place)
    try:
        row = np.asarray(vector, np.float64)
    except (TypeError, ValueError, OverflowError):
        row = np.zeros(0)
    if row.ndim != 1 or not row.size or not np.isfinite(row).all():
        raise InputError(f"{place}: expected a list of finite numbers as vector; found {shown(vector)}.")
    return tuple(row.tolist())


def _checked_sparse(vector: Mapping[str, Any], place: str) -> dict[str, list[Any]]:
    indices, values = vector.get("indices"), vector.get("values")
    good = isinstance(indices, list) and isinstance(values, list) and len(indices) == len(values)
    if not good or not all(isinstance(i, int) and i >= 0 for i in indices or ()):
        raise InputError(
            f'{place}: expected a sparse vector {{"indices": [...], "values": [...]}}; found {shown(vector)}.'
        )
    return {"indices": list(indices or ()), "values": list(_checked(values, place))}
