"""Downloading a SMART collection from the University of Glasgow's pages, for a user who has a network.

A broken transfer goes on where it stopped. The named files are taken out of the tar archive without letting it
touch the disk. What comes out is parsed, and the parsed records are compared with a known hash, before anything
is put in its place.
"""

import gzip
import http.client
import os
import tarfile
import tempfile
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
"""The distributor's pages. Plain HTTP does no harm: the hash decides whether the content is used."""

_MAX_DOWNLOAD = 64 * 2**20
_CHUNK = 64 * 2**10
_ATTEMPTS = 4


def unpack_members(archive: Path, wanted: Sequence[Sequence[str]]) -> list[bytes]:
    """Return, for each list of possible names, the text of the member that has one of them, in Unix lines.

    Members are found by their last name, in any letter case. An archive that holds a path out of its folder, a
    link or a device, or that grows beyond all measure, is refused as a whole.
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
                if not _is_honest(member):
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


def _is_honest(member: tarfile.TarInfo) -> bool:
    posix, windows = PurePosixPath(member.name), PureWindowsPath(member.name)
    inside = not (posix.is_absolute() or windows.is_absolute() or windows.drive)
    inside = inside and ".." not in (*posix.parts, *windows.parts)
    return inside and (member.isreg() or member.isdir())


def _refusal(archive: Path, found: str) -> FormatError:
    advice = "Nothing was taken from it; fetch it again or from elsewhere."
    return FormatError(str(archive), None, "an archive of a collection's files", found, advice)


def _unix_lines(raw: bytes) -> bytes:
    text = raw.replace(b"\r\n", b"\n").rstrip(b"\x1a")
    return text if text.endswith(b"\n") else text + b"\n"


@dataclass(frozen=True, slots=True)
class _Transfer:
    url: str
    part: Path
    """The bytes that have arrived; it stays when a transfer breaks, and the next one goes on from there."""
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

    Nothing is downloaded if the collection is there and whole. `sha256` replaces the known hash over the parsed
    records, for another edition of the files; `timeout` is the longest silence of the server, in seconds.
    """
    spec = smart_spec(name)
    if not base_url.startswith(("http://", "https://")):
        raise InputError(f"base_url: expected an address that begins with http:// or https://; found {base_url!r}")
    wanted = sha256 or spec.sha256
    folder = Path(destination).expanduser() / spec.name
    if _is_whole(spec, folder, wanted):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: expected a folder to write to; found {error.strerror}") from None
    url = f"{base_url.rstrip('/')}/{spec.archive}"
    part = folder / f"{Path(spec.archive).name}.part"
    transfer = _Transfer(url, part, f"downloading {spec.name}", progress, timeout)
    resumed = part.exists()
    try:
        _download(transfer)
        _install(spec, part, folder, url, wanted)
    except FormatError:
        if not resumed:
            raise
        _download(transfer)  # from the start: the old beginning may have been of another edition
        _install(spec, part, folder, url, wanted)
    return folder


def _is_whole(spec: SmartSpec, folder: Path, wanted: str) -> bool:
    files = [folder / names[0] for names in (spec.docs_files, spec.queries_files, spec.judgments_files)]
    if not all(path.is_file() for path in files):
        return False
    try:
        return read_smart(spec, *files).sha256 == wanted
    except FormatError:
        return False


def _download(transfer: _Transfer) -> None:
    """Bring the whole archive into the part file; each attempt goes on where the last one stopped."""
    error: Exception | None = None
    for _ in range(_ATTEMPTS):
        try:
            if _receive(transfer):
                return
            error = None
        except urllib.error.HTTPError as refused:
            if refused.code == 416:  # the part is not a beginning of what is there now
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
                break  # nothing arrived: no network, no such host, no server
    reason = getattr(error, "reason", error) if error else "the transfer ended early, again and again"
    kept = _size(transfer.part)
    so_far = f" {kept} bytes are kept, the same command goes on from there." if kept else ""
    raise FetchError(f"{transfer.url}: cannot be downloaded ({reason}).{so_far} {_by_hand(transfer)}")


def _receive(transfer: _Transfer) -> bool:
    """Receive what is missing and tell whether the file is now complete."""
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
            have = 0  # the server sends the whole file, whatever was asked for
        elif not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            transfer.part.unlink()  # another piece than the one asked for: begin anew
            return False
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length and length.isdigit() else 0
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
    """Unpack the three files, check them and move them into their places; the archive goes in any case."""
    wanted_files = (spec.docs_files, spec.queries_files, spec.judgments_files)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unpacking-") as name:
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
        f"Check the network, or fetch the archive on another machine and unpack it into {transfer.part.parent}: "
        "the files are read from there under the names they have."
    )
