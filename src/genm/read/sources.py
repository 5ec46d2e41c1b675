"""Read a path, `-` or an open file into memory, decompressed.

Files are read, not mapped: a mapped file that another program cuts short kills the process that reads it.
Compressed files may unpack to a limited size only, because a few kilobytes can hold gigabytes.
"""

import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import zstandard
from numpy.typing import NDArray

from genm._math.parallel import over_ranges
from genm.errors import FormatError, InputError, WrongTypeError
from genm.progress import Progress
from genm.read.diagnostics import Diagnostics, shown

Text = NDArray[np.uint8]
FileSource = str | os.PathLike[str] | IO[bytes] | IO[str]

PIECES = {"gzip": 1 << 14, "zstandard": 1 << 9}
"""Compressed bytes at a time. A piece unpacks to at most 16 MiB: gzip packs 1,032 bytes into one, zstandard 32,768.
Lenient reading loses the piece that is damaged."""

LIMIT_VARIABLE = "GENM_MAX_UNPACKED"
_MIB = 1 << 20
_SHARE = 8 * _MIB  # bytes that one thread reads at a time
HEAD = _MIB
"""How much of a text is read to find its format and a run's tag."""
LARGE = 4 * _MIB
"""Bytes of a file from which its text is not kept, if it need not be."""
_RATIO, _ALWAYS_ALLOWED, _NEVER_ALLOWED = 100, 64 * _MIB, 64 * 1024 * _MIB
_UNITS = {"": 1, "K": 1 << 10, "M": _MIB, "G": 1 << 30, "T": 1 << 40}
_USUAL = {
    ".csv",
    ".gz",
    ".json",
    ".out",
    ".parquet",
    ".pq",
    ".res",
    ".results",
    ".run",
    ".trec",
    ".tsv",
    ".txt",
    ".zst",
    ".zstd",
}
_ARCHIVES = {
    b"PK\\x03\\x04": "a zip archive",
    b"BZh[1-9]1AY&SY": "bzip2 data",
    b"\\xfd7zXZ": "xz data",
    b"\\x04\\x22\\x4d\\x18": "lz4 data",
}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstandard"}


class _Unpacker(Protocol):
    """The common interface of zlib and zstandard."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class TextSource:
    """A text and its name in messages."""

    def __init__(self, name: str, text: Text) -> None:
        self.name, self._text = name, text

    @property
    def text(self) -> Text:
        """The whole text."""
        return self._text

    @property
    def head(self) -> Text:
        """What the text begins with: at most HEAD bytes."""
        return self._text[:HEAD]

    @property
    def stem(self) -> str:
        """The file's name without folder and usual endings: the default name of a run."""
        return stem_of(self.name)

    @property
    def suffix(self) -> str:
        """The last suffix that says something about the format."""
        named = [s.lower() for s in Path(self.name).suffixes]
        return next((s for s in reversed(named) if s not in (".gz", ".zst", ".zstd")), "")


class StoredText(TextSource):
    """The text of a large file that is not packed. It is read when it is asked for; see `genm.read.plain_lines`."""

    def __init__(self, path: Path, head: Text, state: os.stat_result, report: Diagnostics) -> None:
        super().__init__(report.source, head)
        self._path, self._state, self._report = path, state, report
        self._is_whole, self._n_skipped = False, len(head)
        self._text = as_utf8(head, report)  # which drops a byte order mark
        self._n_skipped -= len(self._text)

    def __len__(self) -> int:
        return self._state.st_size - self._n_skipped

    @property
    def text(self) -> Text:
        """The whole text."""
        if not self._is_whole:
            content = _file_content(self._path, self._report, self._state)
            self._text, self._is_whole = as_utf8(content, self._report), True
        return self._text

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open the file where its text begins."""
        try:
            with self._path.open("rb", buffering=0) as file:
                self.check_unchanged(file)
                file.seek(self._n_skipped)
                yield file
        except OSError as error:
            raise _unreadable(error, str(self._path), self._report) from None

    def check_unchanged(self, file: IO[bytes]) -> None:
        """Raise if the file is another one than was found first."""
        _check_unchanged(self._state, os.fstat(file.fileno()), self._report)


def stem_of(path: str) -> str:
    """Return a file's name without folder and usual endings."""
    name = Path(path).name
    while Path(name).suffix.lower() in _USUAL:
        name = Path(name).stem
    return name


