import io
import tarfile

import pytest

from genm.collections import archive
from genm.errors import FormatError

WANTED = (("A.ALL", "a.all.old"), ("A.REL",))


def make(path, members, *, mode="w:gz"):
    """Write a tar of {name: bytes} or of ready TarInfo objects."""
    with tarfile.open(path, mode) as tar:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                tar.addfile(content)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_members_are_found_by_their_last_name_and_get_unix_lines(tmp_path):
    path = make(tmp_path / "x", {"./sub/a.all": b"one\r\ntwo\x1a", "A.REL": b"1 2\n", "A.REL.OLD": b"no\n"})
    assert archive.unpack_members(path, WANTED) == [b"one\ntwo\n", b"1 2\n"]


def test_the_first_of_the_possible_names_wins(tmp_path):
    path = make(tmp_path / "x", {"a.all.old": b"old\n", "a.all": b"new\n", "a.rel": b"r\n"})
    assert archive.unpack_members(path, WANTED)[0] == b"new\n"
    path = make(tmp_path / "y", {"a.all.old": b"old\n", "a.rel": b"r\n"})
    assert archive.unpack_members(path, WANTED)[0] == b"old\n"


def test_missing_member_is_named(tmp_path):
    with pytest.raises(FormatError, match=r"none with a member A\.ALL or a\.all\.old"):
        archive.unpack_members(make(tmp_path / "x", {"A.REL": b""}), WANTED)


@pytest.mark.parametrize(
    "bad",
    [
        {"../A.ALL": b"x"},
        {"sub/../../A.ALL": b"x"},
        {"/etc/A.ALL": b"x"},
        {"..\\A.ALL": b"x"},
        {"C:A.ALL": b"x"},
        {"A.ALL": special("A.ALL", tarfile.SYMTYPE, "/etc/passwd")},
        {"A.ALL": special("A.ALL", tarfile.LNKTYPE, "/etc/passwd")},
        {"A.ALL": special("A.ALL", tarfile.CHRTYPE)},
        {"A.ALL": special("A.ALL", tarfile.FIFOTYPE)},
    ],
    ids=["up", "up later", "absolute", "backslash", "drive", "symlink", "hard link", "device", "pipe"],
)
def test_a_dishonest_archive_is_refused_as_a_whole(tmp_path, bad):
    path = make(tmp_path / "x", {"a.all": b"good\n", "a.rel": b"good\n", **bad})
    with pytest.raises(FormatError, match="a link or a path out of its folder"):
        archive.unpack_members(path, WANTED)


def test_an_archive_that_announces_too_much_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = make(tmp_path / "x", {"huge": bytes(200_000), "a.all": b"", "a.rel": b""})
    archive.unpack_members(path, WANTED)
    monkeypatch.setattr(archive, "_MAX_UNPACKED", 100_000)
    with pytest.raises(FormatError, match="1 members of 200000 bytes or more"):
        archive.unpack_members(path, WANTED)
    monkeypatch.setattr(archive, "_MAX_UNPACKED", 10**9)
    monkeypatch.setattr(archive, "_MAX_MEMBERS", 2)
    with pytest.raises(FormatError, match="3 members"):
        archive.unpack_members(path, WANTED)


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.95])
def test_a_cut_archive_is_refused(tmp_path, keep):
    rows = "".join(f"row {i * 7919 % 10007}\n" for i in range(5000)).encode()
    raw = make(tmp_path / "x", {"a.all": rows, "a.rel": rows}).read_bytes()
    path = tmp_path / "cut"
    path.write_bytes(raw[: int(keep * len(raw)) if keep < 1 else keep])
    with pytest.raises(FormatError, match="broken or cut"):
        archive.unpack_members(path, WANTED)


def test_what_is_no_archive_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_text("<html>Not here</html>")
    with pytest.raises(FormatError, match="broken or cut"):
        archive.unpack_members(path, WANTED)
