"""Text is found wherever it lies: paths, standard input, open files, packed or not, mapped or read."""

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from read.bad_cases import as_dict

from genm.errors import FormatError, InputError
from genm.read import read_run, sources
from genm.read.diagnostics import Diagnostics

TEXT = "q1 Q0 a 1 3.0 t\nq1 Q0 b 2 2.0 t\n"
DATA = {"q1": {"a": 3.0, "b": 2.0}}
PACKINGS = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


@pytest.mark.parametrize("suffix", PACKINGS)
@pytest.mark.parametrize("kind", [str, Path])
def test_paths(tmp_path: Path, suffix: str, kind: Any) -> None:
    path = tmp_path / f"bm25.v2.trec{suffix}"
    path.write_bytes(PACKINGS[suffix](TEXT.encode()))
    run = read_run(kind(path))
    assert as_dict(run) == DATA
    assert run.name == "bm25.v2"
    assert run.notes == ()


@pytest.mark.parametrize("pack", PACKINGS.values())
def test_packing_is_seen_in_the_content(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "results"
    path.write_bytes(pack(TEXT.encode()))
    assert as_dict(read_run(path, name="x")) == DATA
    assert as_dict(read_run(io.BytesIO(pack(TEXT.encode())))) == DATA


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert as_dict(read_run("-")) == DATA
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"q1 Q0\n")))
    with pytest.raises(FormatError, match=r"^<stdin>:1: expected 6 columns"):
        read_run("-")


def test_open_files(tmp_path: Path) -> None:
    path = tmp_path / "x.trec"
    path.write_text(TEXT)
    with path.open() as text, path.open("rb") as binary:
        assert as_dict(read_run(text)) == DATA
        assert as_dict(read_run(binary)) == DATA
    with pytest.raises(FormatError, match=r"^<open file>:1: "):
        read_run(io.StringIO("q1\n"))


@pytest.mark.parametrize("source", [7, None, b"x.trec", float])
def test_no_source_at_all(source: Any) -> None:
    with pytest.raises(
        TypeError, match="expected a path, '-', an open file, a dictionary or a frame; found"
    ) as caught:
        read_run(source)
    assert isinstance(caught.value, InputError)


def test_an_open_file_that_gives_neither_text_nor_bytes() -> None:
    class Odd:
        def read(self) -> int:
            return 7

    with pytest.raises(InputError, match="expected an open file that gives text or bytes; found int"):
        read_run(Odd())


def test_a_path_that_no_file_can_have() -> None:
    with pytest.raises(FormatError, match=r'expected a readable file; found the name "a\\x00b"'):
        read_run("a\0b")


SHRINKING = """
import os, sys
from genm.read import read_run
path = sys.argv[1]
def cut(task, done, total):
    os.truncate(path, 10)
run = read_run(path, progress=cut)
print(len(run.doc), run.docs[len(run.docs) - 1], len(run.notes))
"""


def test_a_file_that_shrinks_after_it_was_read_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "x.trec"
    path.write_text("".join(f"q{i // 1000} Q0 document-{i} {i} {-i} t\n" for i in range(200_000)))
    assert path.stat().st_size > 4 << 20
    done = subprocess.run([sys.executable, "-c", SHRINKING, path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "200000 document-199999 0\n", "")


@pytest.mark.parametrize("change", ["shrink", "grow", "rewrite"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = tmp_path / "x.trec"
    path.write_text(TEXT)
    made = np.empty

    def changed(*args: Any, **options: Any) -> Any:
        with path.open("r+b") as file:
            file.truncate(20) if change == "shrink" else file.write(TEXT.encode() * (1 + (change == "grow")))
        os.utime(path, ns=(1, 1))
        return made(*args, **options)

    monkeypatch.setattr(sources.np, "empty", changed)
    with pytest.raises(FormatError, match=r"expected a readable file; found one that changed meanwhile, from 32"):
        read_run(path)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_the_limit_of_what_a_file_unpacks_to(pack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pack(TEXT.encode() * 1000)
    monkeypatch.setenv("GENM_MAX_UNPACKED", "32000")
    read_run(io.BytesIO(packed), duplicates="max")
    monkeypatch.setenv("GENM_MAX_UNPACKED", "31999")
    with pytest.raises(FormatError, match=r"unpacks to at most 31,999 bytes; found more.* set GENM_MAX_UNPACKED"):
        read_run(io.BytesIO(packed), lenient=True)
    monkeypatch.setenv("GENM_MAX_UNPACKED", "1 GB")
    with pytest.raises(InputError, match="GENM_MAX_UNPACKED: expected a number of bytes, such as 20G"):
        read_run(io.BytesIO(packed))


def test_the_limit_follows_the_size_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GENM_MAX_UNPACKED", raising=False)
    assert [sources.unpack_limit(n) for n in (0, 1 << 20, 1 << 40)] == [64 << 20, 100 << 20, 64 << 30]
    monkeypatch.setenv("GENM_MAX_UNPACKED", "2g")
    assert sources.unpack_limit(10) == 2 << 30


def test_a_piece_of_packed_data_unpacks_to_little() -> None:
    """The limit is looked at after each piece, so no piece may unpack to gigabytes."""
    bomb = zstandard.compress(bytes(256 << 20), 19)
    assert len(bomb) < 16 << 10
    parts = (bomb[at : at + sources.PIECES["zstandard"]] for at in range(0, len(bomb), sources.PIECES["zstandard"]))
    report = Diagnostics("bomb", lenient=False)
    assert max(len(piece or b"") for piece in sources.unpack(parts, "zstandard", report, str)) <= 16 << 20


@pytest.mark.parametrize("suffix", PACKINGS)
def test_progress_is_told_to_the_end(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.trec{suffix}"
    path.write_bytes(PACKINGS[suffix](TEXT.encode()))
    told: list[tuple[str, int, int]] = []
    read_run(path, progress=lambda *step: told.append(step))
    assert {task for task, _, _ in told} == (
        {f"reading {path}"} if not suffix else {f"unpacking {path}", f"reading {path}"}
    )
    assert told[-1] == (f"reading {path}", len(TEXT), len(TEXT))


def test_padding_after_the_last_member_is_no_damage() -> None:
    assert as_dict(read_run(io.BytesIO(gzip.compress(TEXT.encode()) + b"\0" * 512))) == DATA
    with pytest.raises(FormatError, match="damaged gzip data"):
        read_run(io.BytesIO(gzip.compress(TEXT.encode()) + b"rubbish"))


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FormatError, match="found a file that may not be read"):
        read_run(tmp_path / "x")


def test_broken_utf_16_cannot_be_repaired() -> None:
    with pytest.raises(FormatError, match="broken UTF-16"):
        read_run(io.BytesIO(b"\xff\xfeq"), lenient=True)


def test_threads_share_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, content = tmp_path / "x.trec", "".join(f"q Q0 d{i} {i} {-i} t\n" for i in range(9000))
    path.write_text(content)
    whole = read_run(path)
    monkeypatch.setattr(sources, "_SHARE", 1000)
    assert read_run(path) == whole
    monkeypatch.setattr(os, "preadv", lambda *_: 0, raising=False)  # a system that gives less than was asked for
    assert read_run(path) == whole