def name_of(source: FileSource) -> str:
    """Return the name of the source in messages."""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return "<stdin>" if path == "-" else path
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<open file>"


def open_source(source: FileSource, report: Diagnostics, progress: Progress) -> TextSource:
    """Return the source's text, unpacked, without a byte order mark."""
    data = _content(source, report)
    packing = packing_of(data[:16].tobytes(), report)
    if packing:
        data = _unpacked(data, packing, report, progress)
    return TextSource(report.source, as_utf8(data, report))


def open_rows(source: FileSource, report: Diagnostics, progress: Progress) -> TextSource:
    """Return what `open_source` returns; the text of a large plain file is read when it is asked for."""
    found = _beginning(source)
    if found is None:
        return open_source(source, report, progress)
    path, head, state = found
    if head[:2].tobytes() in _UTF_16 or packing_of(head[:16].tobytes(), report) is not None:
        return open_source(source, report, progress)
    return StoredText(path, head, state, report)


def _beginning(source: FileSource) -> tuple[Path, Text, os.stat_result] | None:
    """Return what a large file begins with; None for other sources, and where reading fails."""
    if not isinstance(source, str | os.PathLike) or os.fspath(source) == "-":
        return None
    path = Path(source)
    with suppress(OSError, ValueError):
        if path.stat().st_size >= LARGE and path.is_file():  # to open a pipe may take its content away
            with path.open("rb", buffering=0) as file:
                return path, _array(file.read(HEAD)), os.fstat(file.fileno())
    return None


@contextmanager
def open_stream(path: str, report: Diagnostics) -> Iterator[IO[bytes]]:
    """Open a file that is read piece by piece, so that its size does not matter; unpacked where it is packed.

    `-` is standard input.
    """
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed below; errors of the caller must not be caught here)
    except (OSError, ValueError) as error:
        raise _unreadable(error, path, report) from None
    with file:
        try:
            head = file.peek(16)[:16]
        except OSError as error:
            raise _unreadable(error, path, report) from None
        packing = packing_of(head, report)
        yield file if packing is None else io.BufferedReader(_UnpackedStream(file, packing, report))


