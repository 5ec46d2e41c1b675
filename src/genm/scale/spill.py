"""The work folder of `genm shard`: rows sorted into partitions of queries, and what was finished.

Rows of a run come in any order. They are appended to one file per list (a run, or the judgments) and partition: a
range of queries small enough for memory. A file is a sequence of blocks, each with a checksum:

    4 x int64   number of rows, bytes of text, first line of the piece, CRC-32 of the rest
    float64     value of each row
    3 x int32   query (its number), line within the piece, length of the doc id
    text        the doc ids
"""

import json
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from genm.errors import TableError
from genm.ids import Ids, hashes_of
from genm.io import whole_file

PLAN = "plan.json"
"""The file that says what the work folder is for."""
_HEAD = 4
_FIXED = 8 + 3 * 4


class QueryIndex:
    """The queries in order of first appearance, and the number of each; grows while lists are read."""

    def __init__(self, ids: Ids | None = None) -> None:
        self._parts = [Ids.of(()) if ids is None else ids]
        hashes = hashes_of(self._parts[0])
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]
        self._lengths = np.diff(self._parts[0].starts)

    def __len__(self) -> int:
        return len(self._sorted)

    @property
    def ids(self) -> Ids:
        """All ids, in order."""
        if len(self._parts) > 1:
            starts = np.zeros(len(self) + 1, np.int64)
            np.cumsum(self._lengths, out=starts[1:])
            self._parts = [Ids(np.concatenate([part.text for part in self._parts]), starts)]
        return self._parts[0]

    def find(self, wanted: Ids) -> NDArray[np.int64]:
        """Return the number of each id, -1 for those that are not here."""
        hashes = hashes_of(wanted)
        place = np.searchsorted(self._sorted, hashes)
        inside = place < len(self._sorted)
        found = np.full(len(wanted), -1, np.int64)
        same = np.zeros(len(wanted), np.bool_)
        same[inside] = self._sorted[place[inside]] == hashes[inside]
        found[same] = self._order[place[same]]
        return self._checked(found, wanted)

    def _checked(self, found: NDArray[np.int64], wanted: Ids) -> NDArray[np.int64]:
        """Compare the text: two long ids may share a hash, though hardly ever two of the same table."""
        at = np.flatnonzero(found >= 0)
        ours, theirs = self.ids.take(found[at]), wanted.take(at)
        if len(ours.text) == len(theirs.text) and (ours.starts == theirs.starts).all():
            differs = ours.text != theirs.text
            if not differs.any():
                return found
        for code in at.tolist():
            if self.ids[int(found[code])] != wanted[code]:
                raise TableError(
                    f"query ids {self.ids[int(found[code])]!r} and {wanted[code]!r}: expected different hashes; "
                    "found the same one, which cannot be handled. Rename one of them."
                )
        return found

    def add(self, given: Ids) -> NDArray[np.int64]:
        """Return the number of each id; new ids (which must be distinct) get the next numbers in their order."""
        found = self.find(given)
        new = np.flatnonzero(found < 0)
        if len(new):
            added = given.take(new)
            found[new] = len(self) + np.arange(len(new))
            hashes = hashes_of(added)
            order = np.argsort(hashes, kind="stable")
            place = np.searchsorted(self._sorted, hashes[order])
            self._order = np.insert(self._order, place, found[new][order])
            self._sorted = np.insert(self._sorted, place, hashes[order])
            self._lengths = np.concatenate((self._lengths, np.diff(added.starts)))
            self._parts.append(added)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class SpilledRows:
    """Rows of one list: value, query number, line and doc id of each."""

    value: NDArray[np.float64]
    query: NDArray[np.int32]
    line: NDArray[np.int64]
    length: NDArray[np.int32]
    text: NDArray[np.uint8]

    @classmethod
    def joined(cls, parts: "list[SpilledRows]") -> "SpilledRows":
        """Return the rows of all parts, in order."""
        empty = (np.zeros(0), np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int32))
        if not parts:
            return cls(*empty, np.zeros(0, np.uint8))
        return cls(
            np.concatenate([part.value for part in parts]),
            np.concatenate([part.query for part in parts]),
            np.concatenate([part.line for part in parts]),
            np.concatenate([part.length for part in parts]),
            np.concatenate([part.text for part in parts]),
        )


