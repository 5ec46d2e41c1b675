"""Finished searches on disk, one JSON line each, so that an interrupted pull goes on where it stopped.

The first line holds digests of what was asked. Every line ends in a space and the CRC-32 of what precedes it, so
that a damaged line is found. A line counts once it ends: what a killed process left of its last line is removed.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, TypeVar
from zlib import crc32

import msgspec
from filelock import FileLock, Timeout

from genm.connect.engine import Answer
from genm.errors import InputError
from genm.strict_json import Count, Finite, Strict

FORMAT, VERSION = "genm pull journal", 2
NAME = "pull.journal"
_BEGINNING = f'{{"format": "{FORMAT}"'.encode()
Key = tuple[str, str]
"""Ranker and query id."""
T = TypeVar("T")


class _Head(Strict, frozen=True):
    format: str
    version: int
    digests: dict[str, str]
    state: str | None


class _Entry(Strict, frozen=True):
    ranker: str
    query: str
    hits: tuple[tuple[str, Finite], ...]
    texts: dict[str, str] = msgspec.field(default_factory=dict)
    partial: str = ""
    duplicates: Count = 0


class Journal:
    """The journal of one folder; use it as a context manager. Answers are on disk when `add` returns."""

    def __init__(self, folder: Path, digests: Mapping[str, str], state: str | None, *, resume: bool) -> None:
        self.path = folder / NAME
        self.answers: dict[Key, Answer] = {}
        self.state = state
        """The state of the index when the pull began."""
        self._seen_texts: set[str] = set()
        if self.path.is_symlink():
            raise InputError(f"{self.path}: expected a file of genm's own; found a link. Remove it.")
        self._lock = FileLock(f"{self.path}.lock", timeout=0)
        try:
            self._lock.acquire()
        except Timeout:
            raise InputError(f"{self.path}: expected no other pull into this folder; found one running.") from None
        try:
            self._file = self._resumed(digests) if resume and self.path.exists() else self._new(digests)
        except BaseException:
            self._release()
            raise

    def _new(self, digests: Mapping[str, str]) -> IO[bytes]:
        if self.path.exists():
            raise InputError(
                f"{self.path}: expected a folder without an unfinished pull; found one. Continue it with "
                "--resume, or "
                "remove the file to start again."
            )
        return self._begun(digests)

    def _begun(self, digests: Mapping[str, str]) -> IO[bytes]:
        """Make an empty journal and write its head; a link of that name is not followed."""
        file = self.path.open("xb", buffering=0)
        try:
            head = {"format": FORMAT, "version": VERSION, "digests": dict(digests), "state": self.state}
            self._write(file, head)
        except BaseException:
            file.close()
            raise
        return file

    def _resumed(self, digests: Mapping[str, str]) -> IO[bytes]:
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if not whole and _BEGINNING.startswith(content[: len(_BEGINNING)]):
            self.path.unlink()  # the process was killed while it wrote the head
            return self._begun(digests)
        lines = content[:whole].split(b"\n")[:-1]
        head = _parsed(lines[0], _Head) if lines else None
        if head is None or (head.format, head.version) != (FORMAT, VERSION):
            raise InputError(
                f"{self.path}: expected the journal of a pull, version {VERSION}; found something else. Remove the "
                "file."
            )
        kept = head.digests
        if changed := [name for name in {**kept, **digests} if kept.get(name) != digests.get(name)]:
            raise InputError(
                f"{self.path}: expected the configuration that the pull began with; found other "
                f"{', '.join(changed)}. "
                "Restore it, or remove the file to start again."
            )
        self.state = head.state
        for number, line in enumerate(lines[1:], 2):
            entry = _parsed(line, _Entry)
            if entry is None:
                raise InputError(
                    f"{self.path}:{number}: expected a finished search; found a broken line. Remove the file."
                )
            answer = Answer(entry.hits, entry.texts, entry.partial, entry.duplicates)
            self.answers[entry.ranker, entry.query] = answer
            self._seen_texts |= answer.texts.keys()
        file = self.path.open("r+b", buffering=0)
        file.truncate(whole)
        file.seek(whole)
        return file

    def add(self, key: Key, answer: Answer) -> None:
        """Keep an answer; a document's text is written once."""
        ranker, query_id = key
        new = {doc_id: text for doc_id, text in answer.texts.items() if doc_id not in self._seen_texts}
        self._seen_texts |= new.keys()
        entry: dict[str, Any] = {"ranker": ranker, "query": query_id, "hits": answer.hits}
        optional = {"texts": new, "partial": answer.partial, "duplicates": answer.n_duplicates}
        self._write(self._file, entry | {name: value for name, value in optional.items() if value})
        self.answers[key] = answer

    def _write(self, file: IO[bytes], entry: dict[str, Any]) -> None:
        try:
            line = json.dumps(entry, ensure_ascii=True).encode()
            left = memoryview(b"%b %08x\n" % (line, crc32(line)))
            while left:
                left = left[os.write(file.fileno(), left) :]
            os.fsync(file.fileno())
        except OSError as error:
            raise InputError(
                f"{self.path}: expected a file that can be written; found: {error.strerror}. Make space, then "
                "--resume."
            ) from error

    def remove(self) -> None:
        """Remove the journal: the runs are written."""
        self._file.close()
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._release()

    def _release(self) -> None:
        self._lock.release()
        Path(self._lock.lock_file).unlink(missing_ok=True)


def _parsed(line: bytes, kind: type[T]) -> T | None:
    """Return what a line holds, None if it is damaged or of another kind."""
    content, _, check = line.rpartition(b" ")
    if check != b"%08x" % crc32(content):
        return None
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
