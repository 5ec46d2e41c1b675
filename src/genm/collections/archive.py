"""Taking named files out of a tar archive that comes from outside, without letting it touch the disk."""

import gzip
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from genm.errors import FormatError

_MAX_MEMBERS = 1000
_MAX_UNPACKED = 256 * 2**20


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
