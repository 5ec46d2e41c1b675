"""The downloader, against a server of our own on this machine; the distributor's address is never used here."""

import io
import os
import re
import socket
import tarfile
import threading
import time
import urllib.error
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from genm.collections import fetch
from genm.collections.smart import SMART, load_smart, read_smart
from genm.errors import FetchError, FormatError, InputError

FILES = {
    "MED.ALL": b".I 1\r\n.W\r\nred fox\r\n.I 2\r\n.W\r\nblue sea\r\n",
    "MED.QRY": b".I 1\n.W\nfox\n",
    "MED.REL": b"1 0 1 1\n",
}

WANTED = (("A.ALL", "a.all.old"), ("A.REL",))


def tar(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@dataclass
class Site:
    """What the server sends, how it misbehaves, and the requests it got."""

    content: bytes = b""
    status: int = 200
    cut_after: list[int] = field(default_factory=list)
    """Bytes sent before each of the first answers breaks off."""
    ranges: bool = True
    chunked: bool = False
    length: str | None = None
    """The announced length, where it is not the true one."""
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def site(monkeypatch):
    state = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            wanted = self.headers.get("Range")
            state.requests.append((self.path, wanted))
            self.close_connection = True
            if state.status != 200:
                self.send_error(state.status)
                return
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted and state.ranges else 0
            if start and start >= len(state.content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(state.content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = state.content[start:]
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(state.content) - 1}/{len(state.content)}")
            if state.chunked:
                self.send_header("Connection", "close")
            else:
                self.send_header("Content-Length", state.length or str(len(body)))
            self.end_headers()
            if state.cut_after:
                body = body[: state.cut_after.pop(0)]
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}/collections/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def known(tmp_path):
    """The hash of the small collection's records."""
    folder = tmp_path / "known"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return read_smart(SMART["med"], *(folder / name for name in FILES)).sha256


def left_behind(folder):
    return sorted(p.name for p in folder.rglob("*") if p.is_file())


def test_files_are_checked_and_put_in_place(site, tmp_path, known):
    site.content = tar({"README": b"hello", **{name.lower(): text for name, text in FILES.items()}})
    steps = []
    folder = fetch.get_collection(
        "MED", tmp_path / "data", base_url=site.url, sha256=known, progress=lambda *step: steps.append(step)
    )
    assert site.requests == [("/collections/medl/med.tar.gz", None)]
    assert folder == tmp_path / "data" / "med"
    assert left_behind(tmp_path / "data") == ["MED.ALL", "MED.QRY", "MED.REL"]
    assert b"\r" not in (folder / "MED.ALL").read_bytes()
    assert load_smart("med", data=tmp_path / "data").doc_texts == ("red fox", "blue sea")
    assert steps[-1] == ("downloading med", len(site.content), len(site.content))


def test_a_whole_collection_is_not_fetched_again(site, tmp_path, known):
    site.content = tar(FILES)
    for _ in range(2):
        fetch.get_collection("med", tmp_path / "data", base_url=site.url, sha256=known)
    assert len(site.requests) == 1
    (tmp_path / "data" / "med" / "MED.REL").write_text("1 0 2 1\n")
    fetch.get_collection("med", tmp_path / "data", base_url=site.url, sha256=known)
    assert len(site.requests) == 2
    assert (tmp_path / "data" / "med" / "MED.REL").read_text() == "1 0 1 1\n"


def test_a_server_that_does_not_tell_the_length(site, tmp_path, known):
    site.content, site.chunked = tar(FILES), True
    steps = []
    fetch.get_collection(
        "med", tmp_path / "data", base_url=site.url, sha256=known, progress=lambda *s: steps.append(s)
    )
    assert steps[0][2] == 0
    assert steps[-1][1:] == (len(site.content), len(site.content))


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("cran", ("cran.all.1400", "cran.qry", "cranqrel")),
        ("cacm", ("cacm.all", "query.text", "qrels.text")),
    ],
)
def test_the_distributors_names_become_ours(site, tmp_path, name, members):
    judgments = b"1 1 -1 \n" if name == "cran" else b"01 1  0 0\n"
    site.content = tar(dict(zip(members, (FILES["MED.ALL"], FILES["MED.QRY"], judgments), strict=True)))
    with pytest.raises(FormatError, match="expected the known copy of") as refused:
        fetch.get_collection(name, tmp_path, base_url=site.url)
    found = re.search(r"found the hash (\w+)", str(refused.value))[1]
    fetch.get_collection(name, tmp_path, base_url=site.url, sha256=found)
    assert left_behind(tmp_path) == [f"{name.upper()}.{suffix}" for suffix in ("ALL", "QRY", "REL")]