class _UnpackedStream(io.RawIOBase):
    """The content of a packed file, up to the limit on what it may become."""

    def __init__(self, file: IO[bytes], packing: str, report: Diagnostics) -> None:
        packed = iter(lambda: file.read(PIECES[packing]), b"")
        self._pieces = unpack(packed, packing, report, lambda: "what comes before it was kept")
        self._packing, self._report = packing, report
        self._packed = os.fstat(file.fileno()).st_size
        self._size, self._rest = 0, memoryview(b"")

    def readable(self) -> bool:
        """Say that this is read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what comes next."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._size += len(piece)
            check_unpacked(self._size, self._packed, f"{self._packing} data", self._report)
            self._rest = memoryview(piece)
        n = min(len(buffer), len(self._rest))
        buffer[:n], self._rest = self._rest[:n], self._rest[n:]
        return n


def unpack_limit(packed: int) -> int:
    """Return how many bytes `packed` bytes of a file may become in memory.

    GENM_MAX_UNPACKED sets the limit (a number of bytes, or with K, M, G or T, such as 20G). Without it, the limit
    is 100 times the size of the file, at least 64 MiB and at most 64 GiB.
    """
    chosen = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not chosen:
        return min(max(_RATIO * packed, _ALWAYS_ALLOWED), _NEVER_ALLOWED)
    number = re.fullmatch(r"([0-9]{1,18})([KMGT]?)", chosen.upper())
    if number is None:
        raise InputError(
            f"{LIMIT_VARIABLE}: expected a number of bytes, such as 20G; found {shown(chosen)}. Set it anew."
        )
    return int(number[1]) * _UNITS[number[2]]


def check_unpacked(size: int, packed: int, what: str, report: Diagnostics) -> None:
    """Refuse a source of `packed` bytes that would take `size` bytes of memory, if that is beyond the limit."""
    limit = unpack_limit(packed)
    if size > limit:
        raise report.fail(
            None, expected=f"{what} that unpacks to at most {limit:,} bytes",
            found=f"more than that in a file of {packed:,} bytes",
            advice=f"If you trust the file, set {LIMIT_VARIABLE} to a larger limit, such as 100G.",
        )  # fmt: skip


def text_bytes(text: Text, begin: int, end: int) -> bytes:
    """Return a piece of the text as bytes."""
    return text[begin:end].tobytes()


def _content(source: FileSource, report: Diagnostics) -> Text:
    """Return the bytes as they are stored."""
    if isinstance(source, str | os.PathLike):
        if os.fspath(source) == "-":
            return _array(sys.stdin.buffer.read())
        return _file_content(Path(source), report)
    if not hasattr(source, "read"):
        raise WrongTypeError(
            f"source: expected a path, '-', an open file, a dictionary or a frame; found {type(source).__name__}. "
            "Pass one of these."
        )
    content = source.read()
    if not isinstance(content, str | bytes | bytearray):
        raise WrongTypeError(
            f"source: expected an open file that gives text or bytes; found {type(content).__name__}."
        )
    return _array(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)


def _file_content(path: Path, report: Diagnostics, known: os.stat_result | None = None) -> Text:
    """Return the bytes of a file, which is the same as it was `known` to be."""
    try:
        with path.open("rb") as file:
            before = os.fstat(file.fileno())
            if known is not None:
                _check_unchanged(known, before, report)
            if not stat.S_ISREG(before.st_mode):
                return _array(file.read())
            content = np.empty(before.st_size, np.uint8)
            n_read = _fill(content, file)
            rest = file.read()  # files such as those in /proc have no size of their own
            _check_unchanged(before, os.fstat(file.fileno()), report)
            return content if n_read == before.st_size and not rest else _array(content[:n_read].tobytes() + rest)
    except FormatError:
        raise  # which is a ValueError
    except (OSError, ValueError) as error:
        raise _unreadable(error, str(path), report) from None


def _check_unchanged(before: os.stat_result, after: os.stat_result, report: Diagnostics) -> None:
    """Refuse a file that another program writes while it is read."""
    if _identity(before) != _identity(after):
        raise report.fail(
            None, expected="a readable file",
            found=f"one that changed meanwhile, from {before.st_size:,} to {after.st_size:,} bytes",
            advice="Wait until the program that writes it has finished, then try again.",
        )  # fmt: skip


def _identity(state: os.stat_result) -> tuple[int, int, int, int]:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def _fill(content: Text, file: IO[bytes]) -> int:
    """Read a file into the array and return how many bytes came; threads share a large file."""
    cuts = np.append(np.arange(0, len(content), _SHARE), len(content))
    if len(cuts) > 2 and hasattr(os, "preadv"):
        short = list[int]()

        def read(low: int, high: int) -> None:
            at, end = int(cuts[low]), int(cuts[high])
            while at < end:
                n = os.preadv(file.fileno(), [content.data[at:end]], at)
                if not n:
                    short.append(at)
                    return
                at += n

        over_ranges(read, np.diff(cuts))
        if not short:
            return file.seek(len(content))
    return file.readinto(content.data)  # type: ignore[attr-defined, no-any-return]  # of a file that open gave


def _unreadable(error: OSError | ValueError, path: str, report: Diagnostics) -> FormatError:
    """Return the error for a file that cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        found, advice = "no such file", "Check the path and the working folder."
    elif isinstance(error, IsADirectoryError):
        found, advice = "a folder", "Name a file in it; a folder in BEIR form is read by read_beir."
    elif isinstance(error, PermissionError):
        found, advice = "a file that may not be read", "Check its permissions."
    elif isinstance(error, OSError):
        found, advice = f"an input error ({error.strerror})", "Check the disk or the connection, then try again."
    else:  # "embedded null byte"
        found, advice = f"the name {shown(path)}, which no file can have", "Check the path."
    return report.fail(None, expected="a readable file", found=found, advice=advice)


def _array(content: bytes | bytearray) -> Text:
    return np.frombuffer(bytearray(content), np.uint8)


def _unpacked(data: Text, packing: str, report: Diagnostics, progress: Progress) -> Text:
    """Decompress all members; lenient reading keeps the complete lines before any damage."""
    out = bytearray()

    def packed() -> Iterator[bytes]:
        size = PIECES[packing]
        for begin in range(0, len(data), size):
            yield text_bytes(data, begin, begin + size)
            progress(f"unpacking {report.source}", min(begin + size, len(data)), len(data))

    def repair() -> str:
        return f"the {out.count(10):,} whole lines before it were kept"

    for piece in unpack(packed(), packing, report, repair):
        if piece is None:
            del out[out.rfind(10) + 1 :]
            break
        out += piece
        check_unpacked(len(out), len(data), f"{packing} data", report)
    return np.frombuffer(out, np.uint8)


