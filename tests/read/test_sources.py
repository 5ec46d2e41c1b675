"""Text is found wherever it lies: paths, standard input, open files, packed or not, mapped or read."""

import gzip
import io
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard
from read.bad_cases import as_dict

from genm.errors import FormatError
from genm.read import read_run, sources

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


def test_no_source_at_all() -> None:
    with pytest.raises(TypeError, match="expected a path, '-' or an open file; found int"):
        read_run(7)


def test_large_files_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.trec"
    path.write_text(TEXT)
    calls: list[int] = []
    mapped = sources.mmap.mmap

    def counted(*args: Any, **options: Any) -> Any:
        calls.append(1)
        return mapped(*args, **options)

    monkeypatch.setattr(sources.mmap, "mmap", counted)
    assert as_dict(read_run(path)) == DATA
    assert calls == []
    monkeypatch.setattr(sources, "_MAP_FROM", 1)
    assert as_dict(read_run(path)) == DATA
    assert calls == [1]


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
