"""Fuzzing: changed files and arguments must be read as an independent parser reads them, or refused in one line.

    python tools/fuzz.py --seconds 600 --jobs 2
    python tools/fuzz.py --executions 2000000

Each execution changes a valid input at random and gives it to one target: a reader, the model or evidence file, a
cache entry, a log of clicks, a store of judgments, a body of the service, the configuration or the journal of a
pull, the command line. Failures are: an exception that is not a GenmError, a hang of more than five seconds,
more than 2 GB of memory, another answer than that of the oracle (tools/fuzz_oracle.py). A failing input is written
to .fuzz/TARGET-*.bin; put it into tests/fuzz_corpus, which tests/test_fuzz.py runs through with every test.
"""

import argparse
import contextlib
import gzip
import io
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import fuzz_oracle as oracle
import msgspec
import numpy as np
import zstandard
from typer.testing import CliRunner

import genm
from genm.cache import cached
from genm.cli.app import app
from genm.connect.config import digests, example_config, read_config
from genm.connect.engine import Answer
from genm.connect.journal import Journal
from genm.connect.registry import ENGINES
from genm.connect.templates import Values, fill_json, names_in, read_json_template, read_sql_template
from genm.errors import GenmError, GenmWarning
from genm.evidence import load_evidence
from genm.grouping import parse_grouping
from genm.judge import JudgmentStore, judgments_as, qrels_of, read_clicks
from genm.judge.agreement import agreement_of
from genm.model import model_from_json, model_to_json
from genm.read import read_beir, read_groups, read_letor, read_queries, read_query_weights, sources, trec
from genm.read.diagnostics import Diagnostics
from genm.read.sources import open_source
from genm.read.texts import read_texts
from genm.serve.bodies import Body
from genm.serve.engine import Engine
from genm.serve.messages import (
    FeedbackRequest,
    FuseAnswer,
    FuseRequest,
    InterleaveRequest,
    RequestError,
    WeightsRequest,
    read_weights,
)
from genm.serve.security import Caller
from genm.serve.service import Service
from genm.serve.store import SqliteStore

HANG_SECONDS = 5
"""Of CPU time, or a dozen times as many on the clock: a busy machine may let a process wait."""
PROGRESS_SECONDS = 60
MEMORY = 2 << 30
FOLDER = Path(".fuzz")

