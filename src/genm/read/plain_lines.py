"""Read a large TREC file piece by piece, without keeping its text.

New memory is most of what reading costs. Here each chunk of lines is parsed in a buffer that the next one takes
over, while it lies in the core's cache, and only its ids and numbers are kept. That works for plain files: every
line is a row that the compiled code understands, and all ids are UTF-8. `genm.read.trec.read_rows` reads the others
again, with the whole text for repairs and messages. Both cut the text at the same places and give the same rows.
"""

from dataclasses import dataclass
from threading import Lock
from typing import IO, TYPE_CHECKING

import numpy as np

from genm._math.byte_search import WIDTH
from genm._math.parallel import in_threads
from genm.ids import Interning, intern
from genm.progress import Progress
from genm.read import trec
from genm.read.diagnostics import Diagnostics
from genm.read.rows import Rows, segments
from genm.read.sources import StoredText, Text, TextSource
from genm.read.trec import (
    ChunkParser,
    Parsed,
    Shape,
    count_lines,
    first_broken,
    first_marked,
    read_rows,
    say_against,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LONGEST = 1 << 16
"""How long the last line of a chunk may be."""


def read_trec(source: TextSource, shape: Shape, report: Diagnostics, progress: Progress) -> Rows:
    """Parse a text into rows; a line that cannot be parsed is an error, or is repaired and counted."""
    rows = _plain_rows(source, shape, report, progress) if isinstance(source, StoredText) else None
    return read_rows(source, shape, report, progress) if rows is None else rows


@dataclass(slots=True)
class _Chunk:
    """Some whole lines of a file, at the beginning of a buffer."""

    number: int
    n_bytes: int
    before: int
    """How many lines come before them."""
    n_lines: int


class _Room:
    """What a thread needs to parse a chunk, used again for the next one."""

    def __init__(self, shape: Shape) -> None:
        most = trec.CHUNK + _LONGEST
        self.text = np.empty(most + WIDTH, np.uint8)
        """The parser looks at WIDTH bytes at a time."""
        self.parser = ChunkParser(shape.layout, _most_rows(most, shape))


class _Reading:
    """A file that threads read and parse together: each takes the next chunk when it has parsed its own."""

    def __init__(self, file: IO[bytes], source: StoredText, shape: Shape) -> None:
        size = len(source)
        self._file, self._size, self._shape, self._most = file, size, shape, _most_rows(size, shape)
        likely = size * int(np.count_nonzero(source.head == 10)) // len(source.head)
        self._docs = Interning(self._most, size, size // trec.CHUNK + 1, likely)
        self._bits = np.empty(self._most, np.uint64)
        self._queries: dict[int, tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int64]]] = {}
        """For each chunk the ids of its segments, how long they are, and where the segments begin."""
        self._against: dict[int, tuple[int, int]] = {}
        """For some chunks how many ranks contradict the scores, and the first line where one does."""
        self._rooms: list[_Room] = []
        self._lock, self._rest = Lock(), b""
        self._cuts = [0]
        """The first row of each chunk that was given out, and the end of the last one."""
        self.n_bytes = 0
        """How much of the text was given out."""
        self.is_plain, self.is_stopped = True, False

    def parse(self, n_chunks: int) -> None:
        """Parse so many chunks, or all that are left."""
        until = len(self._cuts) - 1 + n_chunks
        in_threads(lambda: self._work(until), self._size)

    def stop(self) -> None:
        """Wait until no thread reads, and let none read again."""
        with self._lock:
            self.is_stopped = True

    def rows(self, report: Diagnostics) -> Rows | None:
        """Return the rows when all is parsed; None if the file is not plain, before anything is reported."""
        if not self.is_plain or self.n_bytes != self._size:
            return None
        found, n = self._docs.table(np.array(self._cuts)), self._cuts[-1]
        if found is None:
            return None
        docs, doc = found
        ids, lengths, begins = zip(*(self._queries[number] for number in range(len(self._cuts) - 1)), strict=True)
        length = np.concatenate(lengths)
        queries, codes = intern(np.concatenate(ids), np.cumsum(length, dtype=np.int64) - length, length)
        if first_marked(queries) >= 0 or first_broken(queries) >= 0 or first_broken(docs) >= 0:
            return None
        if self._against:
            count = sum(count for count, _ in self._against.values())
            say_against(report, count, min(line for _, line in self._against.values()))
        joined, query = segments(codes)  # some were split only by the end of a chunk
        starts = np.append(np.concatenate(begins)[joined[:-1]], n)
        return Rows(queries, docs, starts, query, doc, self._bits[:n].view(np.float64), lambda row: row + 1)

    def _work(self, until: int) -> None:
        with self._lock:
            room = self._rooms.pop() if self._rooms else _Room(self._shape)
        while chunk := self._next_chunk(room, until):
            bits = self._bits[chunk.before : chunk.before + chunk.n_lines]
            parsed = room.parser.parse(room.text, chunk.n_bytes, chunk.n_lines, bits)
            if parsed is None or parsed.doc_length.max() > Interning.LONGEST:
                self._give_up()
            else:
                self._keep(chunk, room.text, parsed)
        with self._lock:
            self._rooms.append(room)

    def _give_up(self) -> None:
        self.is_plain, self.is_stopped = False, True

    def _next_chunk(self, room: _Room, until: int) -> _Chunk | None:
        """Read the next chunk; None if there is none, or if the file is not plain."""
        with self._lock:
            number, before = len(self._cuts) - 1, self._cuts[-1]
            if self.is_stopped or number == until:
                return None
            try:
                n_bytes = self._fill(room.text[:-WIDTH])
            except BaseException:
                self.is_stopped = True
                raise
            n_lines = count_lines(room.text, 0, n_bytes)
            if not n_bytes or self.n_bytes > self._size or before + n_lines > self._most:
                self._give_up()
                return None
            self.is_stopped = self.n_bytes == self._size
            self._cuts.append(before + n_lines)
            return _Chunk(number, n_bytes, before, n_lines)

    def _fill(self, text: Text) -> int:
        """Read lines up to the first that ends after CHUNK bytes; return how many bytes, 0 if it is too long.

        The last line of a file gets a line feed if it has none: the parser looks for it.
        """
        n = len(self._rest)
        text[:n] = np.frombuffer(self._rest, np.uint8)
        while n < len(text) and (n_came := self._file.readinto(text[n:].data)):  # type: ignore[attr-defined]
            n += n_came
        ends = np.flatnonzero(text[trec.CHUNK : n] == 10)
        if not len(ends) and n == len(text):
            return 0
        end = trec.CHUNK + int(ends[0]) + 1 if len(ends) else n
        self._rest = text[end:n].tobytes()
        self.n_bytes += end
        if end and text[end - 1] != 10:
            text[end] = 10
            return end + 1
        return end

    def _keep(self, chunk: _Chunk, text: Text, parsed: Parsed) -> None:
        """Keep the ids of a chunk, and what else is needed of it; its values are where they belong."""
        self._docs.add(chunk.number, chunk.before, text, parsed.doc_at, parsed.doc_length)
        length = parsed.segment_length.copy()
        ends = np.cumsum(length)
        ids = text[np.repeat(parsed.segment_at - ends + length, length) + np.arange(ends[-1])]
        self._queries[chunk.number] = ids, length, parsed.segment_row + chunk.before
        if parsed.n_against:
            line = chunk.before + 1 + int(np.count_nonzero(text[: parsed.first_against] == 10))
            self._against[chunk.number] = parsed.n_against, line


def _plain_rows(source: StoredText, shape: Shape, report: Diagnostics, progress: Progress) -> Rows | None:
    """Return the rows of a file; None if it is not plain, before anything is reported."""
    task, size = f"reading {source.name}", len(source)
    with source.opened() as file:
        reading = _Reading(file, source, shape)
        try:
            while not reading.is_stopped:
                if reading.n_bytes:
                    progress(task, reading.n_bytes, size)
                reading.parse(trec.ROUND)
        finally:
            reading.stop()
        source.check_unchanged(file)
    rows = reading.rows(report)
    if rows is not None:
        progress(task, size, size)
    return rows


def _most_rows(n_bytes: int, shape: Shape) -> int:
    """Return how many rows so many bytes may hold: a column takes two at least, itself and what ends it."""
    return (n_bytes + 1) // (2 * shape.layout.columns) + 1
