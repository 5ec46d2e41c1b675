"""Finished searches on disk, one JSON line each, so that an interrupted pull goes on where it stopped.

The first line holds digests of what was asked. A line counts once it ends: what a killed process left of its last
line is removed.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout

from genm.connect.engine import Answer
from genm.errors import InputError

FORMAT, VERSION = "genm pull journal", 1
NAME = "pull.journal"
_BEGINNING = f'{{"format": "{FORMAT}"'.encode()
Key = tuple[str, str]
"""Ranker and query id."""


class Journal:
    """The journal of one folder; use it as a context manager. Answers are on disk when `add` returns."""

    def __init__(self, folder: Path, digests: Mapping[str, str], state: str | None, *, resume: bool) -> None:
        self.path = folder / NAME
        self.answers: dict[Key, Answer] = {}
        self.state = state
        """The state of the index when the pull began."""
        self._seen_texts: set[str] = set()
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
        """Open an empty journal and write its head."""
        file = self.path.open("wb", buffering=0)
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
            return self._begun(digests)  # the process was killed while it wrote the head
        lines = content[:whole].split(b"\n")[:-1]
        head = self._parsed(lines[0], 1) if lines else {}
        if head.get("format") != FORMAT or head.get("version") != VERSION:
            raise InputError(f"{self.path}: expected the journal of a pull; found something else. Remove the file.")
        kept = head.get("digests", {})
        if changed := [name for name in {**kept, **digests} if kept.get(name) != digests.get(name)]:
            raise InputError(
                f"{self.path}: expected the configuration that the pull began with; found other "
                f"{', '.join(changed)}. "
                "Restore it, or remove the file to start again."
            )
        self.state = head.get("state")
        for number, line in enumerate(lines[1:], 2):
            entry = self._parsed(line, number)
            try:
                answer = Answer(
                    tuple((str(doc_id), float(score)) for doc_id, score in entry["hits"]),
                    dict(entry.get("texts", {})),
                    str(entry.get("partial", "")),
                    int(entry.get("duplicates", 0)),
                )
                self.answers[entry["ranker"], entry["query"]] = answer
            except (KeyError, TypeError, ValueError):
                raise self._broken(number) from None
            self._seen_texts |= answer.texts.keys()
        file = self.path.open("r+b", buffering=0)
        file.truncate(whole)
        file.seek(whole)
        return file

    def _parsed(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            raise self._broken(number)
        return entry

    def _broken(self, number: int) -> InputError:
        return InputError(
            f"{self.path}:{number}: expected a finished search; found a broken line. Remove the file."
        )

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
            left = memoryview(json.dumps(entry, ensure_ascii=True).encode() + b"\n")
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