def unpack(
    packed: Iterable[bytes], packing: str, report: Diagnostics, repair: Callable[[], str]
) -> Iterator[bytes | None]:
    """Yield decompressed pieces of all members; damage is a fault, after which a lenient reader gets None.

    `packed` gives at most PIECES[packing] bytes at a time; `repair` says what is kept of damaged data.
    """
    try:
        yield from _members(packed, _MAKERS[packing])
        return
    except EOFError:
        trouble = f"{packing} data that stop in the middle"
    except (zlib.error, zstandard.ZstdError) as error:
        trouble = f"damaged {packing} data ({error})"
    report.fault(
        "truncated", line=None, expected=f"complete {packing} data", found=trouble,
        advice="Fetch or pack the file again.", repair=repair() if report.lenient else "",
    )  # fmt: skip
    yield None


def packing_of(head: bytes, report: Diagnostics) -> str | None:
    """Return how data that begin like this are packed; None for plain text. Other archives are refused."""
    for magic, what in _ARCHIVES.items():
        if re.match(magic, head, re.DOTALL):
            raise report.fail(
                None, expected="text, or text packed by gzip or zstandard", found=what, advice="Unpack it first."
            )
    packing = next((kind for magic, kind in _PACKED.items() if head.startswith(magic)), None)
    if packing is None and report.source.endswith((".gz", ".zst")) and head:
        report.say("not-packed", 1, "the name says packed, the content is not: read as it is")
    return packing


def _gzip_member() -> Any:
    return zlib.decompressobj(wbits=31)


def _zstandard_frame() -> Any:
    return zstandard.ZstdDecompressor().decompressobj()


_MAKERS: dict[str, Callable[[], Any]] = {"gzip": _gzip_member, "zstandard": _zstandard_frame}


def _members(packed: Iterable[bytes], make: Callable[[], _Unpacker]) -> Iterator[bytes]:
    """Yield decompressed pieces; EOFError if the data are cut short."""
    member, open_member = make(), True
    for given in packed:
        piece = given
        while piece:
            if not open_member:
                if not piece.strip(b"\0"):
                    break  # padding after the last member, as tape blocks have it
                member, open_member = make(), True
            yield member.decompress(piece)
            piece, open_member = member.unused_data, not member.eof
    if open_member:
        raise EOFError


def as_utf8(data: Text, report: Diagnostics) -> Text:
    """Drop a UTF-8 byte order mark; UTF-16 is a fault, which lenient reading converts."""
    head = data[:3].tobytes()
    if head == b"\xef\xbb\xbf":
        return data[3:]
    if head[:2] in _UTF_16:
        report.fault(
            "utf-16", line=1, expected="UTF-8 text", found="UTF-16 text",
            advice="Convert it: iconv -f UTF-16 -t UTF-8.", repair="converted",
        )  # fmt: skip
        try:
            return _array(data.tobytes().decode("utf-16").encode())
        except UnicodeDecodeError:
            raise report.fail(
                1, expected="UTF-8 text", found="broken UTF-16 text", advice="Convert it to UTF-8."
            ) from None
    return data


def decoded(source: TextSource, report: Diagnostics) -> str:
    """Return the text as a string."""
    data = source.text.tobytes()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        repaired, count, number = latin_1_lines(source.text)
        line = data[data.rfind(b"\n", 0, error.start) + 1 :].split(b"\n", 1)[0].rstrip(b"\r")
        not_utf_8(report, number, count, line)
        return repaired.tobytes().decode()


def not_utf_8(report: Diagnostics, number: int, count: int, line: bytes) -> None:
    """Report lines that are not UTF-8."""
    report.fault(
        "not-utf-8", line=number, count=count, expected="UTF-8 text", found=shown(line),
        advice="Convert it: iconv -f LATIN1 -t UTF-8.", repair="the line was read as Latin-1",
    )  # fmt: skip


def latin_1_lines(text: Text) -> tuple[Text, int, int]:
    """Return the text with every line that is not UTF-8 read as Latin-1, how many, and the first one's number."""
    lines = io.BytesIO(text.tobytes()).readlines()
    count = first = 0
    for i, line in enumerate(lines):
        try:
            line.decode()
        except UnicodeDecodeError:
            lines[i] = line.decode("latin-1").encode()
            count, first = count + 1, first or i + 1
    return _array(b"".join(lines)), count, first