class WorkFolder:
    """The files of a table that is being made; what is finished is recorded, and found again after a crash."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(
        self,
        name: str,
        value: NDArray[np.float64],
        query: NDArray[np.int64],
        line: NDArray[np.int64],
        first_line: int,
        docs: Ids,
    ) -> int:
        """Append a block of rows to a spill file, and return its size; `docs` holds the doc id of each row."""
        body = b"".join(
            (
                value.tobytes(),
                query.astype(np.int32).tobytes(),
                (line - first_line).astype(np.int32).tobytes(),
                np.diff(docs.starts).astype(np.int32).tobytes(),
                docs.text.tobytes(),
            )
        )
        head = np.array([len(value), len(docs.text), first_line, zlib.crc32(body)], np.int64)
        with (self.path / name).open("ab") as file:
            file.write(head.tobytes())
            file.write(body)
        return 8 * _HEAD + len(body)

    def rows(self, name: str, size: int, low: int, high: int) -> SpilledRows:
        """Return the rows of queries low:high in a spill file, which must have the recorded size."""
        return SpilledRows.joined(list(self._blocks(self.path / name, size, low, high)))

    def _blocks(self, path: Path, size: int, low: int, high: int) -> Iterator[SpilledRows]:
        found = path.stat().st_size if path.exists() else 0
        if found != size:
            raise self._damaged(path, f"{size:,} bytes", f"{found:,}")
        if not size:
            return
        with path.open("rb") as file:
            while head := file.read(8 * _HEAD):
                n, n_text, first_line, check = np.frombuffer(head, np.int64).tolist()
                body = file.read(n * _FIXED + n_text)
                if len(body) != n * _FIXED + n_text or zlib.crc32(body) != check:
                    raise self._damaged(path, f"a block with CRC-32 {check:08x}", "another one")
                value = np.frombuffer(body, np.float64, n)
                query, line, length = np.frombuffer(body, np.int32, 3 * n, 8 * n).reshape(3, n)
                text = np.frombuffer(body, np.uint8, n_text, n * _FIXED)
                lines = line.astype(np.int64) + first_line
                chosen = np.flatnonzero((query >= low) & (query < high))
                if len(chosen) == n:
                    yield SpilledRows(value, query, lines, length, text)
                elif len(chosen):
                    starts = np.zeros(n + 1, np.int64)
                    np.cumsum(length, out=starts[1:])
                    kept = Ids(text, starts).take(chosen)
                    yield SpilledRows(value[chosen], query[chosen], lines[chosen], length[chosen], kept.text)

    def _damaged(self, path: Path, expected: str, found: str) -> TableError:
        return TableError(
            f"{path}: expected {expected}; found {found}. The work folder was changed or its disk is faulty: "
            f"remove {self.path} and start again."
        )

    def remove(self, prefix: str) -> None:
        """Remove the files whose names begin like this."""
        for path in self.path.glob(f"{prefix}*"):
            path.unlink()

    def clear(self) -> None:
        """Remove the folder; what a crash leaves of it is of no use to anyone."""
        (self.path / PLAN).unlink(missing_ok=True)
        shutil.rmtree(self.path, ignore_errors=True)

    def save(self, name: str, record: Any) -> None:
        """Write a JSON file, complete or not at all."""
        with whole_file(self.path / name) as file:
            file.write(json.dumps(record, ensure_ascii=False).encode())

    def load(self, name: str) -> Any:
        """Return the content of a JSON file; None where there is none, or one that was cut short."""
        try:
            return json.loads((self.path / name).read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    def save_queries(self, name: str, ids: Ids, entries: NDArray[np.int64]) -> None:
        """Write the queries, and how many rows each has so far."""
        with whole_file(self.path / name) as file:
            np.savez(cast("Any", file), text=ids.text, starts=ids.starts, entries=entries)

    def load_queries(self, name: str) -> tuple[Ids, NDArray[np.int64]]:
        """Return what `save_queries` wrote."""
        with np.load(self.path / name, allow_pickle=False) as stored:
            return Ids(stored["text"], stored["starts"]), stored["entries"]

    def add_line(self, name: str, record: Any) -> None:
        """Append a line to a journal, and make sure that it is on disk."""
        with (self.path / name).open("ab") as file:
            file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
            file.flush()

    def lines(self, name: str) -> list[Any]:
        """Return the whole lines of a journal; the last one may have been cut short."""
        try:
            content = (self.path / name).read_bytes()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in content.split(b"\n")[:-1] if line]
