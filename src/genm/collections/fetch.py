"""Download a SMART collection from the University of Glasgow's site.

A broken transfer resumes where it stopped. Only the expected files are read from the tar archive, in memory. They
are parsed, and the hash of the parsed records must be the known one before they are moved into place.

CONTRIBUTING.md says why this is not left to a library.
"""

import gzip
import http.client
import os
import re
import shutil
import tarfile
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from genm.collections.smart import SmartSpec, read_smart, smart_spec
from genm.errors import FetchError, FormatError, InputError
from genm.progress import Progress, silent

_MAX_MEMBERS = 1000
_MAX_UNPACKED = 256 * 2**20

BASE_URL = "http://ir.dcs.gla.ac.uk/resources/test_collections/"
"""The distributor's site. Plain HTTP is safe: the hash decides whether the content is used."""

_MAX_DOWNLOAD = 64 * 2**20
_CHUNK = 64 * 2**10
_ATTEMPTS = 4
_STAGING, _ABANDONED_AFTER = ".unpacking-", 3600.0


def unpack_members(archive: Path, wanted: Sequence[Sequence[str]]) -> list[bytes]:
    """Return, for each list of possible names, the text of the member that has one of them, with Unix line ends.

    Members are found by the last part of their path, in any letter case. An archive is refused as a whole if it
    holds a path out of its folder, a link or a device, too many members or too many bytes.
    """
    found: dict[str, bytes] = {}
    names = {name.lower() for alternatives in wanted for name in alternatives}
    total = 0
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for count, member in enumerate(tar):
                total += member.size
                if count >= _MAX_MEMBERS or total > _MAX_UNPACKED:
                    raise _refusal(archive, f"{count + 1} members of {total} bytes or more")
                if not _is_safe(member):
                    raise _refusal(archive, f"the member {member.name!r}, a link or a path out of its folder")
                name = PurePosixPath(member.name).name.lower()
                if member.isreg() and name in names:
                    file = tar.extractfile(member)
                    assert file is not None
                    found.setdefault(name, _unix_lines(file.read()))
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _refusal(archive, f"one that is broken or cut ({error})") from None
    texts = []
    for alternatives in wanted:
        text = next((found[name.lower()] for name in alternatives if name.lower() in found), None)
        if text is None:
            raise _refusal(archive, f"none with a member {' or '.join(alternatives)}")
        texts.append(text)
    return texts


def _is_safe(member: tarfile.TarInfo) -> bool:
    posix, windows = PurePosixPath(member.name), PureWindowsPath(member.name)
    inside = not (posix.is_absolute() or windows.is_absolute() or windows.drive)
    inside = inside and ".." not in (*posix.parts, *windows.parts)
    return inside and (member.isreg() or member.isdir())


def _refusal(archive: Path, found: str) -> FormatError:
    advice = "Nothing was taken from it. Download it again, or from elsewhere."
    return FormatError(str(archive), None, "an archive of a collection's files", found, advice)


def _unix_lines(raw: bytes) -> bytes:
    text = raw.replace(b"\r\n", b"\n").rstrip(b"\x1a")
    return text if text.endswith(b"\n") else text + b"\n"


@dataclass(frozen=True, slots=True)
class _Transfer:
    url: str
    part: Path
    """The bytes received so far. The file stays when a transfer breaks, and the next one resumes from it."""
    task: str
    progress: Progress
    timeout: float


def get_collection(
    name: str,
    destination: str | os.PathLike[str],
    *,
    base_url: str = BASE_URL,
    sha256: str | None = None,
    timeout: float = 30.0,
    progress: Progress = silent,
) -> Path:
    """Download MED, CRAN, CISI or CACM into `destination`/name and return that folder.

    Nothing is downloaded if the collection is there and complete. `sha256` replaces the known hash of the parsed
    records, for another edition of the files. `timeout` limits each wait for the server, in seconds.
    """
    spec = smart_spec(name)
    if not base_url.startswith(("http://", "https://")):
        raise InputError(f"base_url: expected an address that begins with http:// or https://; found {base_url!r}")
    wanted = sha256 or spec.sha256
    folder = Path(destination).expanduser() / spec.name
    if _is_complete(spec, folder, wanted):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: expected a folder to write to; found {error.strerror}") from None
    for abandoned in folder.glob(f"{_STAGING}*"):  # of a killed process; a living one is done within minutes
        if time.time() - abandoned.stat().st_mtime > _ABANDONED_AFTER:
            shutil.rmtree(abandoned, ignore_errors=True)
    url = f"{base_url.rstrip('/')}/{spec.archive}"
    part = folder / f"{Path(spec.archive).name}.part"
    transfer = _Transfer(url, part, f"downloading {spec.name}", progress, timeout)
    if part.is_symlink():
        part.unlink()  # never write through a link that someone else may have made
    resumed = part.exists()
    try:
        _download(transfer)
        _install(spec, part, folder, url, wanted)
    except FormatError:
        if not resumed:
            raise
        _download(transfer)  # from the start: the old part may be of another edition
        _install(spec, part, folder, url, wanted)
    return folder