TOKENS = [
    *(b"\n", b"\r\n", b"\r", b"\t", b" ", b"\x0b", b"\0", b"\x1b", b"\x7f", b"#", b" #", b",", b'"', b'""', b"'"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3\xa9", b"\xc3", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\xc2\x85"),
    *(
        b"0",
        b"-0",
        b"+1",
        b"1e400",
        b"1e-400",
        b"nan",
        b"-inf",
        b"0x1F",
        b"3,5",
        b".5",
        b"5.",
        b".",
        b"1e",
        b"1_000",
    ),
    *(
        b"-2147483648",
        b"2147483648",
        b"9007199254740993",
        b"9" * 40,
        b"1" * 5000,
        b"0.1e1",
        b"1.79769313486231e308",
    ),
    *(b"{", b"}", b"[", b"]", b":", b"{}", b"[]", b"null", b"true", b"NaN", b'"\\ud800"', b"\\u0000", b"[" * 50),
    *(b"query_id", b"doc_id", b"score", b"Doc ID", b"rating", b"qid:1", b"1:2", b"\\", b"/", b"\xe2\x80\xa8"),
    *(b"<DOC>", b"</DOC>", b"<DOCNO>", b"<top>", b".I 1\n", b"judgmentRatings", b"ratings", b"docId", b"hits"),
    *(b"_source", b"PK\x03\x04", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PAR1"),
]
NOT_TEXT = (
    *(b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x04\x22\x4d\x18"),
    *(b"\xff\xfe", b"\xfe\xff"),
)
"""How packed data and UTF-16 begin, of which the oracle knows nothing."""

RUN = b"q1 Q0 d1 1 3.5 bm25\nq1 Q0 d2 2 -2e-1 bm25\n# note\n\nq2\tQ0\td1 1 1 bm25\r\nq2 Q0 d\xc3\xa9 2 0.25 a tag\n"
QRELS = b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 -1\nq2 0 d3 2.0\n"
CSV = b'query_id,doc_id,score,other\nq1,d1,3.5,x\nq1,"d,2",2,\nq2,"d ""3""",1e3,y\n'
PLAIN_CSV = b"qid,docno,score\nq1,d1,3.5\nq1,d2,2\nq2,d1,1e3\n"
TSV = b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td1\t2\n"
JSON = b'{"q1": {"d1": 3.5, "d2": 2}, "q2": {"d1": -1e-3}}'
RATINGS = (
    b'{"name": "x", "judgmentRatings": [{"query": "red dress", "ratings": [{"docId": "a", "rating": "3.000"}, '
    b'{"docId": "b", "rating": 0}]}]}'
)
LETOR = b"2 qid:10 1:0.3 2:0.7 # d1\n0 qid:10 1:0.9 2:-1 #docid = d2 inc = 1\n1 qid:11 2:5e-1 1:0 # d1\n"
WEIGHTS = b"q1 1\nq2 0.5\nq3 0\n"
GROUPS = b"q1 id\nq2 long question\n"
QUERIES = b'id,text,lang\nq1,"red, shoes",en\nq2,two,de\n'
RULES = b"id: ^[A-Z0-9-]+$, short: words<=2, german: lang=de, x: a{1,3}(?:b|c)?"
CORPUS = b'{"_id": "d1", "title": "T", "text": "one"}\n{"_id": "d2", "text": "two \\u00e9"}\n'
DOCS = b"<DOC>\n<DOCNO> d1 </DOCNO>\n<TEXT>one &amp; two</TEXT>\n</DOC>\n<DOC><DOCNO>d2</DOCNO>x</DOC>\n"
TOPICS = b"<top>\n<num> Number: 301\n<title> a title\n<desc> Description: more\n</top>\n"
CLICKS_JSON = (
    b'{"query": "fast cars", "docs": ["d1", "d2", 7], "clicks": ["d2"]}\n'
    b'{"query": "fast cars", "docs": ["d1", "d2", 7], "clicks": [2, 3]}\n'
    b'{"user_query": "caf\xc3\xa9", "documents": ["d1"]}\n'
)
CLICKS_CSV = b'query,doc_id,position,clicked,session\nfast cars,d1,1,1,a\n"fast, cars",d2,2,,a\nx,d1,1,true,b\n'
CLICKS_PLAIN = b"query,doc_id,position,clicked\nq,d1,1,0\nq,d2,2,1\nq,d1,1,1\n"
CLICKS_UBI = (
    b'{"query_id": "s1", "user_query": "cars", "query_response_hit_ids": ["d1", "d2"]}\n'
    b'{"_source": {"query_id": "s2", "user_query": "cars", "query_response_hit_ids": ["d2"]}}\n'
    b'{"action_name": "click", "query_id": "s1", "event_attributes": {"object": {"object_id": "d2"}}}\n'
    b'{"action_name": "scroll", "query_id": "s2"}\n'
)
PULL = b"""engine = "sqlite"
address = "docs.db"
queries = {file = "q.tsv", top = 5}
timeout = 2.5
[auth]
password = "env:SECRET"
[rankers.words]
search = "SELECT id, 1 FROM docs WHERE docs MATCH $words LIMIT $depth"
depth = 20
[rankers."more.like-this"]
search = '''{"match": {"text": "$query"}, "size": "$depth", "at": [1.5, null, "$vector"]}'''
[options]
a.b = [1, 2.5, true, "x"]
"""
FUSE_BODY = (
    b'{"runs": {"bm25": [["d1", 3.5], ["d2", 1e-3]], "dense": {"doc_ids": ["d2", "d3"], "scores": [0.9, -1]}}, '
    b'"top": 2, "explain": true, "query_id": "q1", "weights": {"bm25": 0.3, "dense": 0.7}}'
)
COLUMNS_BODY = (
    b'{"runs": {"bm25": {"doc_ids": ["d1", "d:2", "d3"], "scores": [2.5, 1, 1]}, '
    b'"dense": {"doc_ids": ["d2", "d:2"], "scores": [0.8, 0.7]}}, "top": 3, "explain": true}'
)
FEEDBACK_BODY = (
    b'{"events": [{"key": "k1", "query_id": "q1", "runs": {"bm25": [["d1", 3.5], ["d2", 1]], '
    b'"dense": [["d2", 0.9]]}, "judgments": {"d1": 1, "d2": 0}}, {"key": "k2", "query_id": "q2", "runs": '
    b'{"bm25": [["d1", 2]], "dense": [["d3", 1]]}, "impression": {"shown": ["d1", "d3"], "clicks": ["d3"]}}]}'
)
WEIGHTS_BODY = b'{"weights": {"bm25": 0.25, "dense": 0.75}, "key": "w"}'
INTERLEAVE_BODY = b'{"runs": {"bm25": [["d1", 2]], "dense": [["d3", 1]]}, "versions": [1, 1], "top": 5}'


@dataclass(frozen=True)
class Target:
    """What is tried: the valid inputs to begin with, and a check that raises if an input is not handled rightly."""

    seeds: tuple[bytes, ...]
    check: Callable[[bytes], bool]
    """Returns whether the input was accepted."""
    share: int = 10
    """How often, in relation to the others."""


class DisagreementError(AssertionError):
    """The reader and the oracle give different answers."""


def as_table(records: Any) -> oracle.Table:
    """Return a run or judgments as a dictionary."""
    return {query: dict(rows) for query, rows in records.items()}


def compared(
    read: Callable[[io.BytesIO], Any], expect: Callable[[bytes], oracle.Table | None], content: bytes
) -> bool:
    """Read strictly and compare with the oracle; then leniently, which must not fail in another way."""
    try:
        found = as_table(read(io.BytesIO(content)))
    except GenmError as error:
        found = None
        check_error(error)
    if not content.startswith(NOT_TEXT):
        expected = expect(content)
        if found != expected:
            raise DisagreementError(f"read {short(found)}; the oracle {short(expected)}")
    return found is not None


def short(value: object) -> str:
    """Return a value for a message."""
    return "refuses" if value is None else f"{value!r:.300}"


def check_error(error: GenmError) -> None:
    """Refuse an error that no person could read."""
    text = str(error)
    if not text or len(text) > 2000 or "\n" in text:
        raise DisagreementError(f"an error of {len(text)} characters: {text!r:.200}")


def tolerated(read: Callable[[bytes], Any], content: bytes) -> bool:
    """Read without an oracle: only errors of genm may come."""
    try:
        read(content)
    except GenmError as error:
        check_error(error)
        return False
    return True


def in_pieces(read: Callable[..., Any], source: io.BytesIO, **options: Any) -> Any:
    """Read a file as large ones are read, piece by piece; here pieces are of up to a hundred bytes."""
    content = source.getvalue()
    with (
        tempfile.TemporaryDirectory() as name,
        mock.patch.object(sources, "LARGE", 1),
        mock.patch.object(trec, "CHUNK", 1 + len(content) % 100),
    ):
        path = Path(name) / "file"
        path.write_bytes(content)
        return read(path, **options)


def read_leniently(content: bytes) -> None:
    """Read as everything, and repair."""
    for read in (genm.read_run, genm.read_qrels):
        with contextlib.suppress(GenmError):
            read(io.BytesIO(content), lenient=True)
    genm.read_qrels(io.BytesIO(content), lenient=True, grades="times=10")


def read_packed(pack: Callable[[bytes], bytes], content: bytes) -> bool:
    """Read packed data whose packing is damaged as well."""
    packed = bytearray(pack(content))
    draw = random.Random(len(content))  # noqa: S311 (no secret)
    if draw.random() < 0.5 and packed:
        packed[draw.randrange(len(packed))] ^= 1 << draw.randrange(8)
    return tolerated(lambda data: genm.read_run(io.BytesIO(data), lenient=draw.random() < 0.5), bytes(packed))


def read_round_trip(content: bytes) -> bool:
    """Check that what is read and written is read again as it was."""
    try:
        run = genm.read_run(io.BytesIO(content), lenient=True)
        out = io.BytesIO()
        genm.write_run(run, out, tag="t")
    except GenmError as error:
        check_error(error)
        return False
    again = genm.read_run(io.BytesIO(out.getvalue())) if len(run) else run
    if as_table(again) != as_table(run):
        raise DisagreementError(f"written {out.getvalue()!r:.200}; read {short(as_table(again))}")
    return True


def read_texts_of(content: bytes, *, lenient: bool) -> None:
    """Read texts in whatever form they seem to have."""
    report = Diagnostics("fuzz", lenient=lenient)
    read_texts(open_source(io.BytesIO(content), report, genm.progress.silent), report, genm.progress.silent)


def find_group(content: bytes) -> None:
    """Parse rules and apply them to a text that is hard to match."""
    parse_grouping(content.decode("utf-8", "replace")).group_of({"text": "ab" * 200, "lang": "de"})


def read_folder(content: bytes) -> None:
    """Read a BEIR folder with a changed corpus."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "qrels").mkdir()
        (folder / "corpus.jsonl").write_bytes(content)
        (folder / "queries.jsonl").write_bytes(CORPUS)
        (folder / "qrels" / "test.tsv").write_bytes(b"query-id\tcorpus-id\tscore\nd1\td1\t1\n")
        read_beir(folder, lenient=_even(content))


def load_changed_model(content: bytes) -> bool:
    """Check that a model that loads is written again as it was, and fuses."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "model.json"
        path.write_bytes(content)
        try:
            model = genm.load_model(path)
        except GenmError as error:
            check_error(error)
            return False
    if model_from_json(json.loads(json.dumps(model_to_json(model)))) != model:
        raise DisagreementError("a model is not what it was after writing and reading")
    runs = {
        ranker: genm.read_run({"q": {"d1": 2.0 + i, "d2": 1.0}}, name=ranker)
        for i, ranker in enumerate(model.rankers)
    }
    with contextlib.suppress(GenmError):
        model.fuse(runs)
    if model.online is not None:
        with contextlib.suppress(GenmError):
            aligned = model.align(runs, genm.read_qrels({"q": {"d1": 1}}))
            genm.learn.update_model(model, aligned)
    return True


def load_changed_evidence(content: bytes) -> bool:
    """Evidence loads or is refused."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "model.evidence.json"
        path.write_bytes(content)
        return tolerated(lambda _: load_evidence(path), content)


def use_changed_entry(content: bytes) -> bool:
    """Whatever stands in the cache, the result is that of building."""
    built = []

    def build() -> dict[str, Any]:
        built.append(1)
        return {"a": np.arange(5.0), "b": np.eye(2)}

    with tempfile.TemporaryDirectory() as name, environment("GENM_CACHE", name), warnings.catch_warnings():
        warnings.simplefilter("ignore", GenmWarning)
        cached("fuzz", ["key"], build)
        (path,) = Path(name).rglob("*.zip")
        path.write_bytes(content)
        found = cached("fuzz", ["key"], build)
    if found["a"].tolist() != [0, 1, 2, 3, 4] or found["b"].tolist() != [[1, 0], [0, 1]]:
        raise DisagreementError(f"the cache gave {found}")
    return len(built) == 1


def call_command(content: bytes) -> bool:
    """Run the command line; the words are separated by NUL."""
    words = [word.decode("utf-8", "surrogateescape") for word in content.split(b"\0")]
    restore_sample()
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, words, catch_exceptions=False, prog_name="genm")
    if result.exit_code not in (0, 2):
        raise DisagreementError(f"exit code {result.exit_code} of {words!r:.300}")
    if result.exit_code == 2 and not re.search(r"^genm: [a-z-]+: ", result.stderr, re.MULTILINE):
        raise DisagreementError(f"no error line of {words!r:.300}: {result.stderr!r:.300}")
    return result.exit_code == 0


def read_changed_log(content: bytes) -> bool:
    """Count the lists of a log of clicks as the oracle does."""
    with tempfile.NamedTemporaryFile(prefix="genm-fuzz-") as file:
        file.write(content)
        file.flush()
        try:
            found = {query: lists for query, lists in read_clicks([file.name]).lists.items() if lists}
        except GenmError as error:
            check_error(error)
            found = None
    if not content.startswith(NOT_TEXT):
        expected = oracle.click_log(content)
        if found != expected:
            raise DisagreementError(f"read {short(found)}; the oracle {short(expected)}")
    return found is not None


def use_changed_store(content: bytes) -> bool:
    """Open a store of judgments, and export all that it holds."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "judgments.sqlite"
        path.write_bytes(content)
        try:
            with JudgmentStore(path) as store:
                agreement_of(store.opinions())
                exported = [judgments_as(store, form) for form in ("jsonl", "csv", "trec")]
                qrels = qrels_of(store.judgments())
                store.add("a", "q", "d9", 1, key="new")
        except GenmError as error:
            check_error(error)
            return False
    for text, form in zip(exported[1:], ("csv", "trec"), strict=True):
        if len(qrels) and as_table(genm.read_qrels(io.BytesIO(text), format=form)) != as_table(qrels):
            raise DisagreementError(f"exported {text!r:.300} as {form}")
    return True


def read_changed_config(content: bytes) -> bool:
    """Read the configuration of a pull, and fill its templates."""
    values = Values("q1", 'say "hi"', [0.5, 1.0], 10)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "pull.toml"
        path.write_bytes(content)
        try:
            config = read_config(path)
        except GenmError as error:
            check_error(error)
            return False
    digests(config.parts())
    config.access_options()
    for ranker in config.rankers.values():
        names_in(ranker.search)
        with contextlib.suppress(GenmError):
            read_sql_template(ranker.search, "rankers", "%({})s")
        with contextlib.suppress(GenmError):
            json.dumps(fill_json(read_json_template(ranker.search, "rankers"), values, "rankers"))
    return True


ANSWERS = {
    ("bm25", "q1"): Answer((("d1", 3.5), ("d\u00e9", -0.25)), {"d1": "one"}),
    ("bm25", "q2"): Answer((), {}, "one shard failed", 2),
    ("dense", "q1"): Answer((("d1", 1e300),), {"d1": "one"}),
}
DIGESTS = {"engine": "ab12", "queries": "cd34"}


def resume_changed_journal(content: bytes) -> bool:
    """Whatever stands in the journal of a pull, an answer is one that was written, or it is asked for again."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "pull.journal").write_bytes(content)
        try:
            with Journal(Path(name), DIGESTS, "state", resume=True) as journal:
                found = dict(journal.answers)
                journal.add(("new", "q"), Answer(()))
        except GenmError as error:
            check_error(error)
            return False
    for key, answer in found.items():
        if key not in ANSWERS or replace(answer, texts={}) != replace(ANSWERS[key], texts={}):
            raise DisagreementError(f"{key}: resumed {answer!r:.200}")
    return True


CALLER = Caller("fuzz", frozenset({"feedback"}), trusted=False)


@cache
def service() -> Service:
    """Return a service of its own; only bodies that change nothing are given to it."""
    engine = Engine(SqliteStore(Path(tempfile.mkdtemp(prefix="genm-fuzz-")) / "store.sqlite"))
    engine.start(genm.load_model(sample_folder() / "model.json"), None)
    return Service(engine)


def fused_scores(answer: FuseAnswer) -> list[float]:
    """Return the scores of an answer, in rows or in columns."""
    return [score for _, score in answer.results] if answer.results is not None else list(answer.scores or ())


def serve_changed_body(content: bytes) -> bool:
    """Decode a body as each kind of request, and do what it asks for; feedback is prepared and not learned from."""
    accepted = False
    operations: tuple[tuple[type, Callable[[Any], object]], ...] = (
        (FuseRequest, lambda request: service().fuse(request)),
        (FeedbackRequest, lambda request: service().prepare_feedback(CALLER, request)),
        (InterleaveRequest, lambda request: service().interleave(request)),
        (WeightsRequest, lambda request: read_weights("body", request.weights, service().model, distribution=True)),
    )
    for kind, do in operations:
        try:
            answer = do(Body(kind).read(content))
        except RequestError as error:
            check_error(GenmError(str(error)))
            msgspec.json.encode(error.answer())
        else:
            accepted = True
            if isinstance(answer, FuseAnswer) and not np.isfinite(fused_scores(answer)).all():
                raise DisagreementError(f"scores that are no numbers: {answer!r:.300}")
            compare_ways(content, answer)
    return accepted


def compare_ways(content: bytes, answer: object) -> None:
    """Hold an accepted body to a parser that shows every key, and columns read as bytes to the general way."""
    repeated: list[bool] = []
    json.loads(content, object_pairs_hook=lambda pairs: repeated.append(len(dict(pairs)) < len(pairs)))
    if any(repeated):
        raise DisagreementError(f"a key twice was accepted: {content[:300]!r}")
    if isinstance(answer, FuseAnswer):
        quick = msgspec.json.encode(service().fuse_body(Body(FuseRequest), content))
        if msgspec.json.decode(quick) != msgspec.json.decode(msgspec.json.encode(answer)):
            raise DisagreementError(f"columns fused otherwise: {quick[:300]!r} instead of {answer!r:.300}")


@contextlib.contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """Set a variable for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@cache
def sample_folder() -> Path:
    """Return a folder with the files that commands are called on."""
    folder = Path(tempfile.mkdtemp(prefix="genm-fuzz-"))
    genm.collections.write_sample(folder)
    runs = {name: genm.read_run(folder / f"{name}.trec", name=name) for name in ("bm25", "dense")}
    genm.train(runs, genm.read_qrels(folder / "qrels.txt"), method="online").save(folder / "model.json")
    (folder / "clicks.csv").write_bytes(CLICKS_PLAIN)
    (folder / "judgments.sqlite").write_bytes(seeds_of_store()[0])
    (folder / "queries.tsv").write_text("".join(f"{query}\ttext of {query}\n" for query in runs["bm25"]))
    return folder


@cache
def sample_files() -> dict[Path, bytes]:
    """Return what the files of the sample hold."""
    return {path: path.read_bytes() for path in sample_folder().iterdir() if path.is_file()}


def restore_sample() -> None:
    """Write the files of the sample anew where an earlier command wrote over them."""
    for path, content in sample_files().items():
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)


def enter_sample_folder() -> None:
    """Work in that folder, with a cache of its own: commands write into it."""
    os.chdir(sample_folder())
    os.environ["GENM_CACHE"] = str(sample_folder() / "cache")


def seeds_of_files(*names: str) -> tuple[bytes, ...]:
    """Return files of the sample."""
    return tuple((sample_folder() / name).read_bytes() for name in names)


def seeds_of_cache() -> tuple[bytes, ...]:
    """Return a cache entry."""
    with tempfile.TemporaryDirectory() as name, environment("GENM_CACHE", name):
        cached("fuzz", ["key"], lambda: {"a": np.arange(5.0), "b": np.eye(2)})
        (path,) = Path(name).rglob("*.zip")
        return (path.read_bytes(),)


def seeds_of_store() -> tuple[bytes, ...]:
    """Return a store of judgments."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "judgments.sqlite"
        with JudgmentStore(path) as store:
            store.add("ann", "q1", "d1", 2, key="1", confidence=0.5, note="a note")
            store.add("bob", "q1", "d1", 1, key="2")
            store.add("bob", "q1", "d 2", action="skip", key="3")
            store.add("model:x", "q2", "d\u00e9", 3, key="4", source="model:x")
            store.undo("bob", key="5")
        return (path.read_bytes(),)


def seeds_of_journal() -> tuple[bytes, ...]:
    """Return the journal of a pull."""
    with tempfile.TemporaryDirectory() as name:
        with Journal(Path(name), DIGESTS, "state", resume=False) as journal:
            for key, answer in ANSWERS.items():
                journal.add(key, answer)
        return (journal.path.read_bytes(),)


def seeds_of_parquet() -> tuple[bytes, ...]:
    """Return a table as Parquet."""
    import polars as pl

    frame = pl.DataFrame({"query_id": ["q1", "q1", "q2"], "doc_id": ["a", "b", "a"], "score": [3.0, 2.0, 1.0]})
    seeds = []
    for packing in ("uncompressed", "zstd", "snappy"):
        file = io.BytesIO()
        frame.write_parquet(file, compression=packing)  # type: ignore[arg-type]
        seeds.append(file.getvalue())
    return tuple(seeds)


def seeds_of_calls() -> tuple[bytes, ...]:
    """Return command lines."""
    calls = (
        "evaluate qrels.txt bm25.trec dense=dense.trec -m AP,P@10 -q --format json",
        "compare qrels.txt bm25.trec dense.trec --resamples 100 --seed 1 --confidence 0.9",
        "fuse --method rrf --k 60 --top 5 --depth 10 bm25.trec dense.trec --tag x",
        "fuse --weights bm25=0.3,dense=0.7 --normalize bm25=minmax,dense=zscore bm25.trec dense.trec",
        "fuse --model model.json bm25.trec dense.trec --lenient --duplicates max",
        "inspect bm25.trec dense.trec --qrels qrels.txt --depth bm25=3,dense=4 --format tsv",
        "explain --model model.json bm25.trec dense.trec --query 1 --top 3",
        "export model.json --to opensearch --approximate --set size=20 --set bm25.field=text",
        "export --list model.json --format json",
        "collections list --format json",
        "pool bm25.trec dense=dense.trec --qrels qrels.txt -n 5 --method mtf --compare bm25,equal --seed 3",
        "clicks clicks.csv -o out.csv --model coec --least-lists 1 --least-clicks 1 --format json",
        "judge export judgments.sqlite --format csv -o judged.csv",
        "judge agreement judgments.sqlite --format json",
        "pull --init sqlite --set auth.user=me",
        "update --model model.json --qrels qrels.txt bm25.trec dense.trec -o out.json --grades from=0.5",
    )
    return tuple(call.replace(" ", "\0").encode() for call in calls)


NAMES = (
    "trec-run",
    "trec-qrels",
    "pieces-run",
    "pieces-qrels",
    "csv",
    "tsv",
    "json-run",
    "json-qrels",
    "lenient",
    "round-trip",
    "gzip",
    "zstandard",
    "parquet",
    "letor",
    "query-weights",
    "groups",
    "queries",
    "group-rules",
    "texts",
    "beir",
    "model",
    "evidence",
    "cache",
    "clicks",
    "judgments",
    "pull-config",
    "pull-journal",
    "body",
    "command",
)
"""The targets, known before anything is set up."""


@cache
def targets() -> dict[str, Target]:
    """Return what is tried."""
    run, qrels = genm.read_run, genm.read_qrels
    evidence = seeds_of_files("model.evidence.json")[0]

    def oracle_table(separator: str, what: str) -> Callable[[bytes], oracle.Table | None]:
        return partial(oracle.table, separator=separator, what=what)

    def oracle_json(what: str) -> Callable[[bytes], oracle.Table | None]:
        return partial(oracle.json_file, what=what)

    def held(read: Callable[..., Any], form: str, expect: Callable[[bytes], oracle.Table | None]) -> Any:
        return partial(compared, partial(read, format=form), expect)

    def only_errors(read: Callable[[bytes], Any]) -> Any:
        return partial(tolerated, read)

    tables, texts = (RUN, QRELS, CSV, TSV, JSON, RATINGS), (CORPUS, DOCS, TOPICS, CSV)
    return {
        "trec-run": Target((RUN,), held(run, "trec", oracle.trec_run), 30),
        "trec-qrels": Target((QRELS,), held(qrels, "trec", oracle.trec_qrels), 30),
        "pieces-run": Target((RUN,), held(partial(in_pieces, run), "trec", oracle.trec_run), 10),
        "pieces-qrels": Target((QRELS,), held(partial(in_pieces, qrels), "trec", oracle.trec_qrels), 10),
        "csv": Target((CSV, PLAIN_CSV), held(run, "csv", oracle_table(",", "score")), 30),
        "tsv": Target((TSV,), held(qrels, "tsv", oracle_table("\t", "relevance")), 20),
        "json-run": Target((JSON,), held(run, "json", oracle_json("score")), 30),
        "json-qrels": Target((RATINGS,), held(qrels, "json", oracle_json("relevance")), 30),
        "lenient": Target(tables, only_errors(read_leniently), 10),
        "round-trip": Target((RUN, CSV, JSON), read_round_trip, 10),
        "gzip": Target((RUN,), partial(read_packed, gzip.compress), 5),
        "zstandard": Target((RUN,), partial(read_packed, zstandard.compress), 5),
        "parquet": Target(seeds_of_parquet(), only_errors(lambda data: run(io.BytesIO(data))), 3),
        "letor": Target((LETOR,), only_errors(lambda data: read_letor(io.BytesIO(data), lenient=_even(data))), 20),
        "query-weights": Target((WEIGHTS,), only_errors(lambda data: read_query_weights(io.BytesIO(data))), 10),
        "groups": Target((GROUPS,), only_errors(lambda data: read_groups(io.BytesIO(data))), 10),
        "queries": Target((QUERIES, CORPUS), only_errors(lambda data: read_queries(io.BytesIO(data))), 10),
        "group-rules": Target((RULES,), only_errors(find_group), 10),
        "texts": Target(texts, only_errors(lambda data: read_texts_of(data, lenient=_even(data))), 30),
        "beir": Target((CORPUS,), only_errors(read_folder), 2),
        "model": Target(seeds_of_files("model.json"), load_changed_model, 10),
        "evidence": Target((evidence[:20_000], evidence), load_changed_evidence, 2),
        "cache": Target(seeds_of_cache(), use_changed_entry, 3),
        "clicks": Target((CLICKS_JSON, CLICKS_CSV, CLICKS_PLAIN, CLICKS_UBI), read_changed_log, 20),
        "judgments": Target(seeds_of_store(), use_changed_store, 1),
        "pull-config": Target((*(example_config(name).encode() for name in ENGINES), PULL), read_changed_config, 5),
        "pull-journal": Target(seeds_of_journal(), resume_changed_journal, 3),
        "body": Target(
            (FUSE_BODY, COLUMNS_BODY, FEEDBACK_BODY, WEIGHTS_BODY, INTERLEAVE_BODY), serve_changed_body, 20
        ),
        "command": Target(seeds_of_calls(), call_command, 1),
    }


def _even(data: bytes) -> bool:
    """Choose between strict and lenient, the same for the same input."""
    return len(data) % 2 == 0


def changed(seeds: tuple[bytes, ...], draw: random.Random) -> bytes:
    """Return a seed with one to six changes."""
    content = bytearray(draw.choice(seeds))
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 6))):
        at = draw.randrange(len(content) + 1)
        end = min(len(content), at + draw.choice((1, 1, 2, 4, 16, 64)))
        kind = draw.randrange(9)
        if kind == 0 and content:
            content[at % len(content)] = draw.randrange(256)
        elif kind == 1:
            content[at:at] = draw.choice(TOKENS)
        elif kind == 2:
            content[at:end] = draw.choice(TOKENS)
        elif kind == 3:
            del content[at:end]
        elif kind == 4:
            content[at:at] = content[at:end] * draw.choice((1, 1, 2, 40))
        elif kind == 5:
            other = draw.choice(seeds)
            begin = draw.randrange(len(other) + 1)
            content[at:at] = other[begin : begin + draw.choice((4, 16, 64))]
        elif kind == 6:
            words = re.split(rb"([\s,:\0]+)", bytes(content))
            i, j = draw.randrange(len(words)), draw.randrange(len(words))
            words[i], words[j] = words[j], draw.choice((words[i], draw.choice(TOKENS)))
            content = bytearray(b"".join(words))
        elif kind == 7:
            del content[at:]
        else:
            content[at:at] = bytes(draw.randrange(256) for _ in range(draw.choice((1, 2, 8))))
        del content[100_000:]
    return bytes(content)


@dataclass
class Tally:
    """What one process has done."""

    executions: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    """A line about each different failure, by where it happened."""
    peak: int = 0
    slowest: float = 0.0
    """CPU seconds of the slowest execution."""


class HangError(BaseException):
    """An execution took too long; no handler of genm may catch it."""


def _stop(*_: object) -> None:
    """Note a tick of the timer; a process that waits for the processor gets more of them."""
    _ticks.append(time.process_time())
    if _ticks[-1] - _ticks[0] >= HANG_SECONDS / 2 or len(_ticks) > 12:
        raise HangError


_ticks: list[float] = []
"""The CPU time at the beginning of an execution and at every tick since."""


def try_once(name: str, content: bytes, tally: Tally, folder: Path) -> None:
    """Give an input to a target; note a failure, and keep its input."""
    began = time.process_time()
    _ticks[:] = [began]
    signal.setitimer(signal.ITIMER_REAL, HANG_SECONDS, HANG_SECONDS)
    try:
        tally.accepted[name] += targets()[name].check(content)
    except (Exception, HangError) as error:  # noqa: BLE001 (any other exception is what we look for)
        signal.setitimer(signal.ITIMER_REAL, 0)
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "genm" in f.filename] or frames
        where = f"{name}: {type(error).__name__} at {Path(ours[-1].filename).name}:{ours[-1].lineno}"
        if where not in tally.failures:
            tally.failures[where] = f"{error!s:.300}"
            folder.mkdir(exist_ok=True)
            (folder / f"{name}-{len(tally.failures)}-{os.getpid()}.bin").write_bytes(content)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        tally.executions[name] += 1
        tally.slowest = max(tally.slowest, time.process_time() - began)


def work(seed: int, seconds: float, executions: int | None, names: list[str], folder: Path) -> Tally:
    """Try changed inputs until the time is over, or their number is reached."""
    tally, draw = Tally(), random.Random(seed)  # noqa: S311
    enter_sample_folder()
    signal.signal(signal.SIGALRM, _stop)
    sys.setrecursionlimit(1000)
    shares = [targets()[name].share for name in names]
    for name in names:
        for content in targets()[name].seeds:
            try_once(name, content, tally, folder)  # compiles the kernels, too
    limit = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + MEMORY
    with contextlib.suppress(ValueError, OSError):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    end = np.inf if executions is not None else time.monotonic() + seconds
    said = time.monotonic()
    while time.monotonic() < end and tally.executions.total() < (executions or np.inf):
        if time.monotonic() > said + PROGRESS_SECONDS:
            said = time.monotonic()
            n, cpu = tally.executions.total(), time.process_time()
            print(f"{n:,} executions in {cpu:.0f} s of CPU, {len(tally.failures)} failures", flush=True)
        for name in draw.choices(names, shares, k=50):
            try_once(name, changed(targets()[name].seeds, draw), tally, folder)
    tally.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if tally.peak > limit:
        tally.failures["memory"] = f"{tally.peak:,} bytes"
    return tally


def main() -> int:
    """Fuzz, print a table, and return 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--executions", type=int, help="stop at this number instead")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", help="targets, comma-separated")
    given = parser.parse_args()
    os.environ["GENM_THREADS"] = "1"
    folder = FOLDER.resolve()
    names = given.only.split(",") if given.only else list(NAMES)
    each = None if given.executions is None else -(-given.executions // given.jobs)
    jobs = [(given.seed + i, given.seconds, each, names, folder) for i in range(given.jobs)]
    length = f"{given.seconds:g} s" if each is None else f"{given.executions:,} executions"
    print(f"seed {given.seed}, {given.jobs} processes, {length}", flush=True)
    began = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        tallies = pool.starmap(work, jobs)
    total = Counter[str]()
    accepted = Counter[str]()
    failures: dict[str, str] = {}
    for tally in tallies:
        total += tally.executions
        accepted += tally.accepted
        failures |= tally.failures
    for name in names:
        print(f"{name:<14} {total[name]:>9,} executions, {accepted[name] / max(total[name], 1):.0%} accepted")
    seconds = time.monotonic() - began
    print(
        f"{'all':<14} {sum(total.values()):>9,} executions in {seconds:.0f} s, "
        f"{sum(total.values()) / seconds:,.0f} a second; slowest {max(t.slowest for t in tallies):.2f} s of CPU, "
        f"most memory {max(t.peak for t in tallies) >> 20:,} MiB"
    )
    for where, text in failures.items():
        print(f"FAILED {where}: {text}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
