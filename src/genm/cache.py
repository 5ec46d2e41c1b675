"""Expensive results are cached on disk, keyed by content.

An entry is one zip file that holds arrays as `.npy` (never pickled) or plain bytes, and `meta.json`. It is written
under a temporary name and renamed in one step. When it is read, the key and the digest of its content are checked.
A lock makes a second process wait for the first instead of building the same entry again.
"""

import contextlib
import json
import os
import struct
import tempfile
import time
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from filelock import FileLock
from numpy.typing import NDArray

from genm.errors import GenmWarning, InputError

Arrays = dict[str, NDArray[Any]]

_LAYOUT = "v2"
"""The folder of this layout's entries. A changed layout gets another folder."""
_LAYOUTS = ("v1", "v2")
"""The folders of all layouts so far, which `clear_cache` empties."""
_PAYLOAD = "payload.bin"
_PLAIN = (bool, int, float, str, bytes)
"""In this order, because a bool is also an int."""
_BROKEN = (
    *(OSError, ValueError, EOFError, KeyError, TypeError, RuntimeError, SyntaxError, MemoryError, OverflowError),
    *(InputError, zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
)
"""What zipfile, json and numpy raise for a file that is cut short, overwritten or not ours."""


@dataclass(frozen=True, slots=True)
class CacheSize:
    """How much the cache holds, or how much was deleted."""

    entries: int
    bytes: int


def cache_folder() -> Path:
    """Return the folder of the cache: GENM_CACHE if it is set, else `genm` in the user's cache folder."""
    chosen = os.environ.get("GENM_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("genm", appauthor=False, opinion=False)


def content_key(*parts: object) -> str:
    """Return a hash of the parts that depends on their types, lengths and order.

    Parts are None, booleans, integers, floats, strings, bytes, arrays without Python objects, and sequences,
    string-keyed mappings and sets of those. 1, 1.0, True and "1" all differ.
    """
    digest = sha256()
    for chunk in _chunks(parts):
        digest.update(chunk)
    return digest.hexdigest()


def cached(kind: str, key_parts: Sequence[object], build: Callable[[], Mapping[str, NDArray[Any]]]) -> Arrays:
    """Return the arrays stored under `kind` and the hash of `key_parts`; build and store them if they are missing.

    `kind` names a sub-folder, such as "scores". A broken entry is built again, and a cache that cannot be written
    does not stop the work; both give a GenmWarning.
    """

    def build_members() -> dict[str, NDArray[Any] | bytes]:
        return {_member(name): np.asarray(array) for name, array in build().items()}

    members = _fetch(kind, key_parts, build_members)
    return {name.removesuffix(".npy"): m for name, m in members.items() if not isinstance(m, bytes)}


def cached_bytes(kind: str, key_parts: Sequence[object], build: Callable[[], bytes]) -> bytes:
    """Return the bytes stored under `kind` and the hash of `key_parts`, as `cached` does for arrays."""
    members = _fetch(kind, (*key_parts, "bytes"), lambda: {_PAYLOAD: build()})
    payload = members[_PAYLOAD]
    assert isinstance(payload, bytes)
    return payload


def cache_size() -> CacheSize:
    """Return the number of entries in the cache and their bytes on disk."""
    sizes = [path.stat().st_size for path in _entries()]
    return CacheSize(len(sizes), sum(sizes))


def clear_cache() -> CacheSize:
    """Delete all entries and the temporary files of interrupted writers, and return the size of what was deleted.

    Other files stay.
    """
    size = cache_size()
    for root in (cache_folder() / layout for layout in _LAYOUTS):
        for pattern in ("*/*.zip", "*/*.lock", "*/*.part"):
            for path in root.glob(pattern):
                path.unlink(missing_ok=True)
        for folder in (*root.glob("*"), root):
            with contextlib.suppress(OSError):  # not empty, or never made
                folder.rmdir()
    return size


def _entries() -> list[Path]:
    return sorted(path for layout in _LAYOUTS for path in (cache_folder() / layout).glob("*/*.zip"))


def _chunks(part: object) -> Iterator[bytes]:
    """Yield an unambiguous encoding of the part: a tag, a length, the content."""
    if part is None or isinstance(part, _PLAIN):
        tag = next((t.__name__ for t in _PLAIN if isinstance(part, t)), "none")
        raw = part if isinstance(part, bytes) else _text(part).encode("utf-8", "surrogatepass")
        yield f"{tag}:{len(raw)}:".encode()
        yield raw
    elif isinstance(part, np.ndarray | np.generic):
        array = np.asarray(part)
        if array.dtype.hasobject:
            raise InputError("content_key: expected an array of numbers or fixed-width text; found Python objects")
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
        yield f"array:{np.lib.format.dtype_to_descr(array.dtype)}:{array.shape}:".encode()
        yield array.tobytes()
    elif isinstance(part, Mapping):
        yield f"mapping:{len(part)}:".encode()
        for name in sorted(part):
            yield from _chunks(name)
            yield from _chunks(part[name])
    elif isinstance(part, frozenset | set):
        yield f"set:{len(part)}:".encode()
        for key in sorted(content_key(element) for element in part):
            yield key.encode()
    elif isinstance(part, list | tuple):
        yield f"sequence:{len(part)}:".encode()
        for element in part:
            yield from _chunks(element)
    else:
        raise InputError(
            f"content_key: expected numbers, text, arrays or sequences of them; found {type(part).__name__}. "
            "Pass the values that decide the result, not the object."
        )


def _text(part: bool | float | str | None) -> str:  # noqa: FBT001 (a value to hash, not a switch)
    return part.hex() if isinstance(part, float) else str(part)


def _member(name: str) -> str:
    if not name or "/" in name or "\\" in name:
        raise InputError(f"cached: expected a plain name for an array; found {name!r}")
    return f"{name}.npy"


def _fetch(
    kind: str, key_parts: Sequence[object], build: Callable[[], dict[str, NDArray[Any] | bytes]]
) -> dict[str, NDArray[Any] | bytes]:
    if not kind.replace("-", "").replace("_", "").isalnum():
        raise InputError(f"cached: expected a kind of letters, digits, - and _; found {kind!r}")
    key = content_key(*key_parts)
    path = cache_folder() / _LAYOUT / kind / f"{key}.zip"
    expected = {"kind": kind, "key": key}
    found = _read(path, expected)
    if found is not None:
        return found
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _warn_unwritable(path, error)
        return build()
    with _locked(path.with_suffix(".lock")):
        found = _read(path, expected, report=True)
        if found is None:
            started = time.perf_counter()
            found = build()
            meta = {**expected, "build_seconds": round(time.perf_counter() - started, 3)}
            try:
                _write(path, found, meta)
            except OSError as error:
                _warn_unwritable(path, error)
    return found


def _read(
    path: Path, expected: Mapping[str, str], *, report: bool = False
) -> dict[str, NDArray[Any] | bytes] | None:
    """Return the members of an entry, or None if there is none that is whole and belongs to this key."""
    if not path.exists():
        return None
    try:
        with zipfile.ZipFile(path) as entry:
            if any(info.compress_type != zipfile.ZIP_STORED for info in entry.infolist()):
                raise ValueError("it is compressed, and genm writes no such entry")  # it could unpack to gigabytes
            meta = json.loads(entry.read("meta.json"))
            members = {name: _read_member(entry, name) for name in meta["members"]}
        if {name: meta[name] for name in expected} != expected:
            raise ValueError("it belongs to another key")
        if meta["digest"] != content_key(members):
            raise ValueError("its content has changed")
        return members
    except _BROKEN as error:
        if report:  # one warning, by the process that builds it again
            warnings.warn(
                f"{path}: the cache entry cannot be read ({error}); it is built again.",
                GenmWarning,
                stacklevel=4,
            )
        return None


def _read_member(entry: zipfile.ZipFile, name: str) -> NDArray[Any] | bytes:
    if not name.endswith(".npy"):
        return entry.read(name)
    with entry.open(name) as member:
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        if member.read(1):  # zipfile compares the checksum only at the end of the member
            raise ValueError(f"{name} is longer than its header says")
    return array


def _write(path: Path, members: Mapping[str, NDArray[Any] | bytes], meta: Mapping[str, object]) -> None:
    """Write an entry under a temporary name and rename it in one step.

    The caller holds the entry's lock, so other temporary files of this entry are those of killed processes.
    """
    for abandoned in path.parent.glob(f"{path.stem[:16]}*.part"):
        abandoned.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem[:16], suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as entry:
            for member, content in members.items():
                with entry.open(member, "w", force_zip64=True) as target:
                    if isinstance(content, bytes):
                        target.write(content)
                    else:
                        np.lib.format.write_array(target, content, allow_pickle=False)
            digest = content_key(dict(members))
            entry.writestr("meta.json", json.dumps({**meta, "members": list(members), "digest": digest}))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of an entry; the system releases it if the process dies.

    Where the file system has no locks, or the lock file cannot be written, the work goes on without one: at worst,
    an entry is built twice.
    """
    lock = FileLock(path)
    with contextlib.suppress(OSError, NotImplementedError):
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _warn_unwritable(path: Path, error: OSError) -> None:
    warnings.warn(
        f"{path.parent}: the cache cannot be written ({error.strerror or error}); "
        "the result is used but not kept. Set GENM_CACHE to a folder that you can write to.",
        GenmWarning,
        stacklevel=4,
    )
