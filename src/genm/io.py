"""Write files atomically: a file appears complete or not at all. Pipes, devices and links are kept."""

import gzip
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from genm.errors import InputError

if sys.platform != "win32":
    import fcntl

Destination = str | os.PathLike[str] | IO[bytes]


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` on success, so that the file appears complete or not at all.

    An existing file is replaced and its permissions are kept; a symbolic link is followed. A pipe or a device is
    written to, never replaced.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        with place.open("wb") as file:
            yield file
        return
    part = place.with_name(f".{place.name[:50]}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
        if place.exists():
            part.chmod(stat.S_IMODE(place.stat().st_mode))
        part.replace(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def opened(destination: Destination) -> Iterator[IO[bytes]]:
    """Open for writing: standard output (`-`), an open file, or a path, which is replaced atomically."""
    if not isinstance(destination, str | os.PathLike):
        yield destination
        return
    if os.fspath(destination) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
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


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder, made if need be; called before long work, so that an error comes first."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot make this folder ({error.strerror}). Choose another.") from None
    return folder


@contextmanager
def locked(path: str | os.PathLike[str], *, waiting: Callable[[], None]) -> Iterator[None]:
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


def _is_open_at(path: str | os.PathLike[str], handle: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def write_text(path: str | os.PathLike[str], text: str) -> None:
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