class TestBrokenTransfers:
    def test_goes_on_where_it_stopped(self, site, tmp_path, known):
        site.content = tar(FILES)
        site.cut_after = [100, 50]
        fetch.get_collection("med", tmp_path / "data", base_url=site.url, sha256=known)
        assert [r for _, r in site.requests] == [None, "bytes=100-", "bytes=150-"]

    def test_keeps_what_came_for_the_next_command(self, site, tmp_path, known):
        site.content = tar(FILES)
        site.cut_after = [40, 10, 0, 0]
        with pytest.raises(
            FetchError, match=r"cannot be downloaded .* 50 bytes are kept; the same command resumes"
        ):
            fetch.get_collection("med", tmp_path / "data", base_url=site.url, sha256=known)
        assert left_behind(tmp_path / "data") == ["med.tar.gz.part"]
        fetch.get_collection("med", tmp_path / "data", base_url=site.url, sha256=known)
        assert site.requests[-1][1] == "bytes=50-"
        assert left_behind(tmp_path / "data") == ["MED.ALL", "MED.QRY", "MED.REL"]

    def test_a_server_without_ranges_sends_all_again(self, site, tmp_path, known):
        site.content, site.ranges = tar(FILES), False
        site.cut_after = [100]
        fetch.get_collection("med", tmp_path / "data", base_url=site.url, sha256=known)
        assert [r for _, r in site.requests] == [None, "bytes=100-"]

    @pytest.mark.parametrize("old", [b"the beginning of another edition", bytes(10**6)], ids=["short", "too long"])
    def test_an_old_beginning_of_something_else_is_given_up(self, site, tmp_path, known, old):
        site.content = tar(FILES)
        (tmp_path / "data" / "med").mkdir(parents=True)
        (tmp_path / "data" / "med" / "med.tar.gz.part").write_bytes(old)
        fetch.get_collection("med", tmp_path / "data", base_url=site.url, sha256=known)
        assert site.requests[0][1] == f"bytes={len(old)}-"
        assert site.requests[-1][1] is None

    def test_a_complete_part_needs_no_more(self, site, tmp_path, known):
        site.content = tar(FILES)
        (tmp_path / "data" / "med").mkdir(parents=True)
        (tmp_path / "data" / "med" / "med.tar.gz.part").write_bytes(site.content)
        fetch.get_collection("med", tmp_path / "data", base_url=site.url, sha256=known)
        assert [r for _, r in site.requests] == [f"bytes={len(site.content)}-"]

    def test_a_part_that_is_a_link_is_not_followed(self, site, tmp_path, known):
        site.content = tar(FILES)
        folder, other = tmp_path / "data" / "med", tmp_path / "precious"
        folder.mkdir(parents=True)
        other.write_bytes(b"precious")
        (folder / "med.tar.gz.part").symlink_to(other)
        fetch.get_collection("med", tmp_path / "data", base_url=site.url, sha256=known)
        assert other.read_bytes() == b"precious"
        assert site.requests[0][1] is None

    def test_what_a_killed_process_left_is_removed_after_an_hour(self, site, tmp_path, known):
        site.content = tar(FILES)
        folder = tmp_path / "data" / "med"
        for name, age in ((".unpacking-old", 7200), (".unpacking-new", 60)):
            (folder / name).mkdir(parents=True)
            os.utime(folder / name, (time.time() - age,) * 2)
        fetch.get_collection("med", tmp_path / "data", base_url=site.url, sha256=known)
        assert [path.name for path in folder.glob(".unpacking-*")] == [".unpacking-new"]

    @pytest.mark.parametrize("length", ["\xb2", "many", "9" * 5000], ids=["superscript", "word", "long"])
    def test_a_length_that_is_no_number_is_ignored(self, site, tmp_path, known, length):
        site.content, site.length = tar(FILES), length
        fetch.get_collection("med", tmp_path / "data", base_url=site.url, sha256=known)
        assert left_behind(tmp_path / "data") == ["MED.ALL", "MED.QRY", "MED.REL"]


