"""Write files atomically: a file appears complete or not at all. Pipes, devices and links are kept."""

import gzip
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from genm.errors import InputError

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