def _is_complete(spec: SmartSpec, folder: Path, wanted: str) -> bool:
    files = [folder / names[0] for names in (spec.docs_files, spec.queries_files, spec.judgments_files)]
    if not all(path.is_file() for path in files):
        return False
    try:
        return read_smart(spec, *files).sha256 == wanted
    except FormatError:
        return False


def _download(transfer: _Transfer) -> None:
    """Download the archive into the part file; each attempt resumes where the last one stopped."""
    error: Exception | None = None
    for _ in range(_ATTEMPTS):
        try:
            if _receive(transfer):
                return
            error = None
        except urllib.error.HTTPError as refused:
            if refused.code == 416:  # the part file does not match what the server has now
                refused.close()
                transfer.part.unlink()
                continue
            refused.close()
            raise FetchError(
                f"{transfer.url}: expected the archive; the server answered {refused.code} {refused.reason}. "
                + _by_hand(transfer)
            ) from None
        except (OSError, http.client.HTTPException) as broken:
            error = broken
            if not transfer.part.exists():
                break  # nothing was received: no network, no such host, no server
    reason = getattr(error, "reason", error) if error else f"the transfer ended early {_ATTEMPTS} times"
    kept = _size(transfer.part)
    so_far = f" {kept} bytes are kept; the same command resumes from there." if kept else ""
    raise FetchError(f"{transfer.url}: cannot be downloaded ({reason}).{so_far} {_by_hand(transfer)}")


def _receive(transfer: _Transfer) -> bool:
    """Receive the missing bytes and return whether the file is complete."""
    have = _size(transfer.part)
    headers = {"User-Agent": "genm"} | ({"Range": f"bytes={have}-"} if have else {})
    request = urllib.request.Request(transfer.url, headers=headers)  # noqa: S310 (http and https only, checked)
    try:
        answer = urllib.request.urlopen(request, timeout=transfer.timeout)  # noqa: S310
    except urllib.error.HTTPError as refused:
        if refused.code == 416 and have and refused.headers.get("Content-Range") == f"bytes */{have}":
            refused.close()
            return True
        raise
    with answer:
        if answer.status != 206:
            have = 0  # the server ignores the range and sends the whole file
        elif not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            transfer.part.unlink()  # not the requested range: start again
            return False
        length = answer.headers.get("Content-Length", "")
        total = have + int(length) if re.fullmatch("[0-9]{1,18}", length) else 0
        if total > _MAX_DOWNLOAD:
            raise FetchError(f"{transfer.url}: expected a few megabytes; the server announces {total} bytes")
        with transfer.part.open("ab" if have else "wb") as file:
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                have += len(chunk)
                if have > _MAX_DOWNLOAD:
                    file.truncate(0)
                    raise FetchError(f"{transfer.url}: expected a few megabytes; found more than {_MAX_DOWNLOAD}")
                transfer.progress(transfer.task, have, total)
    if not total:
        transfer.progress(transfer.task, have, have)
    return not total or have == total


def _install(spec: SmartSpec, archive: Path, folder: Path, url: str, wanted: str) -> None:
    """Unpack the three files, check them and move them into place; the archive is deleted in any case."""
    wanted_files = (spec.docs_files, spec.queries_files, spec.judgments_files)
    with tempfile.TemporaryDirectory(dir=folder, prefix=_STAGING) as name:
        staged = [Path(name) / names[0] for names in wanted_files]
        try:
            for path, text in zip(staged, unpack_members(archive, wanted_files), strict=True):
                path.write_bytes(text)
            found = read_smart(spec, *staged).sha256
        except FormatError as error:
            raise FormatError(url, error.line, error.expected, error.found, error.advice) from error
        finally:
            archive.unlink()
        if found != wanted:
            raise FormatError(
                url,
                None,
                f"the known copy of {spec.name}, whose records have the hash {wanted}",
                f"the hash {found}",
                "Nothing was kept. If you trust this edition, pass its hash as sha256.",
            )
        for path in staged:
            path.replace(folder / path.name)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _by_hand(transfer: _Transfer) -> str:
    return (
        f"Check the network, or download the archive on another machine and unpack it into {transfer.part.parent}: "
        "the files are read from there under their own names."
    )