class TestRefusals:
    def test_other_content_is_not_kept(self, site, tmp_path):
        site.content = tar(FILES)
        with pytest.raises(
            FormatError, match=r"med\.tar\.gz: expected the known copy of med.*pass its hash as sha256"
        ):
            fetch.get_collection("med", tmp_path, base_url=site.url)
        assert left_behind(tmp_path) == []
        assert len(site.requests) == 1

    def test_a_path_out_of_the_folder(self, site, tmp_path, known):
        site.content = tar({**FILES, "../../evil": b"x"})
        with pytest.raises(FormatError, match=r"http://.*found the member '\.\./\.\./evil'"):
            fetch.get_collection("med", tmp_path / "data", base_url=site.url, sha256=known)
        assert left_behind(tmp_path / "data") == []
        assert not list(tmp_path.rglob("evil"))

    def test_not_found(self, site, tmp_path):
        site.status = 404
        with pytest.raises(
            FetchError, match=r"med\.tar\.gz: expected the archive; the server answered 404 Not Found"
        ):
            fetch.get_collection("med", tmp_path, base_url=site.url)
        assert len(site.requests) == 1

    def test_no_server_says_what_to_do(self, tmp_path):
        with pytest.raises(
            FetchError, match=r"cannot be downloaded .*refused.*Check the network, or download the archive"
        ) as refused:
            fetch.get_collection("med", tmp_path, base_url="http://127.0.0.1:9/")
        assert refused.value.code == "fetch"

    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (urllib.error.URLError(socket.gaierror(-2, "Name or service not known")), "Name or service not known"),
            (urllib.error.URLError(TimeoutError("timed out")), "timed out"),  # nobody takes the call
            (TimeoutError("timed out"), "timed out"),  # somebody takes it and says nothing
        ],
        ids=["no such host", "no connection", "silence"],
    )
    def test_nobody_answers(self, tmp_path, monkeypatch, error, said):
        waited = []

        def opened(request, *, timeout):
            waited.append(timeout)
            raise error

        monkeypatch.setattr(fetch.urllib.request, "urlopen", opened)
        with pytest.raises(FetchError, match=rf"cannot be downloaded \(.*{said}\)\. Check the network"):
            fetch.get_collection("med", tmp_path, base_url="http://no-such-host.invalid/", timeout=5)
        assert waited == [5]  # and it is not asked again
        assert left_behind(tmp_path) == []

    def test_a_server_that_falls_silent_is_left_after_the_time_given(self, tmp_path, monkeypatch):
        """On a real socket: the limit reaches it, however short."""
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as deaf:  # listens, never answers
            url = f"http://127.0.0.1:{deaf.server_port}/"
            with pytest.raises(FetchError, match="timed out"):
                fetch.get_collection("med", tmp_path, base_url=url, timeout=0.01)

    def test_far_too_much(self, site, tmp_path, monkeypatch):
        site.content = bytes(200_000)
        monkeypatch.setattr(fetch, "_MAX_DOWNLOAD", 100_000)
        with pytest.raises(FetchError, match="the server announces 200000 bytes"):
            fetch.get_collection("med", tmp_path, base_url=site.url)
        site.chunked = True
        with pytest.raises(FetchError, match="found more than 100000"):
            fetch.get_collection("med", tmp_path, base_url=site.url)

    @pytest.mark.parametrize("address", ["file:///etc/", "ftp://host/", "ir.dcs.gla.ac.uk"])
    def test_other_schemes(self, tmp_path, address):
        with pytest.raises(InputError, match="begins with http:// or https://"):
            fetch.get_collection("med", tmp_path, base_url=address)

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(InputError, match="expected a folder to write to"):
            fetch.get_collection("med", tmp_path / "file", base_url="http://127.0.0.1:9/")

    def test_only_the_four_can_be_fetched(self, tmp_path):
        with pytest.raises(InputError, match="expected one of med, cran, cisi, cacm"):
            fetch.get_collection("pydocs", tmp_path)


