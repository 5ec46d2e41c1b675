"""Write files atomically: a file appears complete or not at all. Pipes, devices and links are kept.

`check_outputs` is the one place that keeps a command from writing over what it reads.
"""

import gzip
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedWriter, RawIOBase
from pathlib import Path
from typing import IO, BinaryIO, cast

from genm.errors import InputError

if sys.platform != "win32":
    import fcntl

PathLike = str | os.PathLike[str]
Destination = PathLike | IO[bytes]

_STANDARD = "-"
_OURS, _HELD, _NO_LOCKS = "ours", "held by another process", "not supported here"
_parts: set[Path] = set()
"""The temporary files that this process writes."""
_PART_NAME = re.compile(r"\..+\.[0-9]+-[0-9a-f]{8}\.part")


def check_outputs(outputs: Iterable[PathLike | None], inputs: Iterable[PathLike | None]) -> None:
    """Refuse an output that is the same file as an input, under whatever name: a link, a hard link, a redirection.

    `-` among the inputs is standard input, among the outputs standard output. None stands for an option that was
    not given.
    """
    read = [(name, found) for name in inputs if name is not None and (found := _regular_file(name, 0))]
    for output in outputs:
        written = None if output is None else _regular_file(output, 1)
        same = [name for name, found in read if written is not None and os.path.samestat(written, found)]
        if same:
            which = "standard output" if output == _STANDARD else str(output)
            other = "standard input" if same[0] == _STANDARD else str(same[0])
            raise InputError(
                f"{which}: expected a file that is not read here; found the same file as {other}, which would be "
                "lost. Name another file to write."
            )


def _regular_file(path: PathLike, handle: int) -> os.stat_result | None:
    """Return the status of a regular file; `-` is the open file `handle`. Pipes and devices lose nothing."""
    try:
        status = os.fstat(handle) if path == _STANDARD else os.stat(path)
    except (OSError, ValueError):
        return None
    return status if stat.S_ISREG(status.st_mode) else None


@contextmanager
def whole_file(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` on success, so that the file appears complete or not at all.

    An existing file is replaced and its permissions are kept; a symbolic link is followed. A pipe or a device is
    written to, never replaced. Temporary files that killed processes left in the folder are removed.
    """
    if "\0" in os.fspath(path):
        raise InputError(f"{os.fspath(path)!r}: expected the name of a file; found a NUL in it. Check the path.")
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        with place.open("wb") as file:
            yield file
        return
    _remove_abandoned_parts(place.parent)
    with ExitStack() as stack:
        part, opened_part = _new_part(place, stack)
        try:
            with opened_part as file:
                yield file
            if place.exists():
                part.chmod(stat.S_IMODE(place.stat().st_mode))
            part.replace(place)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        finally:
            _parts.discard(part)


def remove_parts() -> None:
    """Remove the temporary files of this process, which is about to end.

    A signal may have come before the block that removes a file was entered, or when it was left.
    """
    own = f".{os.getpid()}-"  # a process that was forked knows those of the one that made it
    for part in [part for part in _parts if own in part.name]:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _new_part(place: Path, stack: ExitStack) -> tuple[Path, IO[bytes]]:
    """Open a new temporary file and lock it until the stack ends, which shows that its writer is alive.

    A killed process loses its locks. A second handle holds the lock, because the file is closed before it is
    renamed: some file systems report a full disk only then.
    """
    while True:
        # Every try has its own name: a writer that takes the earlier file for an abandoned one removes it by name.
        part = place.with_name(f".{place.name[:50]}.{os.getpid()}-{secrets.token_hex(4)}.part")
        _parts.add(part)
        try:
            file = part.open("xb")
        except OSError:  # a file of that name is not ours
            _parts.discard(part)
            raise
        if _lock(file) != _HELD and _is_open_at(part, file.fileno()):
            if sys.platform != "win32":
                stack.callback(os.close, os.dup(file.fileno()))
            return part, file
        # Another writer took the new file for an abandoned one before it was locked.
        file.close()
        part.unlink(missing_ok=True)
        _parts.discard(part)


def _remove_abandoned_parts(folder: Path) -> None:
    """Remove the temporary files whose writer is dead: nobody holds their lock.

    The process id in the name would not do, because several machines may share the folder. Where there are no
    locks, the files stay.
    """
    with suppress(OSError):
        for entry in os.scandir(folder):
            if _PART_NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError), open(entry, "r+b") as file:
                    if _lock(file) == _OURS:
                        os.unlink(entry)


def _lock(file: IO[bytes]) -> str:
    """Lock an open file without waiting, and return who holds the lock; it ends with the file or the process."""
    if sys.platform == "win32":
        return _NO_LOCKS
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _HELD
    except OSError:
        return _NO_LOCKS
    return _OURS


@contextmanager
def opened(destination: Destination) -> Iterator[IO[bytes]]:
    """Open for writing: standard output (`-`), an open file, or a path, which is replaced atomically."""
    if not isinstance(destination, str | os.PathLike):
        yield destination
        return
    if os.fspath(destination) == _STANDARD:
        yield from _whole_writes(sys.stdout.buffer)
        return
    path = Path(destination)
    try:
        with whole_file(path) as raw, _packed(raw, path) as file:
            yield file
    except OSError as error:
        raise InputError(
            f"{path}: expected a file that can be written; found: {error.strerror or error}. "
            "Name a file in a folder that exists and has space."
        ) from error


def _whole_writes(stream: BinaryIO) -> Iterator[IO[bytes]]:
    """Yield a stream that writes all or fails.

    Where PYTHONUNBUFFERED is set, standard output may write a part of what it is given and say so in its result
    only: when the reader of a pipe goes away, or above 2 GB.
    """
    if not isinstance(stream, RawIOBase):
        yield stream
        stream.flush()
        return
    whole = BufferedWriter(stream)
    try:
        yield whole
        whole.flush()
    finally:
        whole.detach()


def make_folder(path: PathLike) -> Path:
    """Return the folder, made if need be; called before long work, so that an error comes first."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot make this folder ({error.strerror}). Choose another.") from None
    return folder


@contextmanager
def locked(path: PathLike, *, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock on a file that will be replaced; `waiting` is called if another process holds it.

    A writer replaces the file instead of changing it, so a process that has waited opens the path again. Without
    a file, or without locks (Windows, some file systems), the work is done unlocked.
    """
    while sys.platform != "win32" and Path(path).is_file():
        with open(path, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError:
                break
            if _is_open_at(path, file.fileno()):
                yield
                return
    yield


def _is_open_at(path: PathLike, handle: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def write_text(path: PathLike, text: str) -> None:
    """Write a text file atomically; names ending in .gz or .zst are compressed."""
    with opened(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


@contextmanager
def _packed(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if path.suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:  # the same run, the same bytes
            yield cast("IO[bytes]", file)
    elif path.suffix in (".zst", ".zstd"):
        import zstandard

        with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as file:
            yield file
    else:
        yield raw