def test_real_files_pass_the_check(site, tmp_path, smart_data):
    source = smart_data / "cran"
    site.content = tar(
        {
            "cran.all.1400": (source / "CRAN.ALL").read_bytes().replace(b"\n", b"\r\n"),
            "cran.qry": (source / "CRAN.QRY").read_bytes(),
            "cranqrel": (source / "CRAN.REL").read_bytes().rstrip(b"\n"),
        }
    )
    fetch.get_collection("cran", tmp_path, base_url=site.url)
    for name in ("CRAN.ALL", "CRAN.QRY", "CRAN.REL"):
        assert (tmp_path / "cran" / name).read_bytes() == (source / name).read_bytes()


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
    assert fetch.unpack_members(path, WANTED) == [b"one\ntwo\n", b"1 2\n"]


def test_the_first_of_the_possible_names_wins(tmp_path):
    path = make(tmp_path / "x", {"a.all.old": b"old\n", "a.all": b"new\n", "a.rel": b"r\n"})
    assert fetch.unpack_members(path, WANTED)[0] == b"new\n"
    path = make(tmp_path / "y", {"a.all.old": b"old\n", "a.rel": b"r\n"})
    assert fetch.unpack_members(path, WANTED)[0] == b"old\n"


def test_missing_member_is_named(tmp_path):
    with pytest.raises(FormatError, match=r"none with a member A\.ALL or a\.all\.old"):
        fetch.unpack_members(make(tmp_path / "x", {"A.REL": b""}), WANTED)


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
        fetch.unpack_members(path, WANTED)


def test_an_archive_that_announces_too_much_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = make(tmp_path / "x", {"huge": bytes(200_000), "a.all": b"", "a.rel": b""})
    fetch.unpack_members(path, WANTED)
    monkeypatch.setattr(fetch, "_MAX_UNPACKED", 100_000)
    with pytest.raises(FormatError, match="1 members of 200000 bytes or more"):
        fetch.unpack_members(path, WANTED)
    monkeypatch.setattr(fetch, "_MAX_UNPACKED", 10**9)
    monkeypatch.setattr(fetch, "_MAX_MEMBERS", 2)
    with pytest.raises(FormatError, match="3 members"):
        fetch.unpack_members(path, WANTED)


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.95])
def test_a_cut_archive_is_refused(tmp_path, keep):
    rows = "".join(f"row {i * 7919 % 10007}\n" for i in range(5000)).encode()
    raw = make(tmp_path / "x", {"a.all": rows, "a.rel": rows}).read_bytes()
    path = tmp_path / "cut"
    path.write_bytes(raw[: int(keep * len(raw)) if keep < 1 else keep])
    with pytest.raises(FormatError, match="broken or cut"):
        fetch.unpack_members(path, WANTED)


def test_what_is_no_archive_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_text("<html>Not here</html>")
    with pytest.raises(FormatError, match="broken or cut"):
        fetch.unpack_members(path, WANTED)
